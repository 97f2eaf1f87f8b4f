"""A light producer: gathers records into batches and sends each to its partition's leader.

In: records. Out: a `SentRecord` to await for each, or only errors through `on_failure`. One batch a partition
is on the wire at a time, so order holds and sequences stay simple; partitions go in parallel.
Does not know: transactions, serializers.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from barnabas.client.accumulator import Accumulator, PendingBatch, SentRecord, record_size
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, ConnectionLost, Unreachable, error_of
from barnabas.client.core.interceptors import (
    ProducerInterceptor,
    sent_headers,
    tell_acknowledged,
    that_send,
)
from barnabas.client.core.patience import BACKOFF_MS
from barnabas.client.core.producing import (
    TOO_LARGE,
    TOPIC_IDS_SINCE,
    WRITTEN,
    produce_request,
    produce_results,
)
from barnabas.client.core.topology import Node, Topic, TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.client.partitioner import Partitioner
from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.compression import Compression
from barnabas.records.record import Headers, Record, build_batch

WAKE_S_MAX = 0.5
METADATA_MAX_AGE_S = 300.0  # metadata.max.age.ms

OnFailure = Callable[[PendingBatch, KafkaError | ClientError], None]


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Kafka's producer settings, as far as this producer has them."""

    acks: int = -1
    linger_ms: float = 0
    batch_size_bytes: int = 16_384
    compression: Compression = Compression.NONE
    idempotence: bool = False
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    retries_max: int = 2**31 - 1
    retry_backoff_ms: float = BACKOFF_MS
    request_size_bytes_max: int = 1_048_576
    buffer_bytes_max: int = 33_554_432
    block_ms_max: int = 60_000


class NewRecord(NamedTuple):
    """A record of `send_all`. Without a partition its key decides; without a timestamp it is that of now."""

    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


