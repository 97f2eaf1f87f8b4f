"""One consumer instance: a consumer of a group, its format, and the requests that use it one after another.

In: subscriptions, seeks, reads, commits. Out: records as JSON, or ApiError. Reads of one
instance at the same time wait for each other. Does not know: HTTP's bodies, other instances.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from barnabas.client.admin.group_offsets import Committed, CommittedOffset
from barnabas.client.consumers.group_consumer import GroupConsumer
from barnabas.client.core.errors import ClientError
from barnabas.client.core.fetching import ConsumerRecord, DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.rest.formats.embedded import Formats
from barnabas.rest.formats.errors import DataMismatch, FormatError, RegistryFailure
from barnabas.rest.formats.names import DataFormat
from barnabas.rest.kafka_errors import FAILED
from barnabas.rest.v2.consumers.budget import FIRST_SHARE_BYTES, Share, no_room
from barnabas.rest.v2.consumers.instance_settings import InstanceSettings
from barnabas.services.errors import ApiError

ILLEGAL_STATE = 40903
REGISTRY_FAILED = 40801
EXCLUSIVE = "Subscription to topics, partitions and pattern are mutually exclusive."

ON_LOOP_RECORDS_MAX = 1_000  # some milliseconds; more are decoded in a thread
ON_LOOP_CODED_MAX = 50  # records with schemas take longer


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much a read wants, and for how long it waits. Without `bytes_min` it wants all that is there."""

    timeout_ms: float
    bytes_max: int
    bytes_min: int | None


class Instance:
    """`owner` is the principal that made it."""

    def __init__(self, owner: object, consumer: GroupConsumer, settings: InstanceSettings) -> None:
        self.owner = owner
        self.settings = settings
        self.consumer = consumer
        self.on_close: Callable[[], Awaitable[None]] | None = None
        self.used_at = 0.0
        self.users = 0  # requests that use it or wait for it
        self.is_closed = False
        self._one_at_a_time = asyncio.Lock()

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[GroupConsumer]:
        """The consumer, for one request at a time."""
        loop = asyncio.get_running_loop()
        self.users += 1
        try:
            async with self._one_at_a_time:
                if self.is_closed:
                    raise no_instance()
                yield self.consumer
        finally:
            self.users -= 1
            self.used_at = loop.time()

    async def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        try:
            async with self._one_at_a_time:
                await self.consumer.close()
        finally:
            if self.on_close is not None:
                await self.on_close()

    # -- topics and positions ----------------------------------------------------------------------

    async def subscribe(self, topics: Iterable[str] | Callable[[str], bool]) -> None:
        async with self.in_use() as consumer:
            try:
                if callable(topics):
                    await consumer.subscribe_matching(topics)
                else:
                    await consumer.subscribe(topics)
            except ValueError:
                raise illegal_state(EXCLUSIVE) from None

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        async with self.in_use() as consumer:
            try:
                consumer.assign(partitions)
            except ValueError:
                raise illegal_state(EXCLUSIVE) from None

    async def seek(
        self, offsets: Mapping[TopicPartition, int], moments: Mapping[TopicPartition, int]
    ) -> None:
        """Go to offsets, and to where timestamps or the specs of ListOffsets point to: all or nothing."""
        async with self.in_use() as consumer:
            for topic_partition in (*offsets, *moments):
                if topic_partition not in consumer.assignment:
                    raise illegal_state(f"No current assignment for partition {topic_partition}")
            try:
                if moments:
                    await consumer.seek_to(moments)
                for topic_partition, offset in offsets.items():
                    consumer.seek(topic_partition, offset)
            except ValueError as error:  # a rebalance took it away meanwhile
                raise illegal_state(f"No current assignment: {error}") from None

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None) -> None:
        async with self.in_use() as consumer:
            await consumer.commit(offsets)

    async def committed(self, partitions: Iterable[TopicPartition]) -> Committed:
        async with self.in_use() as consumer:
            return await consumer.committed(partitions)

    # -- records -----------------------------------------------------------------------------------

    async def read(self, formats: Formats, wanted: Wanted, share: Share) -> list[str]:
        """Records as JSON texts. The share grows as far as there are records and room."""
        async with self.in_use() as consumer:
            if not consumer.has_subscription and not consumer.assignment:
                raise illegal_state("Consumer is not subscribed to any topics or assigned any partitions")
            texts: list[str] = []
            began: dict[TopicPartition, int] = {}
            try:
                async for some in self._pieces(consumer, formats, wanted, share, began):
                    texts += some
            except (ApiError, KafkaError, ClientError):
                if not texts:
                    raise  # with records before it, the error comes first in the next read
            except BaseException:
                go_back(consumer, began)
                raise
            return texts

    async def _pieces(
        self,
        consumer: GroupConsumer,
        formats: Formats,
        wanted: Wanted,
        share: Share,
        began: dict[TopicPartition, int],
    ) -> AsyncIterator[list[str]]:
        """Pieces of a response, each as large as all before it. `began` gets the first offset of each
        partition."""
        loop = asyncio.get_running_loop()
        until = loop.time() + wanted.timeout_ms / 1000
        left = max(1, wanted.bytes_max)
        bytes_min = wanted.bytes_min
        size = min(left, max(FIRST_SHARE_BYTES, bytes_min or 0))
        if not share.grow(size):
            raise no_room(share.budget)
        while True:
            records = await self._poll(consumer, max(0.0, until - loop.time()) * 1000, size, bytes_min)
            begin(began, records)
            yield await self._decode(consumer, formats, records)
            left -= size
            size = min(left, share.bytes_reserved)
            if not records or not consumer.has_more or size <= 0 or loop.time() >= until:
                return
            if not share.grow(size):
                return
            bytes_min = None

    async def _poll(
        self, consumer: GroupConsumer, timeout_ms: float, bytes_max: int, bytes_min: int | None
    ) -> list[ConsumerRecord]:
        try:
            return await consumer.poll(timeout_ms, bytes_max=bytes_max, bytes_min=bytes_min)
        except DamagedBatch as error:
            hint = f"seek to {error.next_offset} to go on"
            raise KafkaError(error.code, f"{error.message}; {hint}") from error

    async def _decode(
        self, consumer: GroupConsumer, formats: Formats, records: list[ConsumerRecord]
    ) -> list[str]:
        """Decode up to the first record that cannot be; the next read begins with that one."""
        data = self.settings.format
        problems: Mapping[int, FormatError] = {}
        if data.schema_type is not None:
            payloads = [each for record in records for each in (record.key, record.value)]
            problems = await formats.prepare(data, payloads)
        if len(records) > (ON_LOOP_RECORDS_MAX if data.schema_type is None else ON_LOOP_CODED_MAX):
            texts, failure = await asyncio.to_thread(decode, formats, data, records)
        else:
            texts, failure = decode(formats, data, records)
        if failure is not None:
            go_back(consumer, begin({}, records[len(texts) :]))
            if not texts:
                raise explained(records[0], failure, problems)
        return texts


