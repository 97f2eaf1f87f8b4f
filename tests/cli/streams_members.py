"""Members of streams groups for tools to describe: heartbeats of a word count, on an event loop in a thread.

`StreamsMembers(bootstrap).join("words", "letters", client_id="ann")` returns when the group is stable and has
the member; `leave` ends all members. They read nothing and commit nothing.
"""

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.streams_groups import StreamsGroupDescription
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.coordinators import Results
from barnabas.client.core.errors import error_of
from barnabas.client.core.topology import Node
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.testing.waiting import until

STABLE_SECONDS_MAX = 60.0
BEAT_S = 0.1
Request, Response = StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
Subtopology = Request.Topology.Subtopology


class StreamsMembers:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._members: list[StreamsMemberThread] = []

    def join(self, group: str, topic: str, client_id: str) -> None:
        self._members.append(StreamsMemberThread(self._bootstrap, group, topic, client_id))
        count = sum(member.group == group for member in self._members)
        asyncio.run(until_stable(self._bootstrap, group, count))

    def leave(self) -> None:
        members, self._members = self._members, []
        for member in members:
            member.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


def word_count(group: str, topic: str) -> Request.Topology:
    words, counts = f"{group}-words-repartition", f"{group}-counts-changelog"
    return Request.Topology(
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=[topic], repartition_sink_topics=[words]),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[Request.TopicInfo(name=words)],
                state_changelog_topics=[Request.TopicInfo(name=counts)],
            ),
        ]
    )


class StreamsMemberThread:
    def __init__(self, bootstrap: str, group: str, topic: str, client_id: str) -> None:
        self.group = group
        self._client_id = client_id
        self._epoch = 0
        self._tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live(bootstrap, topic)))
        self._thread.start()

    async def _live(self, bootstrap: str, topic: str) -> None:
        async with Cluster(parse_bootstrap(bootstrap), client_id=self._client_id) as cluster:
            admin = Admin(cluster)
            joining = {
                "topology": word_count(self.group, topic),
                "rebalance_timeout_ms": 10_000,
                "process_id": f"process-of-{self._client_id}",
                "client_tags": [],
            }
            await self._beat(admin, **joining)
            while not self._ended.is_set():
                await asyncio.sleep(BEAT_S)
                await self._beat(admin)
            self._epoch = -1
            await self._beat(admin)

    async def _beat(self, admin: Admin, **fields: Any) -> None:
        async def question(node: Node, groups: list[str]) -> Results[Response]:
            connection = await admin.cluster.connection_to(node.address)
            request = Request(
                group_id=self.group,
                member_id=self._client_id,
                member_epoch=self._epoch,
                **fields,
                **self._tasks,
            )
            answer = await connection.send(request, Response)
            error = error_of(answer.error_code, answer.error_message) if answer.error_code else None
            return {self.group: error or answer}

        answer = (await admin.coordinators.ask([self.group], question))[self.group]
        assert isinstance(answer, Response), answer
        self._epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self._tasks = {
                role: [
                    Request.TaskIds(subtopology_id=each.subtopology_id, partitions=each.partitions)
                    for each in getattr(answer, role)
                ]
                for role in self._tasks
            }

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()


async def until_stable(bootstrap: str, group: str, members: int) -> None:
    async with Cluster(parse_bootstrap(bootstrap)) as cluster:
        admin = Admin(cluster)

        async def is_stable() -> bool:
            found = (await admin.describe_streams_groups([group]))[group]
            if not isinstance(found, StreamsGroupDescription):
                return False
            return found.state == "Stable" and len(found.members) == members

        await until(is_stable, STABLE_SECONDS_MAX, f"{members} members in {group}")