class Producer:
    """`async with Producer(cluster, settings) as producer:` sends everything before it ends."""

    def __init__(
        self,
        cluster: ClusterCore,
        settings: ProducerSettings | None = None,
        *,
        on_failure: OnFailure | None = None,
        rng: Random | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
    ) -> None:
        self.cluster = cluster
        self.settings = settings or ProducerSettings()
        self._on_failure = on_failure
        self._interceptors = tuple(interceptors)
        self._senders = that_send(interceptors)
        s = self.settings
        self._partitioner = Partitioner(rng or Random(), s.batch_size_bytes)
        self._waiting = Accumulator(s.batch_size_bytes, s.linger_ms, s.delivery_timeout_ms)
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._flushing = 0
        self._in_flight: set[asyncio.Task[None]] = set()
        self._identity = Transaction(cluster)
        self._sender: asyncio.Task[None] | None = None
        self._looked_up: dict[str, float] = {}  # when the partitions of a topic were last looked up

    async def __aenter__(self) -> "Producer":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.flush()
        await self.close()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> SentRecord:
        """Hand a record over; waits only while the topic is unknown or the buffer is full."""
        timestamp = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        if self._senders:
            headers = sent_headers(self._senders, topic, headers)
        record = Record(-1, timestamp, key, value, headers)
        size = record_size(record)
        if size > self.settings.request_size_bytes_max:
            raise too_large(size, self.settings.request_size_bytes_max)
        known = await self.find_topic(topic)
        if partition is None:
            partition = self._partitioner.choose(known, key, size)
        if self._waiting.bytes_buffered + size > self.settings.buffer_bytes_max:
            await self._wait_for_room(size)
        now = asyncio.get_running_loop().time()
        sent, full = self._waiting.append(TopicPartition(topic, partition), record, size, now)
        if full or self.settings.linger_ms <= 0:
            self._wake.set()
        if full:
            await asyncio.sleep(0)  # let the sender take it, also when the caller never waits
        return sent

    async def send_all(self, topic: str, records: Sequence[NewRecord]) -> list[SentRecord | KafkaError]:
        """Hand records over together and wait until all are written or given up, in their order.

        Records without a key and a partition go to the same partition.
        """
        known = await self.find_topic(topic)
        now, now_ms = asyncio.get_running_loop().time(), int(time.time() * 1000)
        keyless: int | None = None
        sent: list[SentRecord | KafkaError] = []
        futures: set[asyncio.Future[int]] = set()
        topic_partition: TopicPartition | None = None
        last: asyncio.Future[int] | None = None
        limit = self.settings.request_size_bytes_max
        for partition, key, value, headers, timestamp_ms in records:
            if self._senders:
                headers = sent_headers(self._senders, topic, headers)
            record = Record(-1, now_ms if timestamp_ms is None else timestamp_ms, key, value, headers)
            size = record_size(record)
            if size > limit:
                sent.append(too_large(size, limit))
                continue
            if partition is None:
                partition = keyless if key is None else self._partitioner.choose(known, key, size)
            if partition is None:
                partition = keyless = self._partitioner.choose(known, None, size)
            if self._waiting.bytes_buffered + size > self.settings.buffer_bytes_max:
                self._wake.set()
                await self._wait_for_room(size)
                now = asyncio.get_running_loop().time()
            if topic_partition is None or topic_partition.partition != partition:
                topic_partition = TopicPartition(topic, partition)
            each, _ = self._waiting.append(topic_partition, record, size, now)
            sent.append(each)
            if each.done is not last:
                last = each.done
                futures.add(last)
        self._wake.set()
        if futures:
            await asyncio.wait(futures)
        return sent

    async def find_topic(self, topic: str) -> Topic:
        """The topic with its partitions. A broker may create it because it is asked for."""
        if self._sender is None:
            await self._start()
        known = self.cluster.topology.topics.get(topic)
        now = asyncio.get_running_loop().time()
        if known is not None and now >= self._looked_up.get(topic, now) + METADATA_MAX_AGE_S:
            await self._look_again(topic, now)  # partitions may have been added
            known = self.cluster.topology.topics.get(topic)
        if known is None or known.error_code or not known.partitions:
            self._looked_up.pop(topic, None)
            patience = self.cluster.patience(self.settings.block_ms_max)
            await self.cluster.partitions_of(topic, auto_create=True, patience=patience)
            known = self.cluster.topology.topics[topic]
        self._looked_up.setdefault(topic, now)
        return known

    async def _look_again(self, topic: str, now: float) -> None:
        self._looked_up[topic] = now
        try:
            await self.cluster.refresh([topic])
        except (KafkaError, ClientError):
            pass  # the known topology serves on; errors of produce requests tell if it is wrong

    async def _wait_for_room(self, size: int) -> None:
        patience = self.cluster.patience(self.settings.block_ms_max)
        while self._waiting.bytes_buffered + size > self.settings.buffer_bytes_max:
            self._room.clear()
            try:
                async with asyncio.timeout(patience.left_ms / 1000):
                    await self._room.wait()
            except TimeoutError:
                raise ClientError(
                    f"the buffer of {self.settings.buffer_bytes_max} bytes stayed full for "
                    f"{self.settings.block_ms_max} ms: brokers take records slower than they are produced"
                ) from None

    async def flush(self) -> None:
        """Wait until everything handed over so far is written or given up."""
        self._flushing += 1
        try:
            while not self._waiting.queue.is_empty():
                if self._sender is not None and self._sender.done():
                    self._sender.result()
                self._room.clear()
                self._wake.set()
                await self._room.wait()
        finally:
            self._flushing -= 1

    async def close(self) -> None:
        """Stop; what is not written by now is given up."""
        tasks = [*self._in_flight, *([self._sender] if self._sender else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for batch in self._waiting.abandon():
            self._settle(batch, ClientError("the producer was closed"))

    async def _start(self) -> None:
        if self.settings.idempotence:
            await self._identity.init()
        if self._sender is None:
            self._sender = asyncio.create_task(self._run())
            self._sender.add_done_callback(lambda _: self._room.set())

    async def _run(self) -> None:
        """Start a request for each leader that has something due, whenever something changed."""
        while True:
            pause_s = await self._dispatch()
            self._wake.clear()
            try:
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _dispatch(self) -> float:
        """Send what is due; returns how long nothing else will be."""
        now = asyncio.get_running_loop().time()
        pause_s = WAKE_S_MAX
        due: list[PendingBatch] = []
        for batch in self._waiting.queue.next_batches():
            if batch.due_at <= now or (self._flushing and not batch.attempts):
                due.append(batch)
            else:
                pause_s = min(pause_s, batch.due_at - now)
        for leader, batches in (await self._by_leader(due)).items():
            for batch in batches:
                batch.attempts += 1
                self._waiting.queue.send(batch)
            task = asyncio.create_task(self._produce(leader, batches))
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)
        return max(pause_s, 0.0)

    async def _by_leader(self, due: list[PendingBatch]) -> dict[Node, list[PendingBatch]]:
        grouped: dict[Node, list[PendingBatch]] = {}
        sizes: dict[Node, int] = {}
        for batch in due:
            try:
                leader = await self.cluster.leader_of(batch.where, self.cluster.patience(0))
            except (KafkaError, ClientError) as error:
                self._waiting.queue.block(batch.where, error)
                self._retry_or_give_up(batch, error)
                continue
            size = sizes.get(leader, 0) + batch.size_bytes
            if size > self.settings.request_size_bytes_max and leader in grouped:
                self._wake.set()
                continue
            sizes[leader] = size
            grouped.setdefault(leader, []).append(batch)
        return grouped

    async def _produce(self, leader: Node, batches: list[PendingBatch]) -> None:
        waiting = {batch.where: batch for batch in batches}
        error: KafkaError | ClientError = ConnectionLost(leader.address, "it sent no result for a batch")
        try:
            await self._send_batches(leader, waiting)
        except Unreachable as lost:
            error = lost
            self.cluster.forget_leaders({batch.where.topic for batch in batches})
        except (KafkaError, ClientError) as refusal:
            error = refusal
        except ProtocolError as broken:
            error = ClientError(f"the response of {leader.address} cannot be read: {broken}")
        for batch in waiting.values():
            self._failed(batch, error)
        self._wake.set()

    async def _send_batches(self, leader: Node, waiting: dict[TopicPartition, PendingBatch]) -> None:
        """Send batches in one request; those with a result leave `waiting`."""
        connection = await self.cluster.connection_to(leader.address)
        topics = self.cluster.topology.topics
        version = connection.version_for(ProduceRequest)
        if version >= TOPIC_IDS_SINCE and not all(partition.topic in topics for partition in waiting):
            raise ConnectionLost(connection.address, "the topic is being looked up again")
        settings = self.settings
        request = produce_request(
            ((partition, self._encode(batch)) for partition, batch in waiting.items()),
            topics,
            version,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
        )
        if settings.acks == 0:
            await connection.post(request)
            while waiting:
                self._written(waiting.popitem()[1], -1)
            return
        response = await connection.send(
            request, ProduceResponse, version=version, timeout_ms=settings.request_timeout_ms
        )
        for partition, result in produce_results(response, self.cluster.topology.topic_names()):
            batch = waiting.pop(partition, None)
            if batch is None:
                continue
            if result.error_code in WRITTEN:
                batch.append_time_ms = result.log_append_time_ms
                self._written(batch, result.base_offset)
            else:
                self._failed(batch, error_of(result.error_code, result.error_message))

    def _encode(self, batch: PendingBatch) -> bytearray:
        if self._identity.producer_id < 0:
            return build_batch(batch.records, compression=self.settings.compression)
        assert batch.base_sequence is not None
        return build_batch(
            batch.records,
            compression=self.settings.compression,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            base_sequence=batch.base_sequence,
        )

    def _written(self, batch: PendingBatch, base_offset: int) -> None:
        self._waiting.queue.acknowledged(batch)
        self._settle(batch, base_offset)

    def _failed(self, batch: PendingBatch, error: KafkaError | ClientError) -> None:
        self._waiting.queue.failed(batch, error)
        if isinstance(error, KafkaError) and error.code in TOO_LARGE and batch.count > 1:
            self._waiting.split(batch)
            self._wake.set()
            return
        if isinstance(error, KafkaError) and error.code.needs_metadata_refresh:
            self.cluster.forget_leaders([batch.where.topic])
        self._retry_or_give_up(batch, error)

    def _retry_or_give_up(self, batch: PendingBatch, error: KafkaError | ClientError) -> None:
        now = asyncio.get_running_loop().time()
        may_pass = error.code.retriable if isinstance(error, KafkaError) else isinstance(error, Unreachable)
        if may_pass and batch.attempts <= self.settings.retries_max and now < batch.give_up_at:
            batch.due_at = now + self.settings.retry_backoff_ms / 1000
            self._waiting.queue.send_again(batch.where)
        else:
            is_refusal = isinstance(error, KafkaError) and not may_pass
            self._waiting.queue.give_up(batch.where, was_refused=is_refusal)
            self._settle(batch, error)

    def _settle(self, batch: PendingBatch, result: int | KafkaError | ClientError) -> None:
        self._waiting.released(batch)
        if self._interceptors:
            tell_acknowledged(self._interceptors, batch, None if isinstance(result, int) else result)
        if isinstance(result, int):
            batch.base_offset.set_result(result)
        else:
            batch.base_offset.set_exception(result)
            batch.base_offset.exception()  # retrieved: who wants it awaits the record or gave on_failure
            if self._on_failure is not None:
                self._on_failure(batch, result)
        self._room.set()


def too_large(size: int, limit: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The message is {size} bytes when serialized which is larger than {limit}, "
        "which is the value of the max.request.size configuration.",
    )
