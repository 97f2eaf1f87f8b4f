"""Which keys a table of staging or trusted holds: hashes of keys, and their index for the next batch.

In: a table, the columns of its key. Out: an index of the keys that are there.
Does not know: rules, what becomes of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from barnabas.pipeline.ingest.key_index import KEYS_MAX, KeyIndex, Longs
from barnabas.pipeline.lake.columns import BATCH
from barnabas.pipeline.lake.tables import Lake, TableName

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def key_hashes(columns: Sequence[Column]) -> list[Column]:
    """Two hashes of a key, and whether none of its columns is null."""
    whole = columns[0].isNotNull()
    for column in columns[1:]:
        whole = whole & column.isNotNull()
    return [F.xxhash64(*columns), F.xxhash64(F.lit("second"), *columns), whole]


class KnownKeys:
    """The keys of a table. They are read again after a commit of another writer.

    `counting` selects the rows of the table whose keys count; all rows without it."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        table: TableName,
        columns: Sequence[str],
        counting: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    ) -> None:
        self._counting = counting
        self._spark = spark
        self._lake = lake
        self._table = table
        self._columns = columns
        self._index = KeyIndex()
        self._version = -2
        self._is_large = False

    def index(self, without_batch: int, first: Longs, second: Longs) -> KeyIndex:
        """The keys that the table has without the rows of `without_batch`.

        If the table has more than `KEYS_MAX` keys, Spark looks up only those of the batch."""
        version = self._lake.version(self._spark, self._table)
        if version != self._version:
            self._index = KeyIndex()
            self._version = version
            if version < 0:
                return self._index
            rows = self._keys().where(F.col(BATCH) != without_batch)
            self._is_large = rows.count() > KEYS_MAX
            if not self._is_large:
                found = rows.select("a", "b").toArrow()
                self._index.add(found.column("a").to_numpy(), found.column("b").to_numpy())
        if not self._is_large:
            return self._index
        import pyarrow as pa

        asked = self._spark.createDataFrame(pa.table({"a": pa.array(first), "b": pa.array(second)}))
        rows = self._keys().where(F.col(BATCH) != without_batch)
        found = rows.join(F.broadcast(asked), ["a", "b"], "left_semi").select("a", "b").toArrow()
        index = KeyIndex()
        index.add(found.column("a").to_numpy(), found.column("b").to_numpy())
        return index

    def _keys(self) -> DataFrame:
        first, second, whole = key_hashes([F.col(f"`{name}`") for name in self._columns])
        rows = self._counting(self._lake.read(self._spark, self._table)).where(whole)
        return rows.select(first.alias("a"), second.alias("b"), BATCH)

    def add(self, first: Any, second: Any, version: int) -> None:
        """Add the keys of our own commit. If its version is not the next one, another writer has
        committed."""
        if not self._is_large:
            self._index.add(first, second)
        self._version = version if version - self._version <= 1 else -2
