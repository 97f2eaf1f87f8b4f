"""The lag of groups read through requests alone: for tools, and for clusters whose topic is not readable.

In: an Admin, groups (or all), the time. Out: commits, ends and ages in a `ClusterLag`. A request tells the
offset, not when it was committed. So an offset that changed counts as a commit at the time it was seen; and
so does one that stayed while the group has members, because members commit what they did. Without members it
does not: then the group is silent. Does not know: how lag is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import CONSUMER, GroupListing
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.core.topology import TopicPartition
from barnabas.monitor.lag.cluster_lag import ClusterLag, GroupInfo
from barnabas.monitor.lag.groups import GroupPartition
from barnabas.monitor.lag_service.group_reader import GroupReader, Offsets, is_consuming, portions
from barnabas.monitor.lag_service.record_times import LOOKUPS_MAX, RecordTimes
from barnabas.protocol import ErrorCode, KafkaError

PARTITIONS_AT_ONCE = 500


class ProtocolReader:
    """One for many readings: windows of commits and timestamps are kept between them."""

    def __init__(self, admin: Admin, lag: ClusterLag, times: RecordTimes | None = None) -> None:
        self.lag = lag
        self._admin = admin
        self._groups = GroupReader(admin)
        self._times = times or RecordTimes(admin.cluster)
        self._order = 0

    async def read(self, groups: Sequence[str] | None, now_ms: int) -> None:
        """Read the given groups, or all groups of consumers, with everything that their lag needs. KafkaError
        for a given group that does not exist."""
        listed = await self._groups.listings()
        if groups is None:
            chosen = [each for each in listed.values() if is_consuming(each)]
        else:
            chosen = [listed.get(each, GroupListing(each, CONSUMER)) for each in dict.fromkeys(groups)]
        for name, info in (await self._groups.describe(chosen)).items():
            if isinstance(info, GroupInfo):
                self.lag.describe(info)
            elif groups is not None or info.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise info  # else it went between listing and describing
            else:
                self.lag.remove_group(name)
        self.lag.retain_groups(each.group_id for each in chosen)
        committed = await self._groups.committed(chosen)
        await self._read_ends(committed, now_ms)
        self.apply(committed, now_ms)
        await self._times.read(self._places_behind())
        # Retention has deleted the records of those that are left: they go on at the start of the log.
        left = sorted({at for at, _ in self._places_behind()})[:LOOKUPS_MAX]
        if left:
            await read_starts(self._admin, self.lag, left)
            await self._times.read(self._places_behind())

    def _places_behind(self) -> list[tuple[TopicPartition, GroupPartition]]:
        return [
            (TopicPartition(topic, index), place)
            for group in list(self.lag.groups.values())
            for topic, index, place in group.partitions()
            if place.lacks_time
        ]

    async def read_commits(self, groups: Sequence[GroupListing], now_ms: int) -> None:
        """Read the committed offsets alone, portion by portion."""
        by_id = {each.group_id: each for each in groups}
        for part in portions(list(by_id)):
            self.apply(await self._groups.committed([by_id[each] for each in part]), now_ms)

    def apply(self, committed: dict[str, Offsets | KafkaError], now_ms: int) -> None:
        self._order += 1
        for group_id, offsets in committed.items():
            if isinstance(offsets, KafkaError):
                continue
            known = self.lag.groups.get(group_id)
            is_alive = known is not None and bool(known.members)
            for at, offset in offsets.items():
                place = self.lag.place(group_id, at.topic, at.partition)
                if place is not None and (is_alive or place.committed != offset):
                    self.lag.commit(place, offset, now_ms, now_ms, self._order)
            gone = [
                (topic, index)
                for topic, index, place in (known.partitions() if known is not None else ())
                if place.window and TopicPartition(topic, index) not in offsets
            ]
            for topic, index in gone:
                self.lag.remove_commits(group_id, topic, index)

    async def _read_ends(self, committed: dict[str, Offsets | KafkaError], now_ms: int) -> None:
        wanted = {
            at for offsets in committed.values() if not isinstance(offsets, KafkaError) for at in offsets
        }
        for group in self.lag.groups.values():
            wanted |= {TopicPartition(topic, index) for topic, index, _ in group.partitions()}
        await read_ends(self._admin, self.lag, sorted(wanted), now_ms)


async def read_ends(admin: Admin, lag: ClusterLag, wanted: Sequence[TopicPartition], now_ms: int) -> None:
    """Learn the ends of partitions, portion by portion."""
    for start in range(0, len(wanted), PARTITIONS_AT_ONCE):
        part = wanted[start : start + PARTITIONS_AT_ONCE]
        for at, found in (await admin.list_offsets(dict.fromkeys(part, OffsetSpec.LATEST))).items():
            if isinstance(found, FoundOffset):
                lag.ensure_partition(at.topic, at.partition)
                lag.set_end(at.topic, at.partition, found.offset, now_ms)


async def read_starts(admin: Admin, lag: ClusterLag, wanted: Sequence[TopicPartition]) -> None:
    """Learn the starts of partitions, portion by portion."""
    for start in range(0, len(wanted), PARTITIONS_AT_ONCE):
        part = wanted[start : start + PARTITIONS_AT_ONCE]
        for at, found in (await admin.list_offsets(dict.fromkeys(part, OffsetSpec.EARLIEST))).items():
            if isinstance(found, FoundOffset):
                lag.set_start(at.topic, at.partition, found.offset)
