"""How far groups are behind: records that were not consumed, and the age of the oldest of them.

In: an Admin, groups (or all), the time. Out: a value a group. Work is bounded: groups are asked for in
portions, and ages are looked up (by reading one record) for a number of partitions at a time, kept as long
as a group stays where it is. Does not know: how it is shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_offsets import Committed
from barnabas.client.admin.groups import CONSUMER, GroupDescription
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

GROUPS_AT_ONCE = 500
LOOKUPS_MAX = 500  # partitions whose oldest record is read in one reading
LOOKUPS_AT_ONCE = 50
LOOKUP_MS = 2_000
LOOKUP_BYTES = 16_384
CONSUMER_TYPES = ("", "Classic", "Consumer")


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """`age_ms` is None where nobody knows it (yet), 0 where nothing is left to read."""

    where: TopicPartition
    current: int | None
    end: int | None
    age_ms: int | None
    member: str | None

    @property
    def lag(self) -> int | None:
        return None if self.current is None or self.end is None else max(0, self.end - self.current)


@dataclass(frozen=True, slots=True)
class GroupLag:
    group_id: str
    state: str
    partitions: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        return sum(each.lag or 0 for each in self.partitions)

    @property
    def age_ms(self) -> int | None:
        """Of the oldest record that the group did not consume."""
        known = [each.age_ms for each in self.partitions if each.age_ms is not None]
        return max(known) if known else None


Position = tuple[TopicPartition, int]


class LagReader:
    """One for many readings: what was looked up is kept between them."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._timestamps: dict[Position, int] = {}

    async def read(self, groups: Sequence[str] | None, now_ms: int) -> list[GroupLag]:
        """The given groups, or all groups of consumers; those furthest behind come first."""
        names = await self._all_groups() if groups is None else list(dict.fromkeys(groups))
        described: list[GroupDescription] = []
        committed: dict[str, Committed] = {}
        for start in range(0, len(names), GROUPS_AT_ONCE):
            part = names[start : start + GROUPS_AT_ONCE]
            described += await self._describe(part, are_named=groups is not None)
            for group, offsets in (await self._admin.committed_offsets_of(part)).items():
                committed[group] = offsets if not isinstance(offsets, KafkaError) else {}
        ends = await self._ends(described, committed)
        await self._look_up(committed, ends)
        found = [self._lag_of(group, committed[group.group_id], ends, now_ms) for group in described]
        return sorted(found, key=lambda group: (-group.lag, group.group_id))

    async def _all_groups(self) -> list[str]:
        return sorted(
            listing.group_id
            for listing in await self._admin.list_groups()
            if listing.protocol_type in (CONSUMER, "") and listing.type in CONSUMER_TYPES
        )

    async def _describe(self, groups: list[str], *, are_named: bool) -> list[GroupDescription]:
        found = []
        for answer in (await self._admin.describe_groups(groups)).values():
            if isinstance(answer, GroupDescription):
                found.append(answer)
            elif are_named or answer.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise answer  # else it went between listing and describing
        return found

    async def _ends(
        self, groups: Iterable[GroupDescription], committed: dict[str, Committed]
    ) -> dict[TopicPartition, int]:
        wanted = {where for offsets in committed.values() for where in offsets}
        wanted |= {where for group in groups for member in group.members for where in member.assignment}
        found = await self._admin.list_offsets(dict.fromkeys(sorted(wanted), OffsetSpec.LATEST))
        return {where: each.offset for where, each in found.items() if isinstance(each, FoundOffset)}

    async def _look_up(self, committed: dict[str, Committed], ends: dict[TopicPartition, int]) -> None:
        """Learn when the next record of each group was written, for a number of them."""
        behind = dict.fromkeys(
            (where, at.offset)
            for offsets in committed.values()
            for where, at in offsets.items()
            if at.offset < ends.get(where, -1)
        )
        self._timestamps = {key: at_ms for key, at_ms in self._timestamps.items() if key in behind}
        unknown = islice((key for key in behind if key not in self._timestamps), LOOKUPS_MAX)
        while part := list(islice(unknown, LOOKUPS_AT_ONCE)):
            await self._read_one_each(part)

    async def _read_one_each(self, positions: list[Position]) -> None:
        settings = ConsumerSettings(
            partition_fetch_bytes_max=LOOKUP_BYTES, on_out_of_range=OnOutOfRange.EARLIEST
        )
        while positions:
            # Several groups may stand at different offsets of one partition: one of each at a time.
            round_of = dict(positions)
            positions = [key for key in positions if round_of[key[0]] != key[1]]
            consumer = Consumer(self._admin.cluster, settings)
            consumer.assign(round_of)
            try:
                while round_of and (records := await consumer.poll(LOOKUP_MS)):
                    for record in records:
                        where = TopicPartition(record.topic, record.partition)
                        if where in round_of:
                            self._timestamps[where, round_of.pop(where)] = record.timestamp
                            consumer.positions.pop(where, None)
            except (KafkaError, ClientError):
                continue  # a partition that cannot be read has an age that nobody knows
            finally:
                await consumer.close()

    def _lag_of(
        self, group: GroupDescription, committed: Committed, ends: dict[TopicPartition, int], now_ms: int
    ) -> GroupLag:
        owners = {where: member.client_id for member in group.members for where in member.assignment}
        partitions = []
        for where in sorted({*owners, *committed}):
            current = committed[where].offset if where in committed else None
            end = ends.get(where)
            age_ms: int | None = None
            if current is not None and end is not None:
                written_ms = self._timestamps.get((where, current))
                age_ms = 0 if current >= end else None if written_ms is None else max(0, now_ms - written_ms)
            partitions.append(PartitionLag(where, current, end, age_ms, owners.get(where)))
        return GroupLag(group.group_id, group.state, tuple(partitions))
