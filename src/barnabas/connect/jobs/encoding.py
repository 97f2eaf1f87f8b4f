"""Rows of a source become records of topics, on executors.

In: Arrow batches of a slice. Out: reports, and records in topics. At least once: each piece writes its rows
as they come. Exactly once: pieces encode; then rows are brought together by the partition that they go to,
in order, and one piece writes each partition in the transaction of the driver. No two pieces may write to one
partition, because sequences of a producer id belong to it. Does not know: where rows come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any

import pyarrow as pa

from barnabas.audit.core.buckets import WIDTH_MS
from barnabas.audit.lake.topics import counts_of
from barnabas.client.core.traffic import Traffic
from barnabas.connect.data import Column, Header, Records, Schema
from barnabas.connect.data.arrow_shapes import fitted
from barnabas.connect.data.records import Headers
from barnabas.connect.jobs.pieces import OpenPiece, Piece
from barnabas.connect.jobs.reports import PRODUCER, Counts, Report
from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.connect.tasks.chain import HEADER_TYPE
from barnabas.connect.tasks.producing import TaskProducer
from barnabas.connect.tasks.topic_creation import CreationGroup, TopicCreation
from barnabas.spark import worker
from barnabas.spark.producer import OnAcknowledged
from barnabas.spark.writing.encoding import Encoded

ROWS_MAX = 20_000  # of one conversion
REPORT = "report string"
ENCODED = (
    "topic string, `partition` int, key binary, value binary, timestamp_ms bigint,"
    " headers array<struct<key: string, value: binary>>, piece int, place bigint, report string"
)
ENCODED_ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp_ms", pa.int64()),
        ("headers", HEADER_TYPE),
        ("piece", pa.int32()),
        ("place", pa.int64()),
        ("report", pa.string()),
    ]
)


@dataclass(frozen=True)
class Encoding:
    """How rows of a slice become records. `joined` is the producer id and epoch of a transaction."""

    piece: Piece
    topic: str | None
    key_schema: Schema | None
    value_schema: Schema | None
    groups: tuple[CreationGroup, ...] = ()
    transactional_id: str | None = None
    joined: tuple[int, int] | None = None

    # -- what Spark calls ------------------------------------------------------------------------------

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """At least once: convert and produce."""
        opened = self.piece.open()
        producer = self._producer(opened)
        report = Report()
        count_in = count_out = 0
        topics: set[str] = set()
        counts: list[Counts] = []
        failure: BaseException | None = None
        try:
            producer.on_acknowledged = self._counting(counts)
            producer.start()
            for table, rows in self._tables(batches, opened):
                count_in += rows
                if table is not None:
                    topics.add(table.column("topic")[0].as_py())
                    count_out += producer.write([table])
            producer.flush()
        except Exception as error:
            failure = error
        finally:
            producer.close()
            opened.close()
        report = opened.report()
        report.records_in, report.records_out, report.topics = count_in, count_out, sorted(topics)
        report.counts = counts
        report.used(PRODUCER, Traffic(), producer.traffic)
        if failure is not None:
            report.failed(failure)
        worker.settle()
        yield pa.RecordBatch.from_pydict({"report": [report.text()]})

    def encode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Exactly once, first step: convert, and choose the partition of each record."""
        opened = self.piece.open()
        producer = self._producer(opened)
        place = count_in = 0
        failure: BaseException | None = None
        try:
            for table, rows in self._tables(batches, opened):
                count_in += rows
                if table is not None:
                    topic = table.column("topic")[0].as_py()
                    chosen = producer.partitions_of(table, topic)
                    yield from encoded_rows(table, topic, chosen, opened.number, place)
                    place += table.num_rows
        except Exception as error:
            failure = error
        finally:
            producer.close()
            opened.close()
        report = opened.report()
        report.records_in = count_in
        report.used(PRODUCER, Traffic(), producer.traffic)
        if failure is not None:
            report.failed(failure)
        row = {**dict.fromkeys(ENCODED_ARROW.names), "piece": opened.number, "report": report.text()}
        yield pa.RecordBatch.from_pylist([row], schema=ENCODED_ARROW)

    def write_encoded(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Exactly once, second step: produce in the driver's transaction; reports are passed on."""
        opened = self.piece.open()
        report = opened.report()
        producer = self._producer(opened)
        assert self.joined is not None
        producer.join(*self.joined)
        producer.on_acknowledged = self._counting(report.counts)
        passed: list[str] = []
        places: set[tuple[str, int]] = set()
        try:
            for batch in batches:
                passed += [each for each in batch.column("report").to_pylist() if each is not None]
                table = pa.Table.from_batches([batch]).filter(batch.column("report").is_null())
                if not table.num_rows:
                    continue
                if not opened.is_first_attempt:
                    raise RepeatedError(
                        "a piece of the job is run again after it may have written records: the transaction"
                        " is aborted, and the slice is written again"
                    )
                places.update(zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True))
                stamps = table.column("timestamp_ms").cast(pa.timestamp("ms"))
                table = table.drop_columns(["timestamp_ms", "piece", "place", "report"])
                table = table.append_column("timestamp", stamps)
                report.records_out += producer.write([table])
            producer.flush()
        except Exception as error:
            report.failed(error)
        finally:
            producer.close()
            opened.close()
        report.used(PRODUCER, Traffic(), producer.traffic)
        report.places = sorted(places)
        report.topics = sorted({topic for topic, _ in places})
        worker.settle()
        yield pa.RecordBatch.from_pydict({"report": [*passed, report.text()]})

    # -- rows as records ---------------------------------------------------------------------------------

    def _producer(self, opened: OpenPiece) -> TaskProducer:
        return TaskProducer(
            self.piece.producer,
            Event(),
            prepare=TopicCreation(list(self.groups)) if self.groups else None,
            transactional_id=self.transactional_id,
            seed=f"{self.joined}-{opened.number}",
        )

    def _counting(self, counts: list[Counts]) -> OnAcknowledged:
        """Add the counts of each batch that the brokers have."""

        def acknowledged(batch: Encoded, append_time_ms: int) -> None:
            found = counts_of(batch, append_time_ms, WIDTH_MS, has_sums=self.piece.has_sums)
            counts.append((batch.where.topic, batch.where.partition, -1, -1, found))

        return acknowledged

    def _tables(
        self, batches: Iterator[pa.RecordBatch], opened: OpenPiece
    ) -> Iterator[tuple[pa.Table | None, int]]:
        """Encoded tables, each of one topic; and how many rows were read since the last one."""
        for whole in batches:
            for start in range(0, whole.num_rows, ROWS_MAX):
                batch = whole.slice(start, ROWS_MAX)
                yield None, batch.num_rows
                for part in opened.chain.transformed(self.records(batch)):
                    for table in opened.chain.encoded(part):
                        if table.num_rows:
                            yield table, 0

    def records(self, batch: pa.RecordBatch) -> Records:
        """Rows of the frame as records."""
        names = batch.schema.names
        values = column_of(batch.column("value"), self.value_schema)
        keys = column_of(batch.column("key"), self.key_schema) if "key" in names else None
        stamps = None
        if "timestamp" in names:
            stamps = batch.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        headers = None
        if "headers" in names:
            headers = [headers_of(each) for each in batch.column("headers").to_pylist()]
        partitions = batch.column("partition").cast(pa.int32()) if "partition" in names else None
        topic = self.topic or ""
        found = Records.of(topic, values, keys, timestamps=stamps, partitions=partitions, headers=headers)
        if "topic" not in names:
            if not topic:
                raise ConnectError("rows have no topic: give Slice(topic=…), or a column `topic`")
            return found
        from dataclasses import replace

        topics = batch.column("topic").cast(pa.string())
        if topics.null_count:
            topics = topics.fill_null(topic) if topic else topics
        if topics.null_count:
            raise ConnectError("a row has no topic in its column `topic`, and the slice names none")
        return replace(found, topics=topics.dictionary_encode())


