"""A consumer of topics as a member of a classic group, or of partitions that its caller names.

In: a cluster, a group, topics by name or by a rule, or partitions. Out: records, when they are asked for, and
commits. It joins the group at the first `poll`, and takes part in rebalances between polls by itself, so a
caller that reads slowly stops nobody. Members of other clients may share the group (range, roundrobin).
Calls of one consumer come one after another. Does not know: deserializers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from barnabas.client.admin.group_offsets import Committed, CommittedOffset
from barnabas.client.admin.offsets import FoundOffset, OffsetAdmin, OffsetSpec
from barnabas.client.consumers.assignors import ASSIGNORS, Subscriber
from barnabas.client.consumers.embedded_protocol import (
    assigned_partitions,
    assignment_bytes,
    subscribed_topics,
    subscription_bytes,
)
from barnabas.client.consumers.fetcher import Fetcher, FetchSettings, HeldRecords, Hold
from barnabas.client.consumers.member_offsets import Identity, MemberOffsets
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.interceptors import ConsumerInterceptor, tell_consumed
from barnabas.client.core.topology import TopicPartition
from barnabas.client.groups.member import Assignment, GroupMember
from barnabas.client.groups.membership import GroupSettings, JoinedMember, Offer
from barnabas.protocol import ErrorCode, KafkaError

log = logging.getLogger("barnabas.consumers")

T = TypeVar("T")

REVOKE_COMMIT_S = 5.0  # other members wait for the rebalance meanwhile


class OffsetReset(Enum):
    """The position to begin at without a committed offset, or when the log does not hold it any more."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class GroupConsumerSettings:
    """Kafka's consumer settings of the same names."""

    group: GroupSettings
    reset: OffsetReset = OffsetReset.LATEST
    auto_commit: bool = False
    auto_commit_interval_ms: int = 5_000
    metadata_max_age_ms: int = 30_000
    assignors: tuple[str, ...] = ("range", "roundrobin")
    fetch: FetchSettings = field(default_factory=FetchSettings)