def decode(
    formats: Formats, data: DataFormat, records: list[ConsumerRecord]
) -> tuple[list[str], DataMismatch | None]:
    """Records as JSON texts, and the error of the one behind them."""
    texts: list[str] = []
    decode_text = formats.text_decoder(data)
    last, begin = None, ""
    try:
        for topic, partition, offset, _, _, _, key, value, _ in records:
            if topic is not last:
                last, begin = topic, f'{{"topic":{json.dumps(topic)},"key":'
            key_text = "null" if key is None else decode_text(key)
            value_text = "null" if value is None else decode_text(value)
            texts.append(
                f'{begin}{key_text},"value":{value_text},"partition":{partition},"offset":{offset}}}'
            )
    except DataMismatch as error:
        return texts, error
    return texts, None


def begin(began: dict[TopicPartition, int], records: list[ConsumerRecord]) -> dict[TopicPartition, int]:
    """Note the first offset of each partition that has none yet."""
    topic, partition = "", -1
    for record in records:  # those of a partition come one after another
        if record[1] != partition or record[0] != topic:
            topic, partition = record[:2]
            began.setdefault(TopicPartition(topic, partition), record.offset)
    return began


def go_back(consumer: GroupConsumer, offsets: Mapping[TopicPartition, int]) -> None:
    """Go back to records that are not returned."""
    for topic_partition, offset in offsets.items():
        if topic_partition in consumer.assignment:
            consumer.seek(topic_partition, offset)


def explained(record: ConsumerRecord, failure: DataMismatch, problems: Mapping[int, FormatError]) -> ApiError:
    for problem in problems.values():
        if isinstance(problem, RegistryFailure):
            return ApiError(408, REGISTRY_FAILED, str(problem))
    place = f"offset {record.offset} of {record.topic}-{record.partition}"
    message = f"The record at {place} cannot be read: {failure}. Seek to offset {record.offset + 1} to go on."
    return ApiError(500, FAILED, message)


def illegal_state(message: str) -> ApiError:
    return ApiError(409, ILLEGAL_STATE, message)


def no_instance() -> ApiError:
    return ApiError(404, 40403, "Consumer instance not found.")
