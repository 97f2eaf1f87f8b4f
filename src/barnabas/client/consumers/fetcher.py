"""Fetches records when somebody asks for them, and keeps of a response what was not asked for yet.

In: partitions with positions, how many bytes are wanted, until when. Out: records in the order of offsets of
each partition, partitions in turn. One fetch a broker is on its way at most, and only while a caller wants
records; a response is kept as bytes. `Hold` says what a caller gets of it: records, decoded batch by batch,
or the bytes. So a consumer that reads slowly costs at most one response of each broker. Does not know:
groups, where positions come from.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import Unreachable, error_of
from barnabas.client.core.fetching import (
    ConsumerRecord,
    DamagedBatch,
    PartitionData,
    fetch_request,
    fetched_partitions,
    read_batches,
)
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

RETRY_S = 0.1
FETCH_BYTES = 128 * 1024  # asked for also by those that want less: many small reads need few fetches
RECORD_OVERHEAD_BYTES = 20  # of a record without key, value and headers; keeps empty records from being free
_numbers = itertools.count(1)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Fetched = list[tuple[TopicPartition, PartitionData]]


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Kafka's consumer settings of the same meaning."""

    wait_ms_max: int = 500
    bytes_max: int = 8 * 1024 * 1024  # of one response
    partition_bytes_max: int = 1024 * 1024
    read_committed: bool = False


class Held(Protocol[T_co]):
    """One partition of a response, and how far it was read."""

    @property
    def position(self) -> int:
        """The offset of the next record that was not taken."""

    @property
    def end_offset(self) -> int:
        """The end of the partition: there is more to fetch before it."""

    def pop(self, bytes_wanted: int, *, at_least_one: bool) -> tuple[Sequence[T_co], int, bool]:
        """Up to so many bytes; their number; whether there may be more."""


Hold = Callable[[TopicPartition, PartitionData, int, bool], Held[T]]  # from a position on, read committed?


def end_of(data: PartitionData, *, read_committed: bool) -> int:
    """The end of what a consumer may read."""
    return data.last_stable_offset if read_committed else data.high_watermark


class HeldRecords:
    """Records of one partition, decoded when they are wanted."""

    __slots__ = ("_batches", "_next_offset", "_ready", "_taken", "end_offset")

    def __init__(
        self, partition: TopicPartition, data: PartitionData, position: int, read_committed: bool
    ) -> None:
        self.end_offset = end_of(data, read_committed=read_committed)
        self._batches = read_batches(partition, data, position, read_committed=read_committed)
        self._next_offset = position  # behind the batches that were decoded
        self._ready: list[ConsumerRecord] = []
        self._taken = 0

    def pop(self, bytes_wanted: int, *, at_least_one: bool) -> tuple[list[ConsumerRecord], int, bool]:
        """Records of up to so many bytes; their bytes; whether there may be more."""
        taken: list[ConsumerRecord] = []
        size = 0
        while True:
            ready = self._ready
            for index in range(self._taken, len(ready)):
                record = ready[index]
                following = size + RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
                if following > bytes_wanted and (taken or not at_least_one):
                    self._taken = index
                    return taken, size, True
                taken.append(record)
                size = following
            batch = next(self._batches, None)
            self._ready, self._taken = (), 0  # type: ignore[assignment]
            if batch is None:
                return taken, size, False
            self._ready, self._next_offset = batch

    @property
    def position(self) -> int:
        """The offset of the next record that was not taken."""
        return self._ready[self._taken].offset if self._taken < len(self._ready) else self._next_offset


class OnItsWay(NamedTuple):
    task: asyncio.Task[Fetched]
    positions: dict[TopicPartition, int]


