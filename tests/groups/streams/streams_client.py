"""A member of a streams group, like a thread of Kafka Streams: joins, revokes on request, reports its tasks.

In: a `Host`. Out: heartbeats. Tests of decisions and random histories use it.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

from ..host import Host

Request, Response = StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
Subtopology = Request.Topology.Subtopology
Tasks = dict[str, set[int]]

SOURCE, WORDS, COUNTS = "source", "g-words-repartition", "g-counts-changelog"


def topic(name: str, partitions: int = 0, **configs: str) -> Request.TopicInfo:
    pairs = [Request.KeyValue(key=key, value=value) for key, value in configs.items()]
    return Request.TopicInfo(name=name, partitions=partitions, topic_configs=pairs)


def word_count(epoch: int = 0) -> Request.Topology:
    """Subtopology 0 writes the words to a repartition topic, 1 counts them in a store."""
    return Request.Topology(
        epoch=epoch,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=[SOURCE], repartition_sink_topics=[WORDS]),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[topic(WORDS)],
                state_changelog_topics=[topic(COUNTS)],
            ),
        ],
    )


def beat(host: Host, group_id: str, member_id: str, epoch: int, **fields: Any) -> Response:
    """One heartbeat with exactly these fields."""
    request = Request(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields)
    reply = host.ask("client", request, 0)
    assert isinstance(reply, Response)
    return reply


def told(tasks: list[Response.TaskIds] | None) -> Tasks | None:
    return None if tasks is None else {each.subtopology_id: set(each.partitions) for each in tasks}


def as_ids(tasks: Tasks) -> list[Request.TaskIds]:
    return [Request.TaskIds(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]


class StreamsClient:
    """Follows the rules of KIP-1071. `active` and `standby` are the tasks that run now."""

    def __init__(
        self,
        host: Host,
        member_id: str,
        process_id: str = "",
        topology: Request.Topology | None = None,
        group_id: str = "g",
    ) -> None:
        self.host, self.member_id, self.group_id = host, member_id, group_id
        self.process_id = process_id or f"process of {member_id}"
        self.topology = topology or word_count()
        self.epoch = 0
        self.active: Tasks = {}
        self.standby: Tasks = {}

    def join(self, **fields: Any) -> Response:
        self.active, self.standby, self.epoch = {}, {}, 0
        return self.follow(self.send_join(**fields))

    def send_join(self, **fields: Any) -> Response:
        joining: dict[str, Any] = {
            "rebalance_timeout_ms": 10_000,
            "topology": self.topology,
            "process_id": self.process_id,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "client_tags": [],
        }
        return beat(self.host, self.group_id, self.member_id, 0, **(joining | fields))

    def beat(self, **fields: Any) -> Response:
        """A heartbeat that reports the tasks that run; joins anew when it is fenced."""
        reply = self.send_beat(**fields)
        if reply.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            return self.join()
        return self.follow(reply)

    def send_beat(self, **fields: Any) -> Response:
        reported = {
            "active_tasks": as_ids(self.active),
            "standby_tasks": as_ids(self.standby),
            "warmup_tasks": [],
        }
        return beat(self.host, self.group_id, self.member_id, self.epoch, **(reported | fields))

    def follow(self, reply: Response) -> Response:
        """Run what the response says. Tasks that it leaves out are stopped at once."""
        if not reply.error_code:
            self.epoch = reply.member_epoch
            if reply.active_tasks is not None:
                self.active = told(reply.active_tasks) or {}
                self.standby = told(reply.standby_tasks) or {}
        return reply

    def leave(self) -> Response:
        reply = beat(self.host, self.group_id, self.member_id, -1)
        self.active, self.standby, self.epoch = {}, {}, 0
        return reply

    def running(self) -> set[tuple[str, int]]:
        return {(name, number) for name, numbers in self.active.items() for number in numbers}

    def copies(self) -> set[tuple[str, int]]:
        return {(name, number) for name, numbers in self.standby.items() for number in numbers}