class RepeatedError(RetriableError):
    """A task of Spark that must not be repeated was repeated."""


def column_of(data: pa.Array, schema: Schema | None) -> Column:
    schema = schema or Schema.of_arrow(data.type)
    return Column(schema, fitted(data, schema.arrow))


def headers_of(entries: list[dict[str, Any]] | None) -> Headers:
    return tuple(Header(each["key"], each["value"]) for each in entries or ())


def encoded_rows(
    table: pa.Table, topic: str, chosen: Any, piece: int, place: int
) -> Iterator[pa.RecordBatch]:
    """A table of the chain in the columns that travel between executors."""
    count = table.num_rows
    names = table.column_names
    headers = table.column("headers") if "headers" in names else pa.nulls(count, HEADER_TYPE)
    made = pa.table(
        {
            "topic": pa.array([topic] * count, pa.string()),
            "partition": pa.array(chosen, pa.int32()),
            "key": table.column("key"),
            "value": table.column("value"),
            "timestamp_ms": table.column("timestamp").cast(pa.int64()),
            "headers": headers,
            "piece": pa.array([piece] * count, pa.int32()),
            "place": pa.array(range(place, place + count), pa.int64()),
            "report": pa.nulls(count, pa.string()),
        },
        schema=ENCODED_ARROW,
    )
    yield from made.to_batches()