class Fetcher(Generic[T]):
    def __init__(self, cluster: ClusterCore, settings: FetchSettings, hold: Hold[T]) -> None:
        self._hold_of = hold
        self.positions: dict[TopicPartition, int] = {}  # the offset that the caller gets next
        self.paused: set[TopicPartition] = set()
        self.out_of_range: set[TopicPartition] = set()  # the caller moves these
        self._cluster = cluster
        self._settings = settings
        self._purpose = f"fetch {next(_numbers)}"  # brokers respond in order: a fetch that waits stops others
        self._held: dict[TopicPartition, Held[T]] = {}
        self._fetches: dict[Node, OnItsWay] = {}
        self._behind: set[TopicPartition] = set()  # a response said that there is more
        self._not_before: dict[TopicPartition, float] = {}
        self._interruption: asyncio.Future[None] | None = None  # of the fetch that runs

    def interrupt(self) -> None:
        """Let a `fetch` that waits come back with what it has: the partitions changed."""
        if self._interruption is not None and not self._interruption.done():
            self._interruption.set_result(None)

    def move(self, partition: TopicPartition, offset: int) -> None:
        """Go on at another offset; what was fetched is dropped."""
        self.positions[partition] = offset
        self._held.pop(partition, None)
        self._not_before.pop(partition, None)
        self._behind.discard(partition)
        self.out_of_range.discard(partition)

    def keep(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget all partitions but these."""
        kept = set(partitions)
        for partition in self.positions.keys() - kept:
            del self.positions[partition]
            self._held.pop(partition, None)
            self._not_before.pop(partition, None)
        self.paused &= kept
        self._behind &= kept
        self.out_of_range &= kept

    async def close(self) -> None:
        tasks = [each.task for each in self._fetches.values()]
        self._fetches.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._cluster.disconnect(self._purpose)

    async def fetch(self, bytes_max: int, bytes_min: int | None, until: float) -> list[T]:
        """Records of up to `bytes_max`, or a single one that is larger.

        Comes back before `until` once there are `bytes_min`; with None once everything is there that the
        partitions had. Comes back also when a partition is out of range, and after `interrupt`. KafkaError
        for a partition that cannot be read, if there are no records of others.
        """
        loop = asyncio.get_running_loop()
        interruption = self._interruption = loop.create_future()
        records: list[T] = []
        size = 0
        while True:
            size = self._move(records, size, bytes_max)
            if records and (self._has_left() or self._is_enough(size, bytes_min)):
                return records
            left_s = until - loop.time()
            if left_s <= 0 or self.out_of_range or interruption.done():
                return records
            await self._start_fetches(bytes_max - size, left_s)
            tasks = (each.task for each in self._fetches.values())
            pause_s = min(left_s, RETRY_S) if self._waits_for_leaders() else left_s
            awaited = (*tasks, interruption)
            await asyncio.wait(awaited, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
            try:
                self._harvest()
            except KafkaError:
                if not records:
                    raise
                return records  # the error comes again with the next fetch

    @property
    def has_more(self) -> bool:
        """Whether more records are known to be there than those that were returned."""
        return self._has_left() or bool(self._behind - self.paused)

    def _has_left(self) -> bool:
        """Whether records are left that did not fit."""
        return any(partition not in self.paused for partition in self._held)

    def _is_enough(self, size: int, bytes_min: int | None) -> bool:
        if bytes_min is not None:
            return size >= bytes_min
        return not self._behind - self.paused

    def _move(self, records: list[T], size: int, bytes_max: int) -> int:
        """Move records from what is held to the caller; the size of all records."""
        for partition in list(self._held):
            if partition in self.paused:
                continue
            held = self._held[partition]
            try:
                taken, taken_bytes, has_more = held.pop(bytes_max - size, at_least_one=not records)
            except DamagedBatch:
                del self._held[partition]
                if records:
                    continue  # it is fetched again, and comes first then
                raise
            records += taken
            size += taken_bytes
            # Partitions that were read go to the end, so that the others come first the next time.
            del self.positions[partition]
            self.positions[partition] = held.position
            if has_more:
                break  # the next record does not fit
            del self._held[partition]
            if held.position < held.end_offset:
                self._behind.add(partition)
            else:
                self._behind.discard(partition)
        return size

    def _idle(self) -> list[TopicPartition]:
        """Partitions that should be read and that no fetch reads."""
        busy = {partition for each in self._fetches.values() for partition in each.positions}
        busy |= self.paused | self._held.keys() | self.out_of_range
        return [partition for partition in self.positions if partition not in busy]

    def _waits_for_leaders(self) -> bool:
        """Whether a partition must be tried again soon: its leader is not known, or it was postponed."""
        leaders = self._fetches.keys()
        return any(self._cluster.topology.leader(partition) not in leaders for partition in self._idle())

    async def _start_fetches(self, bytes_wanted: int, left_s: float) -> None:
        """Ask each leader that owes no response for the partitions that it leads."""
        now = asyncio.get_running_loop().time()
        free = [partition for partition in self._idle() if self._not_before.get(partition, 0.0) <= now]
        unknown = {partition.topic for partition in free if self._cluster.topology.leader(partition) is None}
        if unknown:
            try:
                await self._cluster.refresh(unknown)
            except Unreachable:
                self._postpone(free)
                return
        grouped: dict[Node, dict[TopicPartition, int]] = {}
        for partition in free:
            leader = self._cluster.topology.leader(partition)
            if leader is None:
                self._postpone([partition])
            elif leader not in self._fetches and partition in self.positions:
                grouped.setdefault(leader, {})[partition] = self.positions[partition]
        wait_ms = max(0, min(self._settings.wait_ms_max, int(left_s * 1000)))
        for leader, positions in grouped.items():
            fetch = self._fetch(leader, positions, max(1, bytes_wanted), wait_ms)
            self._fetches[leader] = OnItsWay(asyncio.create_task(fetch), positions)

    async def _fetch(
        self, leader: Node, positions: dict[TopicPartition, int], bytes_wanted: int, wait_ms: int
    ) -> Fetched:
        try:
            connection = await self._cluster.connection_to(leader.address, self._purpose)
            version = connection.version_for(FetchRequest)
            topics = self._cluster.topology.topics
            request = fetch_request(
                positions,
                topics,
                version,
                wait_ms_max=wait_ms,
                bytes_max=min(max(bytes_wanted, FETCH_BYTES), self._settings.bytes_max),
                partition_bytes_max=min(max(bytes_wanted, FETCH_BYTES), self._settings.partition_bytes_max),
                read_committed=self._settings.read_committed,
            )
            names = {known.topic_id: name for name, _ in positions if (known := topics.get(name)) is not None}
            response = await connection.send(request, FetchResponse, version=version)
            return fetched_partitions(response, names)
        except Unreachable:
            self._postpone(positions)
            self._cluster.forget_leaders({partition.topic for partition in positions})
            return []

    def _postpone(self, partitions: Iterable[TopicPartition]) -> None:
        not_before = asyncio.get_running_loop().time() + RETRY_S
        self._not_before.update(dict.fromkeys(partitions, not_before))

    def _harvest(self) -> None:
        """Hold what complete fetches brought."""
        for leader, (task, positions) in list(self._fetches.items()):
            if task.done():
                del self._fetches[leader]
                for partition, data in task.result():
                    # A response for a position that was moved meanwhile, or given up, is dropped.
                    if partition in positions and self.positions.get(partition) == positions[partition]:
                        self._hold(partition, data, positions[partition])

    def _hold(self, partition: TopicPartition, data: PartitionData, position: int) -> None:
        if data.error_code:
            error = error_of(data.error_code)
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.out_of_range.add(partition)
            elif error.code.retriable:
                self._postpone([partition])
                self._cluster.forget_leaders([partition.topic])
            else:
                self._postpone([partition])
                raise KafkaError(error.code, f"{partition}: {error.message}")
            return
        read_committed = self._settings.read_committed
        if data.records:
            self._held[partition] = self._hold_of(partition, data, position, read_committed)
        elif position < end_of(data, read_committed=read_committed):
            self._behind.add(partition)
        else:
            self._behind.discard(partition)
