"""The sink `barnabas`: rows of a batch or of a stream are written to topics.

In: Arrow record batches, one iterator a task. Out: acknowledged records. At least once by default: a task
that is tried again writes its rows again. With `exactlyOnce` a task writes in one transaction, which also
records the batch it belongs to; a task that is tried again, after whatever died, finds that record and writes
nothing.
Does not know: how rows are encoded, how batches travel.
"""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from barnabas.client.blocking import run
from barnabas.client.core.errors import BootstrapError, ClientError, NoTopic
from barnabas.client.core.topology import Topic, TopicPartition
from barnabas.client.core.transaction import Fenced, Transaction
from barnabas.protocol import KafkaError
from barnabas.spark import worker
from barnabas.spark.basics.cluster import WorkerCluster, shared_cluster
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.formats.formats import encode_column
from barnabas.spark.producer import BlockingProducer
from barnabas.spark.sink_options import COLUMN_TYPES, SinkOptions
from barnabas.spark.writing.encoding import Encoded, Encoder

if TYPE_CHECKING:
    import pyarrow as pa

CHECK_MS = 5000  # topics that were just created and brokers that restart need some time
BYTES_AT_ONCE = 4 * 1024 * 1024
BATCH_PROPERTY = "streaming.sql.batchId"
QUERY_PROPERTY = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class Work:
    """The part of a query's output that a task writes: the same for every attempt."""

    query: str
    batch: int
    task: int

    @property
    def transactional_id(self) -> str:
        return f"barnabas-sink-{self.query}-{self.task}"


@dataclass
class Written(WriterCommitMessage):
    rows: int
    was_there: bool = False


class PartitionCounts(dict[str, int]):
    """Asked for when a topic comes up."""

    def __init__(self, cluster: WorkerCluster, timeout_ms: int) -> None:
        super().__init__()
        self._cluster = cluster
        self._timeout_ms = timeout_ms

    def __missing__(self, topic: str) -> int:
        count = self[topic] = len(topics(self._cluster, [topic], self._timeout_ms)[topic].partitions)
        return count


def topics(cluster: WorkerCluster, names: list[str], timeout_ms: int) -> dict[str, Topic]:
    """The topics of these names. As for other producers, a cluster with `auto.create.topics.enable` creates
    those that do not exist; they are waited for."""
    patience = cluster.patience(timeout_ms)
    return run(cluster.retrying(lambda: cluster.topics(names, auto_create=True), patience=patience))


def check_target(options: SinkOptions) -> None:
    """Before a batch is written: is anybody there, and does the topic exist?"""
    names = [] if options.topic is None else [options.topic]
    cluster = WorkerCluster(options.client)
    try:
        topics(cluster, names, min(CHECK_MS, options.delivery_timeout_ms))
    except NoTopic as error:
        raise OptionError(
            f"the option topic names {error.name}: there is no such topic, and the cluster creates none"
            " (auto.create.topics.enable)"
        ) from None
    except BootstrapError as error:
        raise OptionError(f"the option kafka.bootstrap.servers: {error}") from None
    finally:
        run(cluster.close())


