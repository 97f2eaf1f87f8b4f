"""Keys that a table of staging or trusted holds, as far back as its horizon reaches.

In: a table, the columns of its key, the horizon; the keys of a batch. Out: those that the table has: as an
index in the driver's memory while the horizon holds few keys, else looked up on executors, in the files that
can have them. The time at which a row was ingested decides whether it is in the horizon. Delta's statistics
leave out files of other times, and files whose keys are all smaller or all greater than those of the batch.
Does not know: rules, what becomes of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from barnabas.engine.delta.log import are_compactions
from barnabas.pipeline.ingest.dedupe.key_index import KeyIndex, Longs
from barnabas.pipeline.lake.columns import BATCH, INGESTED_AT
from barnabas.pipeline.lake.tables import Lake, TableName

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# 24 bytes a key: the driver holds at most 24 MB of keys for a table.
KEYS_ON_DRIVER_MAX = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HASH_COLUMNS = ("a", "b", "at")
# Types whose values can be compared in statistics, and come back from Spark unchanged.
ORDERED_TYPES = ("string", "bigint", "int", "smallint", "tinyint", "date")


def key_hashes(columns: Sequence[Column]) -> list[Column]:
    """Two hashes of a key, and whether none of its columns is null."""
    whole = columns[0].isNotNull()
    for column in columns[1:]:
        whole = whole & column.isNotNull()
    return [F.xxhash64(*columns), F.xxhash64(F.lit("second"), *columns), whole]


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """Knowledge about the keys of a batch: when its rows were ingested (microseconds), and the least and the
    greatest value of the key's first column."""

    first_at: int
    last_at: int
    least: Any = None
    greatest: Any = None


class KnownKeys:
    """The keys of a table. They are read again after a commit of another writer.

    `within_us` is the horizon in microseconds; without it all rows count. `counting` selects the rows of the
    table whose keys count; all rows without it."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        table: TableName,
        columns: Sequence[str],
        within_us: int | None = None,
        counting: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    ) -> None:
        self._counting = counting
        self._spark = spark
        self._lake = lake
        self._table = table
        self._columns = columns
        self.within_us = within_us
        self._index = KeyIndex()
        self._version = -2
        self._since = 0  # the index has all keys from this time on
        self._is_large = False

    def index(
        self, without_batch: int, first: Longs, second: Longs, asked: Callable[[], AskedKeys]
    ) -> KeyIndex:
        """The keys that the table has without the rows of `without_batch`: at least those that are asked for.

        If the horizon has more than `KEYS_ON_DRIVER_MAX` keys, executors look up only those of the batch."""
        version = self._lake.version(self._spark, self._table)
        if self._only_compacted(version):
            self._version = version
        facts = asked() if self.within_us is not None or self._is_large else None
        since = 0 if facts is None or self.within_us is None else facts.first_at - self.within_us
        if version != self._version or since < self._since:
            self._load(version, without_batch, since, facts)
        if not self._is_large:
            return self._index
        import pyarrow as pa

        keys = self._spark.createDataFrame(pa.table({"a": pa.array(first), "b": pa.array(second)}))
        rows = self.rows(without_batch, facts or asked())
        index = KeyIndex()
        if rows is not None:
            index.add(*arrays(rows.join(F.broadcast(keys), ["a", "b"], "left_semi")))
        return index

    def _load(self, version: int, without_batch: int, since: int, facts: AskedKeys | None) -> None:
        self._index = KeyIndex()
        self._version, self._since, self._is_large = version, since, False
        rows = self.rows(without_batch, facts, by_key=False)
        if rows is None:
            return
        self._is_large = rows.count() > KEYS_ON_DRIVER_MAX
        if not self._is_large:
            self._index.add(*arrays(rows))

    def rows(self, without_batch: int, asked: AskedKeys | None, *, by_key: bool = True) -> DataFrame | None:
        """The keys of the table as two hashes and a time; None if there is no table.

        The version is fixed: Spark would otherwise compute lost rows again from a newer one."""
        version = self._lake.version(self._spark, self._table)
        if version < 0:
            return None
        rows = self._counting(self._lake.read(self._spark, self._table, version))
        rows = rows.where(F.col(BATCH) != without_batch)
        if asked is not None and self.within_us is not None:
            rows = rows.where(F.col(INGESTED_AT) >= F.lit(moment(asked.first_at - self.within_us)))
            rows = rows.where(F.col(INGESTED_AT) <= F.lit(moment(asked.last_at + self.within_us)))
        if by_key and asked is not None and asked.least is not None:
            column = F.col(f"`{self._columns[0]}`")
            rows = rows.where((column >= F.lit(asked.least)) & (column <= F.lit(asked.greatest)))
        first, second, whole = key_hashes([F.col(f"`{name}`") for name in self._columns])
        at = F.unix_micros(F.col(INGESTED_AT))
        return rows.where(whole).select(first.alias("a"), second.alias("b"), at.alias("at"))

    def add(self, first: Longs, second: Longs, times: Longs | None, version: int) -> None:
        """Add the keys of our own commit. If its version is not the next one, another writer has
        committed."""
        if not self._is_large:
            self._index.add(first, second, times)
            if len(self._index) > KEYS_ON_DRIVER_MAX and self.within_us is not None and times is not None:
                self._since = int(times.max(initial=0)) - self.within_us
                self._index.forget_before(self._since)
            if len(self._index) > KEYS_ON_DRIVER_MAX:
                self._index, self._is_large = KeyIndex(), True
        if self._only_compacted(version - 1):
            self._version = version - 1
        self._version = version if version - self._version <= 1 else -2

    def _only_compacted(self, version: int) -> bool:
        """Whether the commits since ours only compacted files."""
        if not self._lake.is_read_by_us or version <= self._version:
            return False
        log = f"{self._lake.path(self._table)}/_delta_log"
        return are_compactions(log, self._version, version, self._lake.store)


def arrays(rows: DataFrame) -> list[Any]:
    import numpy as np

    found = rows.select(*HASH_COLUMNS).toArrow()
    return [np.asarray(found.column(name).to_numpy(), np.int64) for name in HASH_COLUMNS]


def moment(time_us: int) -> datetime:
    """A time that Python can hold: a horizon may reach further back than year 1."""
    try:
        return EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return datetime(1, 1, 2, tzinfo=UTC) if time_us < 0 else datetime(9999, 12, 30, tzinfo=UTC)
