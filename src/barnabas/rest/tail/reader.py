"""Reads the end of a topic as it grows, for one caller.

In: a Kafka cluster, a topic, options. Out: records as they come, and notices of what was left out. The next
fetch waits until the caller took the records, so a slow caller costs one fetched response and no more. If the
log's retention passes its position, the caller gets a notice and reads on behind the gap.
Does not know: HTTP, JSON.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.admin.offsets import FoundOffset, OffsetAdmin, OffsetSpec
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.fetching import ConsumerRecord, DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.rest.kafka import Kafka
from barnabas.rest.kafka_errors import PARTITION_NOT_FOUND, refusal
from barnabas.rest.tail.options import Start, TailOptions


@dataclass(frozen=True, slots=True)
class Skipped:
    """Offsets of a partition that the caller does not get, `to` not included."""

    partition: int
    first: int
    to: int
    reason: str


class TailReader:
    """`open`, then `read` again and again; `close` at the end."""

    def __init__(self, kafka: Kafka, topic: str, options: TailOptions, fetch_bytes_max: int) -> None:
        self._cluster = kafka.new_cluster()  # fetches wait at the broker: they must not hold up others
        self._admin = OffsetAdmin(self._cluster)
        self._topic = topic
        self._options = options
        settings = ConsumerSettings(
            fetch_bytes_max=fetch_bytes_max,
            partition_fetch_bytes_max=fetch_bytes_max,
            read_committed=options.read_committed,
            on_out_of_range=OnOutOfRange.FAIL,
        )
        self._consumer = Consumer(self._cluster, settings)

    async def open(self) -> dict[int, int]:
        """Find the partitions and where to begin. Returns the next offset of each."""
        topic = (await self._cluster.topics([self._topic]))[self._topic]
        wanted = self._options.partitions or tuple(sorted(topic.partitions))
        for partition in wanted:
            if partition not in topic.partitions:
                text = f"Topic {self._topic} has no partition {partition}."
                raise refusal(404, PARTITION_NOT_FOUND, text)
        earlier = self._options.resume
        resumed = {TopicPartition(self._topic, each): at for each, at in earlier if each in wanted}
        fresh = [TopicPartition(self._topic, each) for each in wanted]
        fresh = [where for where in fresh if where not in resumed]
        self._consumer.assign(resumed)
        if fresh:
            await self._begin(fresh)
        return self.positions

    @property
    def positions(self) -> dict[int, int]:
        return {where.partition: offset for where, offset in self._consumer.positions.items()}

    async def _begin(self, fresh: list[TopicPartition]) -> None:
        options = self._options
        match options.start:
            case Start.END:
                await self._consumer.assign_at(fresh, OffsetSpec.LATEST)
            case Start.BEGINNING:
                await self._consumer.assign_at(fresh, OffsetSpec.EARLIEST)
            case Start.TIME:
                await self._consumer.assign_at(fresh, options.number)
            case Start.OFFSET:
                self._consumer.assign(dict.fromkeys(fresh, options.number))
            case Start.BEFORE_END:
                first = await self._offsets(fresh, OffsetSpec.EARLIEST)
                last = await self._offsets(fresh, OffsetSpec.LATEST)
                self._consumer.assign(
                    {where: max(first[where], last[where] - options.number) for where in fresh}
                )

    async def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        found = {}
        for where, each in (await self._admin.list_offsets(dict.fromkeys(partitions, spec))).items():
            if isinstance(each, FoundOffset):
                found[where] = each.offset
            else:
                raise each
        return found

    async def read(self, timeout_ms: float) -> tuple[list[ConsumerRecord], list[Skipped]]:
        """Records and notices; nothing when the time is up."""
        try:
            return await self._consumer.poll(timeout_ms), []
        except DamagedBatch as error:
            at = self._consumer.positions[error.where]
            self._consumer.assign({error.where: error.next_offset})
            return [], [Skipped(error.where.partition, at, error.next_offset, error.message)]
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            return [], await self._into_range()

    async def _into_range(self) -> list[Skipped]:
        partitions = list(self._consumer.positions)
        first = await self._offsets(partitions, OffsetSpec.EARLIEST)
        last = await self._offsets(partitions, OffsetSpec.LATEST)
        found = []
        for where in partitions:
            at = self._consumer.positions[where]
            if at < first[where]:
                self._consumer.assign({where: first[where]})
                reason = "these records were deleted before they were read"
                found.append(Skipped(where.partition, at, first[where], reason))
            elif at > last[where]:
                self._consumer.assign({where: last[where]})
                found.append(Skipped(where.partition, at, last[where], "the log ends before this offset"))
        return found

    async def check(self) -> None:
        """Look whether the topic is still there (NoTopic), and take partitions that were added."""
        topic = (await self._cluster.topics([self._topic]))[self._topic]
        if self._options.partitions:
            return
        known = self.positions
        added = [each for each in sorted(topic.partitions) if each not in known]
        if added:
            await self._consumer.assign_at(
                [TopicPartition(self._topic, each) for each in added], OffsetSpec.EARLIEST
            )

    async def close(self) -> None:
        await self._consumer.close()
        await self._cluster.close()
