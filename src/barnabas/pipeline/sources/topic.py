"""Topics of any Kafka cluster: ranges of offsets, fetched by Spark's Python workers straight into Arrow.

In: the source, a position (offsets by topic and partition). Out: slices. The driver plans the ranges with one
or two requests; each Spark task fetches one range with our own protocol code.
Does not know: what is in the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.client.core.errors import Unreachable
from barnabas.engine.errors import NeedsDecision, SourceUnavailable
from barnabas.engine.secrets import SecretError, reveal, revealed
from barnabas.pipeline.sources.pacing import Pacing
from barnabas.pipeline.sources.source_slice import RAW_COLUMNS, RAW_DDL, Position, SourceSlice, Stamp
from barnabas.pipeline.spec.model import Merging, TopicSource
from barnabas.protocol import KafkaError
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.decoding import Decoding
from barnabas.spark.options import SourceOptions, source_options
from barnabas.spark.planner import Planner
from barnabas.spark.planning import limited, split
from barnabas.spark.positions import Offsets, from_checkpoint, to_checkpoint
from barnabas.spark.reading.fetcher import DataLoss, OffsetRange
from barnabas.spark.source import read_range

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

# Rows of a batch, unless the source says otherwise: a bound for memory and for what a crash repeats.
ROWS_PER_BATCH_MAX = 1_000_000
REST = 1.25  # a batch may exceed its limit by this factor if that empties the topic
ROWS_PER_TASK = 500_000  # each task writes a file: fewer tasks make fewer files
STAMPED_DDL = (
    f"{RAW_DDL}, metadata string, source string, batch bigint, ingested_at timestamp, late_before timestamp"
)


def client_id_of(pipeline: str, source: str) -> str:
    return f"barnabas-{pipeline}-{source}"


def options_of(source: TopicSource, client_id: str) -> SourceOptions:
    """Options of the data source `barnabas`, with secrets revealed."""
    given: dict[str, str] = {
        "kafka.bootstrap.servers": reveal(source.bootstrap_servers),
        "kafka.client.id": client_id,
        "startingOffsets": source.starting,
        "columns": ",".join(RAW_COLUMNS),
        "fetchOffset.numRetries": "1",
        "kafkaConsumer.pollTimeoutMs": "30000",
        "kafka.isolation.level": "read_committed",
        **revealed(source.settings),
    }
    given["subscribePattern" if source.pattern else "subscribe"] = source.pattern or source.subscribe
    return source_options(given, streaming=True)


class TopicReader:
    def __init__(self, spark: SparkSession, source: TopicSource, client_id: str) -> None:
        self._spark = spark
        self._source = source
        # Clusters are cached by client id and are not thread-safe, so each reader has its own id.
        self._client_id = client_id
        self._options: SourceOptions | None = None
        self._planner: Planner | None = None
        self._pacing = Pacing(source.bandwidth_bytes_s)

    @property
    def waits_s(self) -> float:
        return self._pacing.waits_s

    def start(self) -> Position | None:
        """`latest` means the end at the first start, so that position is kept."""
        if self._source.starting == "earliest":
            return None

        def ask(planner: Planner) -> Position:
            return to_checkpoint(planner.resolve(self._ready().starting, planner.places()))

        return self._asked(ask)

    def next(self, position: Position | None) -> SourceSlice | None:
        if not self._pacing.may_read():
            return None
        begin = from_checkpoint(position or {})
        ranges, end = self._asked(lambda planner: self._plan(planner, begin))
        if not any(each.stop > each.start for each in ranges):
            return None
        rows_planned = sum(each.stop - each.start for each in ranges)
        merging = Merging.UPSERT if self._source.changes else Merging.INSERT_NEW
        return SourceSlice(
            lambda stamp: self._frame(ranges, stamp),
            to_checkpoint({**begin, **end}),
            merging,
            is_stable=True,
            facts={"offsets": rows_planned},
        )

    def goal(self) -> Position | None:
        return to_checkpoint(self._asked(lambda planner: planner.latest(planner.places())))

    def has_reached(self, position: Position, goal: Position | None) -> bool:
        there = from_checkpoint(position)
        return all(there.get(place, 0) >= end for place, end in from_checkpoint(goal or {}).items())

    def lag(self, position: Position | None) -> int | None:
        begin = from_checkpoint(position or {})

        def ask(planner: Planner) -> int:
            latest = planner.latest(planner.places())
            return sum(max(offset - begin.get(place, 0), 0) for place, offset in latest.items())

        return self._asked(ask)

    def done(self, source_slice: SourceSlice, bytes_read: int) -> None:
        self._pacing.was_read(bytes_read, source_slice.facts.get("offsets", 0))

    def between(
        self, start_ms: int, end_ms: int, stamp: Stamp, rows_max: int
    ) -> Iterator[tuple[int, int, DataFrame]]:
        """Rows from the first one at `start_ms` or later to before the first one at `end_ms` or later, for
        backfills: pieces of about `rows_max` rows, each with the least and the greatest offset that it may
        have. Rows of earlier times may be among them."""

        def ask(planner: Planner) -> list[OffsetRange]:
            places = planner.places()
            begin, end = planner.at_time(places, start_ms), planner.at_time(places, end_ms)
            return self._ranges(planner, begin, end)

        for piece in grouped(split(self._asked(ask), None, rows_max), rows_max):
            yield (
                min(each.start for each in piece),
                max(each.stop for each in piece),
                self._frame(piece, stamp),
            )

    # -- planning --------------------------------------------------------------------------------

    def _plan(self, planner: Planner, begin: Offsets) -> tuple[list[OffsetRange], Offsets]:
        latest = planner.latest(planner.places())
        new = [place for place in latest if place not in begin]
        begin = {**begin, **planner.earliest(new)}
        rows_max = self._source.rows_per_batch_max or ROWS_PER_BATCH_MAX
        rows_max = min(rows_max, self._pacing.rows_max(rows_max))
        waiting = sum(max(latest[place] - begin[place], 0) for place in latest)
        if self._source.bandwidth_bytes_s is None and waiting <= rows_max * REST:
            return self._ranges(planner, begin, latest), latest
        end = limited(begin, latest, rows_max)
        return self._ranges(planner, begin, end), end

    def _ranges(self, planner: Planner, begin: Offsets, end: Offsets) -> list[OffsetRange]:
        found = [each for each in planner.ranges(begin, end) if each.stop > each.start]
        # Split large ranges: one partition would use one core only.
        least = min(self._cores(), max(sum(each.stop - each.start for each in found) // 20_000, 1))
        return split(found, least, None) if least > len(found) else found

    def _cores(self) -> int:
        try:
            return int(self._spark.sparkContext.defaultParallelism)
        except Exception:  # Spark Connect has no context
            return 2

    def _ready(self) -> SourceOptions:
        if self._options is None:
            self._options = options_of(self._source, self._client_id)
        return self._options

    def _asked(self, ask: Callable[[Planner], T]) -> T:
        try:
            options = self._ready()
            if self._planner is None:
                self._planner = Planner(options)
            return ask(self._planner)
        except DataLoss as error:
            raise NeedsDecision(f"source {self._source.name}: {error}") from error
        except (OptionError, SecretError) as error:
            raise NeedsDecision(f"source {self._source.name}: {error}") from error
        except (Unreachable, KafkaError, OSError, ValueError) as error:
            self._planner = None
            raise SourceUnavailable(f"source {self._source.name} cannot be read: {error}") from error

    # -- reading ---------------------------------------------------------------------------------

    def _frame(self, ranges: list[OffsetRange], stamp: Stamp) -> DataFrame:
        from pyspark.sql.types import StructType

        options = self._ready()
        decoding = Decoding(options, StructType())
        tasks = min(
            len(ranges), max(self._cores(), sum(each.stop - each.start for each in ranges) // ROWS_PER_TASK)
        )
        return self._spark.range(0, len(ranges), 1, max(tasks, 1)).mapInArrow(
            fetching(options, decoding, ranges, stamp), STAMPED_DDL
        )


def grouped(ranges: list[OffsetRange], rows_max: int) -> Iterator[list[OffsetRange]]:
    """Neighbouring ranges together, up to `rows_max` rows."""
    piece: list[OffsetRange] = []
    for each in ranges:
        if piece and sum(one.stop - one.start for one in (*piece, each)) > rows_max:
            yield piece
            piece = []
        piece.append(each)
    if piece:
        yield piece


def fetching(options: SourceOptions, decoding: Decoding, ranges: list[OffsetRange], stamp: Stamp) -> Any:
    """Fetch ranges in a worker. The stamp comes as columns: literals would make Spark compile every batch
    anew."""

    def fetch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for rows in read_range(options, decoding, ranges[index]):
                    yield with_stamp(rows, stamp)

    return fetch


def with_stamp(rows: pa.RecordBatch, stamp: Stamp) -> pa.RecordBatch:
    import pyarrow as pa

    count = len(rows)
    time = pa.timestamp("us", tz="UTC")
    columns = {
        "metadata": pa.nulls(count, pa.string()),
        "source": pa.repeat(pa.scalar(stamp.source), count),
        "batch": pa.repeat(pa.scalar(stamp.batch, pa.int64()), count),
        "ingested_at": pa.repeat(pa.scalar(stamp.ingested_at, time), count),
        "late_before": pa.repeat(pa.scalar(stamp.late_before, time), count),
    }
    arrays = [*rows.columns, *columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=[*rows.schema.names, *columns])
