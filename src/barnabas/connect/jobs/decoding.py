"""Records of topics become rows, on executors: fetched, converted, transformed.

In: ranges of offsets. Out: *packets*: rows of one topic and one pair of schemas as Arrow's bytes, with the
schemas beside them, and reports. A range is decoded once; the driver then knows all schemas, and frames are
made of the packets. Does not know: sinks.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.audit.core.buckets import WIDTH_MS
from barnabas.audit.lake.contents import by_bucket, contents_of
from barnabas.connect.data import Records
from barnabas.connect.data.arrow_shapes import fitted
from barnabas.connect.jobs.pieces import Piece
from barnabas.connect.jobs.refusals import Refusals
from barnabas.connect.jobs.reports import CONSUMER, Counts, Report
from barnabas.connect.jobs.shaping import ShapedRecords, columns_of, shaped
from barnabas.connect.plugins.spark import RecordCheck
from barnabas.connect.tasks.chain import by_topic
from barnabas.connect.tasks.raw_records import RawRecords
from barnabas.spark import worker
from barnabas.spark.basics.cluster import shared_cluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import Fetcher, OffsetRange

ROWS_MAX = 20_000  # of one packet
FETCH_MS_MAX = 120_000
COLUMNS = ("key", "value", "offset", "timestamp", "headers")
PACKETS = (
    "source string, `partition` int, first bigint, topic string, count bigint, shape binary, data binary,"
    " report string"
)
PACKETS_ARROW = pa.schema(
    [
        ("source", pa.string()),
        ("partition", pa.int32()),
        ("first", pa.int64()),
        ("topic", pa.string()),
        ("count", pa.int64()),
        ("shape", pa.binary()),
        ("data", pa.binary()),
        ("report", pa.string()),
    ]
)
HEADERS_DDL = "array<struct<key: string, value: string>>"


@dataclass(frozen=True)
class Decoding:
    piece: Piece
    client: ClientSettings
    ranges: tuple[OffsetRange, ...]  # the number of a Spark partition is the place of its range
    check: RecordCheck | None = None  # of the sink
    sink: str = ""  # its name, for dead letters

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = self.piece.open()
        refusals = None
        if self.check is not None:
            refusals = Refusals(self.check, self.sink, opened.chain.errors)
        read = written = 0
        counts: list[Counts] = []
        failure: BaseException | None = None
        cluster = shared_cluster(self.client)
        before = cluster.traffic
        try:
            for batch in batches:
                for place in batch.column(0).to_pylist():
                    asked = self.ranges[place]
                    stamps, contents = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
                    for raw in fetched(self.client, asked):
                        read += len(raw)
                        stamps.append(raw.timestamps.to_numpy(zero_copy_only=False))
                        if self.piece.has_sums:
                            contents.append(contents_of((raw.keys, raw.values), stamps[-1]))
                        for records, origin in opened.chain.decoded(asked.topic, raw):
                            for part in opened.chain.transformed(records, origin):
                                for topic, shape in shapes(part, origin, refusals):
                                    written += len(shape.records)
                                    yield packet(asked, topic, shape)
                    sums = np.concatenate(contents) if self.piece.has_sums else None
                    found = by_bucket(np.concatenate(stamps), WIDTH_MS, sums)
                    counts.append((asked.topic, asked.partition, asked.start, asked.stop, found))
            if opened.dead_letters is not None:
                opened.dead_letters.flush()
        except Exception as error:
            failure = error
        finally:
            opened.close()
        report: Report = opened.report()
        report.records_in, report.records_out, report.counts = read, written, counts
        report.used(CONSUMER, before, cluster.traffic)
        if failure is not None:
            report.failed(failure)
        worker.settle()
        row = {**dict.fromkeys(PACKETS_ARROW.names), "report": report.text()}
        yield pa.RecordBatch.from_pylist([row], schema=PACKETS_ARROW)


def fetched(client: ClientSettings, asked: OffsetRange) -> Iterator[RawRecords]:
    """The records of a range, some at a time. Offsets that retention deleted are passed over, as consumers
    with auto.offset.reset do."""
    fetcher = Fetcher(shared_cluster(client), asked, fails_on_loss=False, timeout_ms=FETCH_MS_MAX)
    table = Table(asked.topic, asked.partition, COLUMNS)
    for chunk in fetcher.chunks():
        whole = table.batch(chunk, asked.start, asked.stop)
        for start in range(0, whole.num_rows, ROWS_MAX):
            yield RawRecords.of_batch(asked.topic, asked.partition, whole.slice(start, ROWS_MAX))


def shapes(
    records: Records, origin: RawRecords, refusals: Refusals | None
) -> Iterator[tuple[str, ShapedRecords]]:
    """Records of one topic each as Arrow, without those that the sink cannot take."""
    for topic, part in by_topic(records):
        if refusals is None:
            yield topic, ShapedRecords(part, shaped(part.keys), shaped(part.values))
        else:
            for each in refusals.kept(topic, part, origin):
                yield topic, each


def packet(asked: OffsetRange, topic: str, shape: ShapedRecords) -> pa.RecordBatch:
    part = shape.records
    (key_schema, keys), (value_schema, values) = shape.keys, shape.values
    made = columns_of(topic, part, keys, values)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    row = {
        "source": asked.topic,
        "partition": asked.partition,
        "first": part.offsets[0].as_py(),
        "topic": topic,
        "count": len(part),
        "shape": pickle.dumps((key_schema, value_schema)),
        "data": sink.getvalue().to_pybytes(),
        "report": None,
    }
    return pa.RecordBatch.from_pylist([row], schema=PACKETS_ARROW)


@dataclass(frozen=True)
class Unpacking:
    """Packets of one topic as rows of one schema, in Arrow's types of Spark. `cuts` are offsets of source
    partitions behind which nothing belongs to the batch."""

    schema: pa.Schema
    cuts: Mapping[tuple[str, int], int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            places = zip(
                batch.column("source").to_pylist(), batch.column("partition").to_pylist(), strict=True
            )
            for place, data in zip(places, batch.column("data"), strict=True):
                table = pa.ipc.open_stream(data.as_buffer()).read_all()
                if place in self.cuts:
                    table = table.filter(pc.less(table.column("offset"), self.cuts[place]))
                for part in table.combine_chunks().to_batches():
                    yield self._fitted(part)

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [fitted(batch.column(each.name), each.type) for each in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
