"""A light consumer of partitions named by the caller: no group, no commits, positions kept here.

In: partitions with the offset to start at. Out: records, as they come, from all leaders at once. The next
fetch of a broker runs while the caller handles the records of the last one. One response of each broker is
kept. Does not know: groups, deserializers.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from barnabas.client.admin.offsets import FoundOffset, OffsetAdmin, OffsetSpec
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import Unreachable, error_of
from barnabas.client.core.fetching import (
    FETCH,
    ConsumerRecord,
    DamagedBatch,
    PartitionData,
    fetch_request,
    fetched_partitions,
    read_partition,
)
from barnabas.client.core.interceptors import ConsumerInterceptor, tell_consumed
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

RETRY_S = 0.1


class OnOutOfRange(Enum):
    """The position to go on at when the log does not hold the old one any more (`auto.offset.reset`)."""

    EARLIEST = OffsetSpec.EARLIEST
    LATEST = OffsetSpec.LATEST
    FAIL = None


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    fetch_wait_ms_max: int = 500
    fetch_bytes_min: int = 1
    fetch_bytes_max: int = 52_428_800
    partition_fetch_bytes_max: int = 1_048_576
    read_committed: bool = False
    on_out_of_range: OnOutOfRange = OnOutOfRange.LATEST


Fetched = list[tuple[TopicPartition, PartitionData]]


class Consumer:
    """`assign`, then `poll` again and again; `close` at the end."""

    def __init__(
        self,
        cluster: ClusterCore,
        settings: ConsumerSettings | None = None,
        *,
        interceptors: Sequence[ConsumerInterceptor] = (),
    ) -> None:
        self.cluster = cluster
        self.settings = settings or ConsumerSettings()
        self._interceptors = tuple(interceptors)
        self.positions: dict[TopicPartition, int] = {}
        self._fetches: dict[Node, asyncio.Task[Fetched]] = {}
        self._fetching: set[TopicPartition] = set()
        self._not_before: dict[TopicPartition, float] = {}
        self._damaged: DamagedBatch | None = None  # met beside records of other partitions

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions too, each from its offset."""
        self.positions.update(positions)

    async def assign_at(self, partitions: Iterable[TopicPartition], spec: int) -> None:
        """Read from where an OffsetSpec or a timestamp points to; behind the last record if nowhere."""
        wanted = dict.fromkeys(partitions, spec)
        admin = OffsetAdmin(self.cluster)
        found = await admin.list_offsets(wanted, read_committed=self.settings.read_committed)
        unmatched = [
            partition
            for partition, each in found.items()
            if isinstance(each, FoundOffset) and each.offset < 0
        ]
        if unmatched:
            found |= await admin.list_offsets(dict.fromkeys(unmatched, OffsetSpec.LATEST))
        for partition, each in found.items():
            if isinstance(each, KafkaError):
                raise each
            self.positions[partition] = each.offset

    async def poll(self, timeout_ms: float) -> list[ConsumerRecord]:
        """Records of one response, or none when the time is up. After a `DamagedBatch`, assign the partition
        behind the batch to go on."""
        if self._damaged is not None:
            damaged, self._damaged = self._damaged, None
            raise damaged
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            await self._start_fetches()
            left_s = deadline - loop.time()
            tasks = list(self._fetches.values())
            if tasks:
                pause_s = max(0.0, min(left_s, RETRY_S) if self._waits_for_leaders() else left_s)
                await asyncio.wait(tasks, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(max(0.0, min(left_s, RETRY_S)))
            for leader, task in list(self._fetches.items()):
                if task.done():
                    del self._fetches[leader]
                    records = await self._harvest(leader, task)
                    if records:
                        await self._start_fetches()
                        if self._interceptors:
                            tell_consumed(self._interceptors, records)
                        return records
            if loop.time() >= deadline:
                return []

    async def close(self) -> None:
        tasks = list(self._fetches.values())
        self._fetches.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _waits_for_leaders(self) -> bool:
        return any(partition not in self._fetching for partition in self.positions)

    async def _start_fetches(self) -> None:
        """Ask each leader that owes no response for the partitions that it leads."""
        now = asyncio.get_running_loop().time()
        free = [
            partition
            for partition in self.positions
            if partition not in self._fetching and self._not_before.get(partition, 0.0) <= now
        ]
        unknown = {partition.topic for partition in free if self.cluster.topology.leader(partition) is None}
        if unknown:
            try:
                await self.cluster.refresh(unknown)
            except Unreachable:
                self._postpone(free)
                return
        grouped: dict[Node, list[TopicPartition]] = {}
        for partition in free:
            leader = self.cluster.topology.leader(partition)
            if leader is None:
                self._postpone([partition])
            elif leader not in self._fetches:
                grouped.setdefault(leader, []).append(partition)
        for leader, partitions in grouped.items():
            self._fetching.update(partitions)
            self._fetches[leader] = asyncio.create_task(self._fetch(leader, partitions))

    def _postpone(self, partitions: Iterable[TopicPartition]) -> None:
        not_before = asyncio.get_running_loop().time() + RETRY_S
        self._not_before.update(dict.fromkeys(partitions, not_before))

    async def _fetch(self, leader: Node, partitions: list[TopicPartition]) -> Fetched:
        try:
            return await self._ask(leader, partitions)
        except Unreachable:
            self._postpone(partitions)
            self.cluster.forget_leaders({partition.topic for partition in partitions})
            return []
        finally:
            self._fetching.difference_update(partitions)

    async def _ask(self, leader: Node, partitions: list[TopicPartition]) -> Fetched:
        connection = await self.cluster.connection_to(leader.address, FETCH)
        version = connection.version_for(FetchRequest)
        settings = self.settings
        topics = self.cluster.topology.topics
        request = fetch_request(
            {partition: self.positions[partition] for partition in partitions},
            topics,
            version,
            wait_ms_max=settings.fetch_wait_ms_max,
            bytes_min=settings.fetch_bytes_min,
            bytes_max=settings.fetch_bytes_max,
            partition_bytes_max=settings.partition_fetch_bytes_max,
            read_committed=settings.read_committed,
        )
        names = {known.topic_id: name for name, _ in partitions if (known := topics.get(name)) is not None}
        response = await connection.send(request, FetchResponse, version=version)
        return fetched_partitions(response, names)

    async def _harvest(self, leader: Node, task: "asyncio.Task[Fetched]") -> list[ConsumerRecord]:
        records: list[ConsumerRecord] = []
        for partition, data in task.result():
            position = self.positions.get(partition)
            if position is None:
                continue
            if data.error_code:
                await self._handle_error(partition, error_of(data.error_code))
                continue
            try:
                found, self.positions[partition] = read_partition(
                    partition, data, position, read_committed=self.settings.read_committed
                )
            except DamagedBatch as error:
                self._damaged = error
                continue
            records += found
        # The partitions that were read go to the end: those behind them come first the next time.
        for partition, _ in task.result():
            if partition in self.positions:
                self.positions[partition] = self.positions.pop(partition)
        if self._damaged is not None and not records:
            damaged, self._damaged = self._damaged, None
            raise damaged
        return records

    async def _handle_error(self, partition: TopicPartition, error: KafkaError) -> None:
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self.settings.on_out_of_range is OnOutOfRange.FAIL:
                raise KafkaError(
                    error.code, f"offset {self.positions[partition]} of {partition} is not in the log"
                )
            await self.assign_at([partition], self.settings.on_out_of_range.value)
        elif error.code.retriable:
            self._postpone([partition])
            self.cluster.forget_leaders([partition.topic])
        else:
            raise KafkaError(error.code, f"{partition}: {error.message}")
