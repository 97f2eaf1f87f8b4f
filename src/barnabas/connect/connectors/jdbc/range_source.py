"""The JDBC source as a Spark job: executors read ranges of keys side by side.

Mode `incrementing` continues behind the last number; mode `bulk` reads whole tables, again and again, slice
by slice. Offsets are stored after each slice, so a restart continues inside of a table. Rows are read by
Python's drivers, as by tasks in threads: the records are the same. Does not know: converters, topics.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from barnabas.connect.connectors.databases.catalogue import TableId, parts_of
from barnabas.connect.connectors.databases.dialect import Dialect
from barnabas.connect.connectors.jdbc.column_mappings import position_columns
from barnabas.connect.connectors.jdbc.column_types import Mapping, TableShape
from barnabas.connect.connectors.jdbc.common_settings import dialect_from
from barnabas.connect.connectors.jdbc.key_ranges import (
    KeyRange,
    KeySlice,
    key_column,
    next_slice,
    range_query,
)
from barnabas.connect.connectors.jdbc.source_settings import CONFIG, KEY_COLUMN, PARTITIONS, SLICE_ROWS
from barnabas.connect.connectors.jdbc.source_table import (
    growing_column,
    numeric_mapping,
    stored_partitions,
    topic_of,
)
from barnabas.connect.data.arrow_shapes import fitted
from barnabas.connect.plugins import (
    ConnectError,
    OffsetReader,
    Positions,
    RetriableError,
    Slice,
    SourceContext,
    SparkSource,
)
from barnabas.engine.session import parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ROWS_A_FETCH = 10_000
BULK, KEY, DONE = "bulk", "key", "done"  # of offsets in mode bulk: the pass, the last key, whether it ended


@dataclass(slots=True)
class RangeTable:
    table: TableId
    topic: str
    partition: dict[str, Any]
    due_s: float = 0.0
    total: int | None = None
    done: int = 0


class RangeSource(SparkSource):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        settings = context.settings
        self._dialect = dialect_from(settings)
        self._mode = settings.text("mode")
        self._tables: list[RangeTable] | None = None
        self._planned: tuple[RangeTable, int, bool] | None = None  # its rows, whether a pass ends with it
        self.poll_interval_s = min(1.0, settings.integer("poll.interval.ms") / 1000)

    def plan(self, spark: SparkSession, offsets: OffsetReader) -> Slice | None:
        with connected(self._dialect) as connection:
            return self._plan(spark, connection, offsets)

    def _plan(self, spark: SparkSession, connection: Any, offsets: OffsetReader) -> Slice | None:
        if self._tables is None:
            self._tables = self._opened(connection, offsets)
        now = time.monotonic()
        for each in sorted(self._tables, key=lambda one: one.due_s):
            if each.due_s > now:
                break
            [offset] = offsets.read([each.partition])
            found = self._slice(spark, connection, each, offset)
            if found is not None:
                return found
            each.due_s = now + self.context.settings.integer("poll.interval.ms") / 1000
        return None

    def _opened(self, connection: Any, offsets: OffsetReader) -> list[RangeTable]:
        found = []
        for name in self.context.settings.entries("tables"):
            table = self._dialect.find(connection, parts_of(name))
            if table is None:
                raise RetriableError(f"the table {name} is not there")
            partitions = stored_partitions(table)
            stored = offsets.read(partitions)
            partition = next(
                (p for p, o in zip(partitions, stored, strict=True) if o is not None), partitions[0]
            )
            found.append(RangeTable(table, topic_of(self.context.settings, table), partition))
        return found

    def _slice(
        self, spark: SparkSession, connection: Any, each: RangeTable, offset: dict[str, Any] | None
    ) -> Slice | None:
        settings, dialect = self.context.settings, self._dialect
        columns = dialect.columns(connection, each.table)
        if not columns:
            raise RetriableError(f"the table {each.table} is not there any more, or may not be read")
        connection.rollback()
        mapping = Mapping(
            numeric_mapping(settings),
            settings.text("timestamp.granularity"),
            ZoneInfo(settings.text("db.timezone")),
        )
        shape = TableShape.of(
            each.table.name, columns, mapping, keyed=settings.flag("barnabas.key.from.table")
        )
        is_bulk = self._mode == "bulk"
        if is_bulk:
            key = key_column(columns, settings.text(KEY_COLUMN), each.table)
        else:
            name = position_columns(settings, each.table)[1] or growing_column(columns, each.table)
            key = key_column(columns, name, each.table)
        number, after = bulk_position(offset) if is_bulk else (0, (offset or {}).get("incrementing"))
        pieces = settings.integer(PARTITIONS) or 2 * parallelism(spark)
        if key:
            found = next_slice(
                dialect, connection, each.table, key, after, settings.integer(SLICE_ROWS), pieces
            )
        else:
            found = KeySlice((KeyRange(None, None),), -1, None) if after is None else None
        if found is None:
            return self._ended(spark, each, shape, number, after) if is_bulk else None
        self._count(connection, each, found, after)
        reached: dict[str, Any] = {"incrementing": found.until}
        is_last = is_bulk and (not key or found.rows < settings.integer(SLICE_ROWS))
        if is_bulk:
            reached = {BULK: number, DONE: 1} if is_last else {BULK: number, KEY: found.until}
        self._planned = (each, max(found.rows, 0), is_last)
        reading = Reading(dict(settings.raw), each.table, key, shape, found.ranges)
        return self._slice_of(spark, reading, each, reached)

    def _ended(
        self, spark: SparkSession, each: RangeTable, shape: TableShape, number: int, after: int | None
    ) -> Slice | None:
        """A pass over a table has ended: the next one begins when its pause is over."""
        if after is None:
            return None  # the table is empty
        self._planned = (each, 0, True)
        reading = Reading(dict(self.context.settings.raw), each.table, "", shape, ())
        return self._slice_of(spark, reading, each, {BULK: number, DONE: 1})

    def _slice_of(
        self, spark: SparkSession, reading: Reading, each: RangeTable, offset: dict[str, Any]
    ) -> Slice:
        shape, count = reading.shape, len(reading.ranges)
        numbers = spark.range(0, count, 1, max(1, count))
        frame: DataFrame = numbers.mapInArrow(reading, frame_type(shape))
        return Slice(frame, [(each.partition, offset)], shape.key_schema, shape.schema, each.topic, None)

    def commit(self, positions: Positions) -> None:
        """A slice is written: note how far its table is."""
        if self._planned is None:
            return
        each, rows, is_last = self._planned
        self._planned = None
        each.done += rows
        total = sum(one.total or 0 for one in self._tables or ())
        self.context.progress(sum(min(one.done, one.total or 0) for one in self._tables or ()), total)
        if is_last:
            each.total, each.done = None, 0
            each.due_s = time.monotonic() + self.context.settings.integer("poll.interval.ms") / 1000

    def _count(self, connection: Any, each: RangeTable, found: KeySlice, after: int | None) -> None:
        """How far a pass over the table is, by a count at its beginning."""
        if each.total is None and found.rows >= 0:
            counted = self._dialect.fetch(
                connection, f"SELECT COUNT(*) FROM {self._dialect.table_name(each.table)}"
            )
            connection.rollback()
            each.total = int(counted[0][0])
            each.done = 0 if after is None else max(0, each.total - found.rows)


@contextmanager
def connected(dialect: Dialect) -> Iterator[Any]:
    """A connection; errors of the database become those of Connect."""
    try:
        with closing(dialect.connect()) as connection:
            yield connection
    except dialect.errors as error:
        text = f"{dialect.address.shown}: {str(error).strip()}"
        if dialect.is_away(error):
            raise RetriableError(text) from error
        raise ConnectError(text) from error


def bulk_position(offset: dict[str, Any] | None) -> tuple[int, int | None]:
    """The number of the pass that runs, and the last key of it that was written."""
    if not offset or BULK not in offset:
        return 0, None
    if offset.get(DONE):
        return int(offset[BULK]) + 1, None
    return int(offset[BULK]), offset.get(KEY)


def frame_type(shape: TableShape) -> StructType:
    """Spark's types of the keys and values of a table."""
    from pyspark.sql.types import StructField, StructType

    fields = [StructField("value", shape.schema.spark, True)]
    if shape.key_schema is not None:
        fields.insert(0, StructField("key", shape.key_schema.spark, True))
    return StructType(fields)


@dataclass(frozen=True)
class Reading:
    """Reads ranges on executors; the number of a Spark partition is the place of its range."""

    raw: dict[str, str | None] = field(repr=False)  # of the connector, passwords among them
    table: TableId
    key: str
    shape: TableShape
    ranges: tuple[KeyRange, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dialect: Dialect = dialect_from(CONFIG.parse(dict(self.raw)))
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from self._read(dialect, self.ranges[place])

    def _read(self, dialect: Dialect, asked: KeyRange) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted: Any = to_arrow_schema(frame_type(self.shape), timezone="UTC")
        with connected(dialect) as connection:
            names = [each.name for each in self.shape.columns]
            statement, values = range_query(dialect, self.table, names, self.key, asked)
            _, rows = dialect.stream(connection, statement, values, ROWS_A_FETCH)
            for some in rows:
                column = self.shape.values(some)
                arrays = [fitted(column.data, wanted.field("value").type)]
                if self.shape.key_schema is not None:
                    keys = self.shape.keys(column)
                    arrays.insert(0, fitted(keys.data, wanted.field("key").type))
                yield pa.RecordBatch.from_arrays(arrays, schema=wanted)
            connection.rollback()