def write_rows(options: SinkOptions, batches: Iterator[pa.RecordBatch], work: Work | None) -> Written:
    # Requests under way must not mix with questions of the transaction: each has connections of its own.
    cluster = WorkerCluster(options.client)
    coordinators = shared_cluster(options.client)
    transaction = Transaction(
        coordinators,
        None if work is None else work.transactional_id,
        timeout_ms=options.transaction_timeout_ms,
        wait_ms=options.delivery_timeout_ms,
    )
    try:
        run(transaction.init())
        counts = PartitionCounts(cluster, options.client.request_timeout_ms)
        record = None
        if work is not None:
            topic, batches = some_topic(options, batches)
            if topic is None:
                return Written(0)
            counts[topic]  # it must exist before anything is written
            record = Record(work, transaction, TopicPartition(topic, 0))
            if record.is_there():
                return Written(sum(batch.num_rows for batch in batches), was_there=True)
        encoder = Encoder(
            counts,
            compression=options.compression,
            batch_bytes=options.batch_bytes,
            rng=random.Random(),
            level=options.compression_level,
        )
        writings = [each.writing(coordinators) for each in options.interceptors.make(options.client)]

        def acknowledged(batch: Encoded, append_time_ms: int) -> None:
            for each in writings:
                each.acknowledged(batch, append_time_ms)

        producer = BlockingProducer(
            cluster,
            encoder,
            transaction,
            timeout_ms=options.delivery_timeout_ms,
            on_acknowledged=acknowledged if writings else None,
        )
        rows = 0
        for table in (encoded(options, each) for each in tables(batches)):
            rows += table.num_rows
            producer.write(encoder.batches(table, options.topic, int(time.time() * 1000)))
        if writings:
            producer.flush()  # they see what the brokers have
        for each in writings:
            if (more := each.rows()) is not None:
                producer.write(encoder.batches(more, None, int(time.time() * 1000)))
        producer.flush()
        if record is not None:
            record.write()
            run(transaction.end(commit=True))
        return Written(rows)
    except BaseException:
        # Readers need not wait until the transaction's time is over. Somebody who took over has ended it.
        with contextlib.suppress(Fenced, KafkaError, ClientError):
            run(transaction.end(commit=False))
        raise
    finally:
        run(cluster.close())
        worker.settle()


class Record:
    """The record that a transaction leaves of itself: an offset committed in it, in a group of its own.

    The group alone names the record. Its partition may differ from attempt to attempt, because a task that is
    tried again may get its rows in another order."""

    def __init__(self, work: Work, transaction: Transaction, place: TopicPartition) -> None:
        self._work = work
        self._transaction = transaction
        self._place = place

    def is_there(self) -> bool:
        """Whether this batch was written before."""
        return run(self._transaction.highest_committed(self._work.transactional_id)) >= self._work.batch

    def write(self) -> None:
        work = self._work
        run(self._transaction.commit_offset(work.transactional_id, self._place, work.batch, work.query))


def some_topic(
    options: SinkOptions, batches: Iterator[pa.RecordBatch]
) -> tuple[str | None, Iterator[pa.RecordBatch]]:
    """A topic at which the record can be kept: the option's, or that of the first row. None without rows."""
    if options.topic is not None:
        return options.topic, batches
    for batch in batches:
        if batch.num_rows:
            topic: str | None = batch.column("topic")[0].as_py()
            return topic, chain([batch], batches)
    return None, batches


def encoded(options: SinkOptions, table: pa.Table) -> pa.Table:
    """The columns that are written; those with a format as bytes."""
    if unused := unused_columns(options, table.schema):
        table = table.drop_columns(unused)
    for each in options.formats:
        if each.side in table.column_names:
            place = table.column_names.index(each.side)
            table = table.set_column(place, each.side, encode_column(each.codec(), table.column(place)))
    return table


def unused_columns(options: SinkOptions, schema: pa.Schema) -> list[str]:
    """Columns that are no part of a record. As in Spark's connector, the option `topic` overrides the
    column."""
    import pyarrow as pa

    unused = [name for name in schema.names if name not in COLUMN_TYPES]
    if options.topic is not None and "topic" in schema.names:
        unused.append("topic")
    if "timestamp" in schema.names and not pa.types.is_timestamp(schema.field("timestamp").type):
        unused.append("timestamp")
    return unused


def tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Several Arrow batches at once: the more rows, the larger the batches of each partition."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= BYTES_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._id = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        work = None
        if self._options.is_exactly_once:
            work = Work(self._id, 0, task().partitionId())
        return write_rows(self._options, iterator, work)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        work = None
        if self._options.is_exactly_once:
            query, batch = (task().getLocalProperty(name) for name in (QUERY_PROPERTY, BATCH_PROPERTY))
            if query is None or batch is None:
                raise RuntimeError("exactlyOnce needs the query's id and batch, which Spark did not tell")
            work = Work(query, int(batch), task().partitionId())
        return write_rows(self._options, iterator, work)


def task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    return context
