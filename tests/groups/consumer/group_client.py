"""A member of a consumer group, like real clients: joins, revokes on request, reports what it owns.

In: a `Host`. Out: heartbeats. Transcripts and random histories use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

from ..host import Host, topic_id

Owned = dict[str, set[int]]


def beat(
    host: Host,
    group_id: str,
    member_id: str,
    epoch: int,
    *,
    owned: Mapping[str, Iterable[int]] | None = None,
    topics: list[str] | None = None,
    version: int = 1,
    timeout_ms: int = -1,
    regex: str | None = None,
    instance: str | None = None,
    assignor: str | None = None,
    rack: str | None = None,
) -> ConsumerGroupHeartbeatResponse:
    """One heartbeat with exactly these fields."""
    reported = None
    if owned is not None:
        reported = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id(name), partitions=sorted(numbers))
            for name, numbers in owned.items()
        ]
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        rack_id=rack,
        rebalance_timeout_ms=timeout_ms,
        subscribed_topic_names=topics,
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=reported,
    )
    reply = host.ask("client", request, version)
    assert isinstance(reply, ConsumerGroupHeartbeatResponse)
    return reply


def assignment(host: Host, reply: ConsumerGroupHeartbeatResponse) -> Owned | None:
    if reply.assignment is None:
        return None
    by_id = host.image.topics.by_id
    return {
        by_id[topic.topic_id].name if topic.topic_id in by_id else topic.topic_id.hex(): set(topic.partitions)
        for topic in reply.assignment.topic_partitions
    }


class GroupClient:
    """Follows the rules of KIP-848. `owned` are the partitions that its user may read now."""

    def __init__(self, host: Host, group_id: str, member_id: str, topics: list[str], **fields: str) -> None:
        self.host = host
        self.group_id = group_id
        self.member_id = member_id
        self.topics = topics
        self.fields = fields
        self.epoch = 0
        self.owned: Owned = {}
        self.revoking: Owned = {}
        self.must_report = False

    def join(self) -> None:
        self.epoch = 0
        self.owned, self.revoking = {}, {}
        reply = beat(
            self.host, self.group_id, self.member_id, 0,
            owned={}, topics=self.topics, timeout_ms=30_000, **self.fields,  # type: ignore[arg-type]
        )  # fmt: skip
        self.take(reply)

    def beat(self, *, is_lost: bool = False) -> ErrorCode:
        """Send a heartbeat. If its response gets lost, the next one repeats everything."""
        if self.epoch == 0:
            self.join()
            return ErrorCode.NONE
        owned = self.held() if self.must_report else None
        reply = beat(
            self.host, self.group_id, self.member_id, self.epoch, owned=owned,
            topics=self.topics if self.must_report else None,
            timeout_ms=30_000 if self.must_report else -1,
        )  # fmt: skip
        if is_lost:
            self.must_report = True
            return ErrorCode.NONE
        self.must_report = False
        return self.take(reply)

    def take(self, reply: ConsumerGroupHeartbeatResponse) -> ErrorCode:
        code = ErrorCode(reply.error_code)
        if code is not ErrorCode.NONE:
            self.epoch, self.owned, self.revoking = 0, {}, {}
            return code
        self.epoch = reply.member_epoch
        told = assignment(self.host, reply)
        if told is not None:
            self.revoking = less(self.owned, told)
            kept = less(self.owned, self.revoking)
            # New partitions are read once all others are revoked.
            self.owned = kept if self.revoking else told
            self.must_report = self.must_report or self.owned != told or bool(self.revoking)
        return code

    def revoke(self) -> None:
        """Finish the revocation; the next heartbeat reports it."""
        if self.revoking:
            self.revoking = {}
            self.must_report = True

    def held(self) -> Owned:
        found = {name: set(numbers) for name, numbers in self.owned.items()}
        for name, numbers in self.revoking.items():
            found.setdefault(name, set()).update(numbers)
        return found

    def leave(self) -> None:
        beat(self.host, self.group_id, self.member_id, -1)
        self.epoch, self.owned, self.revoking = 0, {}, {}


def less(left: Owned, right: Owned) -> Owned:
    found = {name: numbers - right.get(name, set()) for name, numbers in left.items()}
    return {name: numbers for name, numbers in found.items() if numbers}
