"""Tables of databases over JDBC: whole, or the rows that are new by a number, a time of change, or both.

In: the source, a position. Out: slices whose rows are JSON. Small tables are always read whole: that shows
deleted rows, and needs no position. A whole table is read once and kept by executors while it is compared
with the last one; if it has not changed, it gives no slice. By a time of change, a window of the last rows is
read again, because transactions commit late (`late_window`); rows that raw has are left out. Does not know:
what is done with rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from barnabas.engine.errors import NeedsDecision, SourceUnavailable, brief
from barnabas.engine.secrets import SecretError
from barnabas.pipeline.lake.tables import Lake, TableName, Zone
from barnabas.pipeline.sources.jdbc import JdbcTable, literal
from barnabas.pipeline.sources.late_window import Step, following, read_since, window_start
from barnabas.pipeline.sources.pacing import Pacing
from barnabas.pipeline.sources.source_slice import RAW_COLUMNS, Position, SourceSlice, Stamp, stamped
from barnabas.pipeline.spec.model import CONNECTIONS_MAX, Merging, TableMode, TableSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
ROWS_PER_BATCH_MAX = 1_000_000
# Offsets are unique in a source: the batch in the high bits, then the row as Spark numbers it, with the task
# from bit 33 on. CONNECTIONS_MAX tasks fit.
BATCH_SHIFT = CONNECTIONS_MAX * 2**33
JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


class TableReader:
    def __init__(self, spark: SparkSession, source: TableSource, lake: Lake | None = None) -> None:
        self._lake = lake
        self._spark = spark
        self._source = source
        self._table = JdbcTable(spark, source)
        self._pacing = Pacing(source.bandwidth_bytes_s)
        self._kept: DataFrame | None = None  # the rows of a snapshot, with their JSON

    @property
    def waits_s(self) -> float:
        return self._pacing.waits_s

    def start(self) -> Position | None:
        return None

    def next(self, position: Position | None) -> SourceSlice | None:
        self._release()
        if not self._pacing.may_read():
            return None
        return self._asked(lambda: self._next(position or {}))

    def _release(self) -> None:
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None

    def _next(self, position: Position) -> SourceSlice | None:
        mode = self._source.mode
        is_small = self._is_small()
        if mode is TableMode.SNAPSHOT or is_small:
            return self._snapshot(position, is_small=is_small)
        if mode is TableMode.TIMESTAMP:
            return self._by_time(position)
        return self._by_number(position) if mode is TableMode.INCREMENTING else self._by_both(position)

    def goal(self) -> Position | None:
        if self._source.mode is TableMode.INCREMENTING:
            return self._asked(self._last_number)
        return self._asked(self._last_of_both) if self._source.mode is TableMode.BOTH else None

    def has_reached(self, position: Position, goal: Position | None) -> bool:
        """A snapshot and the changes since a time are one slice each, so one slice reaches the goal."""
        if "snapshot" in position or self._source.mode is TableMode.TIMESTAMP:
            return True
        return goal is None or place_in(position) >= place_in(goal)

    def _last_number(self) -> Position | None:
        column = self._table.quoted(self._source.incrementing)
        last = self._table.one(f"SELECT max({column}) AS n FROM {self._source.table}", "n BIGINT")
        return None if last is None else {"number": int(last)}

    def _last_of_both(self) -> Position | None:
        time, number = self._columns()
        inner = f"SELECT {time} AS t, {number} AS n FROM {self._source.table} WHERE {time} IS NOT NULL"
        inner += f" ORDER BY {time} DESC, {number} DESC LIMIT 1"
        query = f"SELECT {self._table.text('t')} AS t, n FROM ({inner}) x"
        last = self._table.query(query, customSchema="t STRING, n BIGINT").first()
        return None if last is None else {"time": str(last[0]), "number": int(last[1])}

    def lag(self, position: Position | None) -> int | None:
        """Rows above the last number; None in the other modes."""
        if self._source.mode is not TableMode.INCREMENTING or not position or "number" not in position:
            return None
        condition = f"{self._table.quoted(self._source.incrementing)} > {int(position['number'])}"
        return self._asked(lambda: self._table.count(f"{self._source.table} WHERE {condition}"))

    def done(self, source_slice: SourceSlice, bytes_read: int) -> None:
        self._release()
        self._pacing.was_read(bytes_read, source_slice.facts.get("rows", 0))

    # -- modes -------------------------------------------------------------------------------------

    def _is_small(self) -> bool:
        limit = self._source.snapshot_below
        inner = f"SELECT 1 AS one FROM {self._source.table} LIMIT {limit}"
        return limit > 0 and self._table.count(f"({inner}) x") < limit

    def _snapshot(self, position: Position, *, is_small: bool) -> SourceSlice | None:
        from pyspark import StorageLevel

        # A bandwidth limit is of the source, so one connection keeps to it.
        shares = not is_small and self._source.bandwidth_bytes_s is None
        rows = self._table.rows("", self._table.split() if shares else None)
        self._kept = as_json(rows).persist(StorageLevel.DISK_ONLY)
        fingerprint, size = fingerprint_of(self._kept)
        if position.get("snapshot") == fingerprint:
            self._release()
            self._pacing.was_read(size, fingerprint[0])
            return None
        return self._slice(self._kept, {"snapshot": fingerprint}, Merging.REPLACE_ALL, fingerprint[0])

    def _by_number(self, position: Position) -> SourceSlice | None:
        column = self._table.quoted(self._source.incrementing)
        after = position.get("number")
        above = f"{column} > {int(after)}" if after is not None else "1 = 1"
        inner = f"SELECT {column} AS n FROM {self._source.table} WHERE {above}"
        inner += f" ORDER BY {column} LIMIT {self._limit()}"
        last = self._table.one(f"SELECT max(n) AS n FROM ({inner}) x", "n BIGINT")
        if last is None:
            return None
        where = f"{above} AND {column} <= {int(last)}"
        return self._slice(self._read(where), {"number": int(last)}, Merging.INSERT_NEW)

    def _by_time(self, position: Position) -> SourceSlice | None:
        """Read the rows of the window again: others may have been committed with earlier times."""
        column = self._table.quoted(self._source.timestamp)
        newest = self._table.text(f"max({column})")
        last = self._table.one(f"SELECT {newest} AS t FROM {self._source.table}", "t STRING")
        if last is None:
            return None
        window_s, read = self._source.window_s, position.get("time")
        until = f"{column} <= {literal(last)}"
        window = f"{column} >= {literal(window_start(last, window_s))} AND {until}"
        fingerprint, _ = fingerprint_of(as_json(self._table.rows(window)))
        if read == last and position.get("window") == fingerprint:
            return None
        steps: list[Step] = position.get("steps", [])
        after: Position = {
            "time": last,
            "window": fingerprint,
            "steps": following(steps, last, datetime.now(UTC), window_s),
        }
        if read is None:
            return self._slice(self._read(until), after, Merging.UPSERT)
        start = window_start(read, window_s)
        since = read_since(steps, start)
        rows = self._read(f"{column} >= {literal(start)} AND {until}")
        return self._slice(rows, after, Merging.UPSERT, known_since=since)

    def _by_both(self, position: Position) -> SourceSlice | None:
        time, number = self._columns()
        above = f"{time} IS NOT NULL"
        if position.get("time") is not None:
            since = literal(position["time"])
            above = f"({time} > {since} OR ({time} = {since} AND {number} > {int(position['number'])}))"
        inner = (
            f"SELECT {time} AS t, {number} AS n FROM {self._source.table} WHERE {above}"
            f" ORDER BY {time}, {number} LIMIT {self._limit()}"
        )
        query = f"SELECT {self._table.text('t')} AS t, n FROM ({inner}) x ORDER BY x.t DESC, n DESC LIMIT 1"
        last = self._table.query(query, customSchema="t STRING, n BIGINT").first()
        if last is None:
            return None
        until = literal(str(last[0]))
        where = f"{above} AND ({time} < {until} OR ({time} = {until} AND {number} <= {int(last[1])}))"
        position = {"time": str(last[0]), "number": int(last[1])}
        return self._slice(self._read(where), position, Merging.UPSERT)

    def _columns(self) -> tuple[str, str]:
        """The names of the time of change and of the growing number, quoted."""
        return self._table.quoted(self._source.timestamp), self._table.quoted(self._source.incrementing)

    def _limit(self) -> int:
        rows_max = self._source.rows_per_batch_max or ROWS_PER_BATCH_MAX
        return min(rows_max, self._pacing.rows_max(rows_max))

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, where: str) -> DataFrame:
        return as_json(self._table.rows(where, self._table.split(where)))

    def _slice(
        self,
        values: DataFrame,
        position: Position,
        merging: Merging,
        rows: int = 0,
        known_since: datetime | None = None,
    ) -> SourceSlice:
        """`known_since`: rows that raw has since this time are left out."""

        def read(stamp: Stamp) -> DataFrame:
            found = self._raw_rows(values, stamp)
            return stamped(found if known_since is None else self._without_known(found, known_since), stamp)

        return SourceSlice(read, position, merging, facts={"rows": rows})

    def _without_known(self, rows: DataFrame, since: datetime) -> DataFrame:
        """The rows whose values raw did not get since this time. Its column `timestamp` is ours."""
        from pyspark.sql import functions as F

        table = TableName(Zone.RAW, self._source.name)
        if self._lake is None or not self._lake.exists(self._spark, table):
            return rows
        recent = F.col("timestamp") >= F.lit(since).cast("timestamp")
        known = self._lake.read(self._spark, table).where(recent).select("value")
        return rows.join(known, "value", "left_anti").select(*RAW_COLUMNS)

    def _raw_rows(self, rows: DataFrame, stamp: Stamp) -> DataFrame:
        from pyspark.sql import functions as F

        number = F.lit(stamp.batch * BATCH_SHIFT) + F.monotonically_increasing_id()
        return rows.select(
            F.lit(None).cast("binary").alias("key"),
            F.col("value").cast("binary").alias("value"),
            F.lit(self._source.table).alias("topic"),
            F.lit(0).alias("partition"),
            number.cast("bigint").alias("offset"),
            F.lit(stamp.ingested_at).cast("timestamp").alias("timestamp"),
        )

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (SourceUnavailable, NeedsDecision):
            raise
        except SecretError as error:
            raise NeedsDecision(f"source {self._source.name}: {error}") from error
        except Exception as error:
            raise SourceUnavailable(f"source {self._source.name} cannot be read: {brief(error)}") from error


def place_in(position: Position) -> tuple[str, int]:
    """A position that can be compared. Times of one database have one form, so their texts compare."""
    return str(position.get("time", "")), int(position.get("number", -(2**63)))


def as_json(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.select(F.to_json(F.struct("*"), JSON_OPTIONS).alias("value"))


def fingerprint_of(values: DataFrame) -> tuple[list[int], int]:
    """The number of rows and two sums of their hashes: other rows give other numbers. And their bytes."""
    from pyspark.sql import functions as F

    hashed = values.select(F.xxhash64("value").alias("h"), F.octet_length("value").alias("size"))
    found = hashed.agg(F.count("h"), F.bit_xor("h"), F.sum("h"), F.coalesce(F.sum("size"), F.lit(0))).first()
    numbers = [0, 0, 0, 0] if found is None else [int(each or 0) for each in found]
    return numbers[:3], numbers[3]
