"""What a source gives at a time: rows in the columns of the raw zone, and the position behind them.

In: nothing. Out: the value and the port that all kinds of sources fulfil. A position is a JSON object that
only its own source understands; it is kept in the commit that brings the rows into the raw zone.
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

# What every source fills in; the flow adds source, batch and ingested_at.
RAW_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
RAW_DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
METADATA = "metadata"  # of binaries: a JSON object
LATE_BEFORE = "late_before"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the flow writes on every row of a batch."""

    source: str
    batch: int
    ingested_at: datetime
    late_before: datetime | None = None  # event times before this one are late


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
class Portion:
    """Rows between two positions. `merging` says how this portion changes the tables behind raw."""

    read: Callable[[Stamp], DataFrame]  # rows with all columns of the raw zone, and `late_before`
    position: Position
    merging: Merging
    # Whether reading twice gives the same rows. If not, the raw zone is read instead of the source.
    is_stable: bool = False
    # What is known before reading, of things read: offsets, files. For timelines.
    facts: dict[str, Any] = field(default_factory=dict)


class Reader(Protocol):
    @property
    def waits_s(self) -> float:
        """How long nothing is read now, because of a bandwidth limit."""

    def start(self) -> Position | None:
        """The position before everything, where it must not be asked again later; None: the beginning."""

    def next(self, position: Position | None) -> Portion | None:
        """What comes behind a position; None when there is nothing. SourceAway when it cannot be asked."""

    def goal(self) -> Position | None:
        """How far there is something to read now; None where only reading would tell."""

    def has_reached(self, position: Position, goal: Position | None) -> bool:
        """Whether a source that never ends was read up to the goal."""

    def lag(self, position: Position | None) -> int | None:
        """How many rows are there that were not read; None where only reading would tell."""

    def done(self, portion: Portion, bytes_read: int) -> None:
        """The portion is in the raw zone; so many bytes it was."""
