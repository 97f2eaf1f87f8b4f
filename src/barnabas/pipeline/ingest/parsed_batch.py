"""A parsed batch: its rows in Spark's memory, and a few facts of each row in the driver's.

In: a frame of parsed rows, and one array for each fact. Out: frames of the rows that a verdict selects.
Does not know: what the verdicts are, tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from barnabas.pipeline.ingest.key_index import Flags
from barnabas.pipeline.ingest.parsing import MALFORMED
from barnabas.pipeline.ingest.verdicts import Hashes
from barnabas.pipeline.lake.columns import IGNORE, OP

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ROW = "_row"
OUTSIDE = "outside"  # a fact of rows that are compared with others, but not written
LISTED_MAX = 4000  # so many rows are excluded by a list in the query, more by a join


@dataclass(slots=True)
class ParsedBatch:
    """Rows in Spark's memory, and facts of each row as arrays. Call `release` at the end."""

    frame: DataFrame
    row_facts: dict[str, Any]
    schema: StructType
    widened: bool

    @property
    def count(self) -> int:
        return len(self.row_facts[ROW])

    def release(self) -> None:
        self.frame.unpersist()


def fine_rows() -> Column:
    return ~F.col(MALFORMED) & (F.col(OP) != IGNORE)


def hashes_of(row_facts: dict[str, Any], name: str) -> Hashes:
    return Hashes(row_facts[f"{name}a"], row_facts[f"{name}b"], row_facts[f"{name}n"])


def selected(found: ParsedBatch, wanted: Flags, by_condition: Flags, condition: Column) -> DataFrame:
    """The wanted rows: `condition` finds them and maybe more (`by_condition`), which are excluded."""
    rows = found.frame.where(condition)
    return without_rows(rows, found.row_facts[ROW][by_condition & ~wanted])


def without_rows(rows: DataFrame, row_facts: Any) -> DataFrame:
    if not len(row_facts):
        return rows
    if len(row_facts) <= LISTED_MAX:
        return rows.where(F.expr(f"{ROW} NOT IN ({','.join(map(str, row_facts.tolist()))})"))
    return rows.join(F.broadcast(frame_of(rows.sparkSession, {ROW: row_facts})), ROW, "left_anti")


def with_broken_rules(found: ParsedBatch, wanted: Flags, bits: Any) -> DataFrame:
    """The wanted rows, with the bits of broken rules as `_bits`."""
    columns = {ROW: found.row_facts[ROW][wanted]}
    if bits is not None:
        columns["_bits"] = bits[wanted]
    return found.frame.join(F.broadcast(frame_of(found.frame.sparkSession, columns)), ROW)


def frame_of(spark: SparkSession, columns: dict[str, Any]) -> DataFrame:
    import pyarrow as pa

    return spark.createDataFrame(pa.table({name: pa.array(values) for name, values in columns.items()}))
