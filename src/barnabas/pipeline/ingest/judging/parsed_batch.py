"""A parsed batch: its rows in Spark's memory, totals, and a few facts of each row.

In: a frame of parsed rows, and its facts. Out: frames of the rows that a verdict selects. The facts of a
small batch are arrays on the driver, those of a large one a narrow frame on executors: the driver never holds
facts of more than `ROWS_ON_DRIVER_MAX` rows. Does not know: what the verdicts are, tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F

from barnabas.pipeline.lake.columns import IGNORE, MALFORMED, OP, ROW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

# About 50 bytes a row: the facts of a batch on the driver take at most 10 MB.
ROWS_ON_DRIVER_MAX = 200_000
NONE = np.iinfo(np.int64).min  # stands for a null in arrays
BITS = "_bits"  # a bit for each broken rule


@dataclass(frozen=True, slots=True)
class Totals:
    rows: int = 0
    bytes: int = 0
    rescued: int = 0
    newest_us: int | None = None  # of the event times

    @property
    def newest_event_time(self) -> datetime | None:
        if self.newest_us is None:
            return None
        try:
            return datetime.fromtimestamp(self.newest_us / 1e6, UTC)
        except (OverflowError, ValueError, OSError):
            return None


@dataclass(slots=True)
class ParsedBatch:
    """Rows in Spark's memory, and facts of each row: `row_facts` of a small batch, else the frame `facts`.

    Call `release` at the end."""

    frame: DataFrame
    totals: Totals
    schema: StructType
    widened: bool
    row_facts: dict[str, Any] | None = None
    facts: DataFrame | None = None
    _cached: list[DataFrame] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.totals.rows

    def keep(self, rows: DataFrame) -> DataFrame:
        """Keep rows in Spark's memory until the batch is released."""
        self._cached.append(rows.persist())
        return rows

    def release(self) -> None:
        for rows in (self.frame, *self._cached):
            rows.unpersist()
        self._cached.clear()


def fine_rows() -> Column:
    return ~F.col(MALFORMED) & (F.col(OP) != IGNORE)


def to_numpy(column: Any) -> Any:
    """A column as an array; a null becomes the least value."""
    import pyarrow as pa

    is_flag = pa.types.is_boolean(column.type)
    if column.null_count:
        column = column.fill_null(False if is_flag else NONE)
    return np.asarray(column.to_numpy(), np.bool_ if is_flag else np.int64)


def collected(facts: DataFrame) -> dict[str, Any]:
    """Facts as arrays, in the order of the rows."""
    table = facts.toArrow()
    found = {name: to_numpy(table.column(name)) for name in table.column_names}
    order = np.argsort(found[ROW], kind="stable")
    if len(order) and not np.array_equal(order, np.arange(len(order))):
        found = {name: values[order] for name, values in found.items()}
    return found


def totals_of(row_facts: dict[str, Any]) -> Totals:
    rows = len(row_facts[ROW])
    if not rows:
        return Totals()
    newest = int(row_facts["event_time"].max()) if "event_time" in row_facts else NONE
    rescued = int(row_facts["rescued"].sum()) if "rescued" in row_facts else 0
    return Totals(rows, int(row_facts["bytes"].sum()), rescued, None if newest == NONE else newest)


def counted(facts: DataFrame) -> Totals:
    """Let executors count; the totals come to the driver."""
    wanted = [F.count("*"), F.sum("bytes")]
    wanted.append(F.sum(F.col("rescued").cast("bigint")) if "rescued" in facts.columns else F.lit(0))
    wanted.append(F.max("event_time") if "event_time" in facts.columns else F.lit(None).cast("bigint"))
    found = facts.agg(*wanted).first()
    assert found is not None
    rows, size, rescued, newest = found
    return Totals(int(rows), int(size or 0), int(rescued or 0), newest)


def frame_of(spark: SparkSession, columns: dict[str, Any]) -> DataFrame:
    import pyarrow as pa

    return spark.createDataFrame(pa.table({name: pa.array(values) for name, values in columns.items()}))
