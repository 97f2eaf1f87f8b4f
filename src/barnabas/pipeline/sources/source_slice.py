"""A slice of a source: rows in the columns of the raw zone, and the position behind them.

Out: the value and the port that every kind of source implements. A position is a JSON object that only its
own source understands; the commit that brings the rows into the raw zone keeps it.
Does not know: kinds of sources.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.pipeline.spec.model import Merging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Position = dict[str, Any]

# Columns that every source fills in; `stamped` adds source, batch and ingested_at.
RAW_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
RAW_DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
METADATA = "metadata"  # of binary files: a JSON object
LATE_BEFORE = "late_before"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Values that every row of a batch gets."""

    source: str
    batch: int
    ingested_at: datetime
    late_before: datetime | None = None  # rows with earlier event times are late


def stamped(rows: DataFrame, stamp: Stamp) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.select(
        *[F.col(name) for name in RAW_COLUMNS],
        (F.col(METADATA) if METADATA in rows.columns else F.lit(None)).cast("string").alias(METADATA),
        F.lit(stamp.source).alias("source"),
        F.lit(stamp.batch).cast("bigint").alias("batch"),
        F.lit(stamp.ingested_at).cast("timestamp").alias("ingested_at"),
        F.lit(stamp.late_before).cast("timestamp").alias(LATE_BEFORE),
    )


@dataclass(frozen=True, slots=True)
class SourceSlice:
    """Rows between two positions. `merging` says how they change the tables behind raw."""

    read: Callable[[Stamp], DataFrame]  # rows with all columns of the raw zone, and `late_before`
    position: Position
    merging: Merging
    # Whether reading twice gives the same rows. If not, the rows are read again from the raw zone.
    is_stable: bool = False
    # Facts that are known before reading: the number of offsets or rows, the files.
    facts: dict[str, Any] = field(default_factory=dict)


class Reader(Protocol):
    @property
    def waits_s(self) -> float:
        """How long the bandwidth limit forbids reading, in seconds."""

    def start(self) -> Position | None:
        """The position to begin at, where it must be fixed at the first start; None: the beginning."""

    def next(self, position: Position | None) -> SourceSlice | None:
        """The slice behind a position; None when there is nothing new. SourceUnavailable if it cannot be
        read."""

    def goal(self) -> Position | None:
        """The end of the source now; None where that cannot be known without reading."""

    def has_reached(self, position: Position, goal: Position | None) -> bool:
        """Whether the position is at the goal or behind it."""

    def lag(self, position: Position | None) -> int | None:
        """How many rows are unread; None where that cannot be known without reading."""

    def done(self, source_slice: SourceSlice, bytes_read: int) -> None:
        """The raw zone has the slice; it was `bytes_read` long."""
