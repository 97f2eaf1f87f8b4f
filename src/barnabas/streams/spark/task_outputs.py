"""Writing the results of a task's batch: its producer, whose standing with the brokers outlives batches.

In: tables of results. Out: records at the leaders, sent first and awaited later, so that other work fits
between. A task that writes at least once keeps its producer id and sequences until a write fails: brokers
remember each id for a day. Does not know: offsets, state.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from barnabas.client.blocking import run
from barnabas.client.core.errors import Unreachable
from barnabas.client.core.send_queue import SendQueue
from barnabas.client.core.transaction import Transaction
from barnabas.protocol import KafkaError
from barnabas.records.compression import Compression
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.producer import IN_FLIGHT_MAX, BlockingProducer
from barnabas.spark.reading.columns import HEADER_TYPE
from barnabas.spark.sink import PartitionCounts
from barnabas.spark.writing.encoding import Encoded, Encoder
from barnabas.streams.spark.task_port import OutputRecord, TaskId, TaskSettings
from barnabas.streams.spark.task_records import US_A_MS

BATCH_BYTES = 1024 * 1024
TOGETHER_ROWS_MAX = 50_000  # encoded before the first request, whose partitions are then known
IDLE_S = 3600.0  # brokers forget a producer id that writes nothing (producer.id.expiration.ms, a day)
KEPT_S = 300.0  # partition counts are asked for again after that, as Kafka's metadata.max.age.ms
WRITERS_MAX = 256
WriterKey = tuple[ClientSettings, str, TaskId]


class TaskWriter:
    """The producer of one task in this process. A failure ends it: responses may be under way."""

    def __init__(self, settings: TaskSettings, cluster: WorkerCluster) -> None:
        self.born = self.used = time.monotonic()
        self.cluster = cluster
        self.kept: Transaction | None = None  # the producer id of a task that writes at least once
        self._wait_ms = settings.wait_ms
        counts = PartitionCounts(cluster, settings.client.request_timeout_ms)
        self._encoder = Encoder(
            counts, compression=Compression.LZ4, batch_bytes=BATCH_BYTES, rng=random.Random(), level=None
        )
        self._queue: SendQueue[Encoded] = SendQueue(IN_FLIGHT_MAX)
        self._producer: BlockingProducer | None = None

    def send(self, transaction: Transaction, tables: Sequence[pa.Table]) -> None:
        """Encode and send tables; `flush` waits for the responses."""
        if not tables:
            return
        if transaction is not self.kept:
            self._queue = SendQueue(IN_FLIGHT_MAX)  # sequences begin with the epoch
        producer = BlockingProducer(
            self.cluster, self._encoder, transaction, timeout_ms=self._wait_ms, queue=self._queue
        )
        now_ms = int(time.time() * 1000)
        is_small = sum(table.num_rows for table in tables) <= TOGETHER_ROWS_MAX
        for some in [tables] if is_small else [[table] for table in tables]:
            batches = self._encoded(some, now_ms)
            producer.write(
                batches if transaction.transactional_id is None else together(transaction, batches)
            )
        producer.send_filled()
        self._producer = producer

    def _encoded(self, tables: Iterable[pa.Table], now_ms: int) -> Iterator[Encoded]:
        for table in tables:
            yield from self._encoder.batches(table, None, now_ms)

    def flush(self) -> None:
        """Wait until brokers have everything; raises what cannot be written."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush()


def together(transaction: Transaction, batches: Iterable[Encoded]) -> list[Encoded]:
    """Batches whose partitions are added to the transaction with one request."""
    found = list(batches)
    with contextlib.suppress(KafkaError, Unreachable):  # each partition is tried again before it is written
        run(transaction.add_all(batch.where for batch in found))
    return found


_writers: dict[WriterKey, TaskWriter] = {}
_clusters: dict[ClientSettings, WorkerCluster] = {}  # one task after the other uses its connections


def task_writer(settings: TaskSettings, task: TaskId) -> TaskWriter:
    """The writer that this process has for a task."""
    key = (settings.client, settings.application_id, task)
    now = time.monotonic()
    found = _writers.pop(key, None)
    if found is not None and now > found.used + IDLE_S:
        found = None
    if found is None or now > found.born + KEPT_S:
        cluster = _clusters.get(settings.client)
        if cluster is None:
            cluster = _clusters[settings.client] = WorkerCluster(settings.client)
        renewed = TaskWriter(settings, cluster)
        if found is not None:
            renewed.kept, renewed._queue = found.kept, found._queue
        found = renewed
    found.used = now
    if len(_writers) >= WRITERS_MAX:
        _writers.pop(next(iter(_writers)))
    _writers[key] = found
    return found


def drop_writers(client: ClientSettings) -> None:
    """After a failure: end the connections, and with them all producers that used them."""
    for key in [key for key in _writers if key[0] == client]:
        del _writers[key]
    cluster = _clusters.pop(client, None)
    if cluster is not None:
        run(cluster.close())


def write(
    settings: TaskSettings, cluster: WorkerCluster, transaction: Transaction, outputs: Sequence[OutputRecord]
) -> None:
    """Write records that are at hand one by one."""
    writer = TaskWriter(settings, cluster)
    writer.send(transaction, [table_of(outputs)] if outputs else [])
    writer.flush()


def table_of(outputs: Sequence[OutputRecord]) -> pa.Table:
    columns = {
        "key": pa.array([each.key for each in outputs], pa.binary()),
        "value": pa.array([each.value for each in outputs], pa.binary()),
        "topic": pa.array([each.topic for each in outputs], pa.string()),
        "timestamp": pa.array([each.timestamp * US_A_MS for each in outputs], pa.timestamp("us", tz="UTC")),
    }
    if any(each.partition is not None for each in outputs):
        columns["partition"] = pa.array([each.partition for each in outputs], pa.int32())
    if any(each.headers for each in outputs):
        columns["headers"] = pa.array([pairs(each.headers) for each in outputs], pa.list_(HEADER_TYPE))
    return pa.table(columns)


def pairs(headers: Iterable[tuple[str, bytes | None]]) -> list[dict[str, str | bytes | None]] | None:
    return [{"key": key, "value": value} for key, value in headers] or None