class GroupReader(Generic[T]):
    """`subscribe` or `assign`, then `poll` again and again; `close` at the end. What `poll` returns is the
    business of `hold`."""

    def __init__(self, cluster: ClusterCore, settings: GroupConsumerSettings, hold: Hold[T]) -> None:
        self.cluster = cluster
        self.settings = settings
        self.topics: frozenset[str] = frozenset()  # subscribed; those that match, if there is a rule
        self._matches: Callable[[str], bool] | None = None
        self._has_subscription = False
        self._assignment: tuple[TopicPartition, ...] = ()
        self._fetcher = Fetcher(cluster, settings.fetch, hold)
        self._offsets = MemberOffsets(cluster, settings.group.group_id)
        self._admin = OffsetAdmin(cluster)
        self._member: GroupMember | None = None
        self._identity = Identity()
        self._changed = asyncio.Event()  # the assignment came or went
        self._counts: dict[str, int] = {}  # partitions of topics as the last assignment knew them
        self._looked_at = 0.0  # when topics were last looked up
        self._committed_at = 0.0
        self._generation = -1  # of the positions
        self._returned: dict[TopicPartition, int] | None = None  # positions when the poll that runs began

    # -- topics and partitions ---------------------------------------------------------------------

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return self._assignment

    @property
    def has_subscription(self) -> bool:
        return self._has_subscription

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics as a member of the group, instead of those before."""
        self._matches = None
        self.topics = frozenset(topics)
        await self._subscribed()

    async def subscribe_matching(self, matches: Callable[[str], bool]) -> None:
        """Read all topics whose names match, also those that are created later."""
        self._matches = matches
        self.topics = frozenset()
        await self._subscribed()

    async def _subscribed(self) -> None:
        if self._assignment and not self._has_subscription:
            raise ValueError("the consumer has partitions of its own choice")
        self._has_subscription = True
        self._looked_at = 0.0
        if self._member is not None:
            await self._look_up_topics()
            self._member.rejoin("the subscription changed")

    async def unsubscribe(self) -> None:
        """Give everything back, and leave the group."""
        await self._leave()
        self._has_subscription = False
        self._matches = None
        self.topics = frozenset()
        self._set_assignment(())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, and no others, without being a member of the group."""
        if self._has_subscription:
            raise ValueError("the consumer has a subscription")
        self._set_assignment(partitions)

    def _set_assignment(self, partitions: Iterable[TopicPartition]) -> None:
        self._assignment = tuple(dict.fromkeys(partitions))
        self._fetcher.keep(self._assignment)
        self._fetcher.interrupt()
        self._changed.set()

    # -- records -----------------------------------------------------------------------------------

    async def poll(
        self, timeout_ms: float, *, bytes_max: int = 50 * 1024 * 1024, bytes_min: int | None = 1
    ) -> list[T]:
        """Records of up to `bytes_max`; none when the time is up. `bytes_min` None: all that are there."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_ms / 1000
        self._returned = dict(self._fetcher.positions)
        try:
            await self._commit_if_due()
            while True:
                if self._has_subscription:
                    await self._take_part()
                if self._assignment:
                    await self._find_positions()
                    records = await self._fetcher.fetch(bytes_max, bytes_min, until)
                    if records or loop.time() >= until:
                        return records
                elif loop.time() >= until:
                    return []
                else:
                    await self._wait_for_change(until)
        finally:
            self._returned = None

    async def _wait_for_change(self, until: float) -> None:
        self._changed.clear()
        if self._assignment:
            return
        left_s = until - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(0.0, min(left_s, self.settings.metadata_max_age_ms / 1000))):
                await self._changed.wait()
        except TimeoutError:
            pass

    @property
    def has_more(self) -> bool:
        """Whether more records are known to be there than the last poll returned."""
        return self._fetcher.has_more

    # -- positions ---------------------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record of a partition; None before the first poll found it."""
        return self._fetcher.positions.get(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        if partition not in self._assignment:
            raise ValueError(f"{partition} is not assigned to this consumer")
        self._fetcher.move(partition, offset)

    async def seek_to(self, wanted: Mapping[TopicPartition, int]) -> None:
        """Go to where an OffsetSpec or a timestamp points to; behind the last record if nowhere."""
        for partition in wanted:
            if partition not in self._assignment:
                raise ValueError(f"{partition} is not assigned to this consumer")
        for partition, offset in (await self._find_offsets(wanted)).items():
            if partition in self._assignment:
                self._fetcher.move(partition, offset)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._fetcher.paused |= set(partitions) & set(self._assignment)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._fetcher.paused -= set(partitions)

    async def _find_positions(self) -> None:
        """Positions of partitions that have none: what was committed, else what `reset` says."""
        fetcher = self._fetcher
        missing = [partition for partition in self._assignment if partition not in fetcher.positions]
        lost = sorted(fetcher.out_of_range)
        if missing:
            assignment = self._assignment
            found = await self._offsets.committed(missing)
            for partition in missing:
                if partition in found and self._assignment is assignment:
                    fetcher.move(partition, found[partition].offset)
            lost += [partition for partition in missing if partition not in found]
        if not lost:
            return
        if self.settings.reset is OffsetReset.NONE:
            places = ", ".join(map(str, lost[:5]))
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"no offset to begin at, and auto.offset.reset is none: {places}",
            )
        is_latest = self.settings.reset is OffsetReset.LATEST
        spec = OffsetSpec.LATEST if is_latest else OffsetSpec.EARLIEST
        for partition, offset in (await self._find_offsets(dict.fromkeys(lost, spec))).items():
            if partition in self._assignment and (
                partition in fetcher.out_of_range or partition not in fetcher.positions
            ):
                fetcher.move(partition, offset)

    async def _find_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        read_committed = self.settings.fetch.read_committed
        found = await self._admin.list_offsets(wanted, read_committed=read_committed)
        beyond = [
            partition
            for partition, each in found.items()
            if isinstance(each, FoundOffset) and each.offset < 0
        ]
        if beyond:
            latest = dict.fromkeys(beyond, OffsetSpec.LATEST)
            found |= await self._admin.list_offsets(latest, read_committed=read_committed)
        offsets = {}
        for partition, each in found.items():
            if isinstance(each, FoundOffset):
                offsets[partition] = each.offset
            elif self._has_subscription and each.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                log.warning("partition %s is gone: the next rebalance takes it away", partition)
            else:
                raise each
        return offsets

    # -- commits -----------------------------------------------------------------------------------

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None = None) -> None:
        """Commit these offsets, or the positions behind all records that were returned."""
        if offsets is None:
            positions = self._fetcher.positions if self._returned is None else self._returned
            offsets = {partition: CommittedOffset(offset) for partition, offset in positions.items()}
        await self._offsets.commit(offsets, self._identity)

    async def committed(self, partitions: Iterable[TopicPartition]) -> Committed:
        return await self._offsets.committed(partitions)

    async def _commit_if_due(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self.settings.auto_commit or not self._fetcher.positions:
            return
        if now - self._committed_at < self.settings.auto_commit_interval_ms / 1000:
            return
        self._committed_at = now
        await self._commit_quietly()

    async def _commit_quietly(self) -> None:
        try:
            async with asyncio.timeout(REVOKE_COMMIT_S):
                await self.commit()
        except (KafkaError, ClientError, TimeoutError) as error:
            group = self.settings.group.group_id
            log.warning("group %s: an automatic commit failed: %s", group, error or "no response in time")

    # -- the group ---------------------------------------------------------------------------------

    async def _take_part(self) -> None:
        """Join the group if that was not done, and look at topics now and then."""
        if self._member is not None and self._member.failure is not None:
            failure = self._member.failure
            await self._leave()
            raise failure
        now = asyncio.get_running_loop().time()
        if now - self._looked_at >= self.settings.metadata_max_age_ms / 1000 or not self._looked_at:
            before = self.topics
            await self._look_up_topics()
            if self._member is not None and (self.topics != before or self._counts_changed()):
                self._member.rejoin("topics changed")
        if self._member is None:
            self._member = GroupMember(self.cluster, self.settings.group, _Part(self))
            self._member.start()

    async def _look_up_topics(self) -> None:
        self._looked_at = asyncio.get_running_loop().time()
        if self._matches is None:
            await self.cluster.retrying(lambda: self.cluster.refresh(self.topics | self._counts.keys()))
            return
        topology = await self.cluster.retrying(lambda: self.cluster.refresh(None))
        matches = self._matches
        self.topics = frozenset(
            name for name, topic in topology.topics.items() if not topic.internal and matches(name)
        )

    def _counts_changed(self) -> bool:
        """Whether this member leads the group, and topics have other partitions than it assigned."""
        return any(self._count(topic) != count for topic, count in self._counts.items())

    def _count(self, topic: str) -> int:
        known = self.cluster.topology.topics.get(topic)
        return known.partition_count if known is not None else 0

    async def close(self) -> None:
        """Leave the group; with auto-commit after committing."""
        if self._member is None and self.settings.auto_commit and self._fetcher.positions:
            await self._commit_quietly()
        await self._leave()
        await self._fetcher.close()

    async def _leave(self) -> None:
        member, self._member = self._member, None
        if member is not None:
            await member.stop()
        self._identity = Identity()
        self._counts = {}

    # -- for the consumer's part in the group ------------------------------------------------------

    async def counted(self, topics: set[str]) -> dict[str, int]:
        """The partitions of topics, looked up now: this member leads the group."""
        await self.cluster.retrying(lambda: self.cluster.refresh(topics))
        self._counts = {topic: self._count(topic) for topic in topics}
        return self._counts

    def assigned(self, assignment: Assignment) -> None:
        instance_id = self.settings.group.instance_id
        self._identity = Identity(assignment.member_id, assignment.generation, instance_id)
        if assignment.leader != assignment.member_id:
            self._counts = {}
        if assignment.generation != self._generation + 1:
            self._fetcher.keep(())  # another member may have had the partitions in between
        self._generation = assignment.generation
        self._set_assignment(assigned_partitions(assignment.data))

    async def revoked(self) -> None:
        if self.settings.auto_commit:
            await self._commit_quietly()
        self._assignment = ()  # positions stay: the next generation may give the same partitions
        self._fetcher.interrupt()
        self._changed.set()

    def lost(self) -> None:
        self._generation = -1
        self._identity = Identity()
        self._set_assignment(())


class GroupConsumer(GroupReader[ConsumerRecord]):
    """A reader of records."""

    def __init__(
        self,
        cluster: ClusterCore,
        settings: GroupConsumerSettings,
        *,
        interceptors: Sequence[ConsumerInterceptor] = (),
    ) -> None:
        super().__init__(cluster, settings, HeldRecords)
        self._interceptors = tuple(interceptors)

    async def poll(
        self, timeout_ms: float, *, bytes_max: int = 50 * 1024 * 1024, bytes_min: int | None = 1
    ) -> list[ConsumerRecord]:
        records = await super().poll(timeout_ms, bytes_max=bytes_max, bytes_min=bytes_min)
        if records and self._interceptors:
            tell_consumed(self._interceptors, records)
        return records


class _Part:
    """The consumer's part in its group."""

    def __init__(self, consumer: GroupReader[Any]) -> None:
        self._consumer = consumer

    def offers(self) -> Sequence[Offer]:
        metadata = subscription_bytes(self._consumer.topics)
        return [Offer(name, metadata) for name in self._consumer.settings.assignors]

    async def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        subscribers = [
            Subscriber(each.member_id, subscribed_topics(each.metadata), each.instance_id) for each in members
        ]
        topics = {topic for each in subscribers for topic in each.topics}
        counts = await self._consumer.counted(topics)
        plan = ASSIGNORS[protocol](subscribers, counts)
        return {member_id: assignment_bytes(partitions) for member_id, partitions in plan.items()}

    async def on_assigned(self, assignment: Assignment) -> None:
        self._consumer.assigned(assignment)

    async def on_revoked(self) -> None:
        await self._consumer.revoked()

    async def on_lost(self) -> None:
        self._consumer.lost()
