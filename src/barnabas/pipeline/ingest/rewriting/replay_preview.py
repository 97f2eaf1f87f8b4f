"""Preview of a replay or backfill: what raw holds, and which rows it has forgotten.

In: a pipeline, a source, a range of batches or times. Out: counts and lines for a person; the range that raw
can bring back. Retention removes old rows from raw, so rows of the other zones may have no row there.
Does not know: how rows are rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.engine.errors import NeedsDecision
from barnabas.pipeline.ingest import raw_zone, rewritten_rows
from barnabas.pipeline.ingest.rewriting.mended import brought_back, mended
from barnabas.pipeline.ingest.write_mode import ReplayRange, literal
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Merging, Pipeline, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_MAX = 2**62


@dataclass(frozen=True, slots=True)
class Preview:
    """`forgotten` counts rows of tables whose row in raw is gone, or was mended since. They stay, or go if
    `is_rebuild`.

    `resumes_at`: an earlier run of the command was interrupted before this batch, and is continued there."""

    source: str
    rows: int = 0
    batches: tuple[int, int] = (0, 0)
    since: datetime | None = None
    forgotten: Mapping[TableName, int] = field(default_factory=dict)
    is_rebuild: bool = False
    resumes_at: int | None = None

    @property
    def removed(self) -> int:
        """How many rows would be removed that raw cannot bring back."""
        return sum(self.forgotten.values()) if self.is_rebuild else 0

    def lines(self) -> Iterator[str]:
        if self.rows:
            first, last = self.batches
            since = f", ingested since {self.since:%Y-%m-%d %H:%M:%S}" if self.since is not None else ""
            yield f"raw holds {self.rows:,} rows of {self.source} here: batches {first} to {last}{since}"
        else:
            yield f"raw holds no rows of {self.source} here"
        if self.resumes_at:
            yield f"an interrupted run has rewritten the batches before {self.resumes_at}; this one goes on"
        for table, count in self.forgotten.items():
            fate = "are removed" if self.is_rebuild else "stay as they are"
            yield f"{table}: {count:,} rows that raw does not bring back {fate}"


Confirm = Callable[[Preview], bool]


def refuse_removals(preview: Preview) -> bool:
    """The answer of a program that asks nobody: rows that raw cannot bring back are not removed."""
    if preview.removed:
        raise NeedsDecision(
            f"this would remove rows that raw does not bring back: {'; '.join(list(preview.lines())[1:])}."
            " Confirm it (--yes), or keep these rows elsewhere first"
        )
    return True


def range_of_batches(first: int | None, last: int | None) -> ReplayRange:
    return ReplayRange("batch", str(first or 0), str(BATCH_MAX if last is None else last + 1))


def range_of_times(start: datetime, end: datetime) -> ReplayRange:
    return ReplayRange("timestamp", literal(start), literal(end))


def preview(
    spark: SparkSession, pipeline: Pipeline, source: str, replayed: ReplayRange, *, rebuild: bool = False
) -> Preview:
    lake = pipeline.lake_location
    zone = raw_zone.RawZone(spark, lake, pipeline.name, source)
    checkpoint = zone.newest_checkpoint()
    if checkpoint is None:
        return Preview(source, is_rebuild=rebuild)
    held = lake.read(spark, zone.table).where(replayed.raw)
    is_snapshot = checkpoint.merging is Merging.REPLACE_ALL
    if is_snapshot:
        held = held.where(f"batch = {checkpoint.batch}")
    facts = held.agg(
        F.count("*"), F.min("batch"), F.max("batch"), F.unix_micros(F.min("ingested_at"))
    ).first()
    assert facts is not None
    rows, first, last, since = facts
    found = Preview(
        source, rows, (first or 0, last or 0), since and datetime.fromtimestamp(since / 1e6, UTC), {}, rebuild
    )
    if is_snapshot and (rows or not rebuild):
        return found  # a snapshot brings back every row
    held = brought_back(held, mended(spark, pipeline, source, replayed))
    replayed = replace(replayed, held=held.select(*raw_zone.COORDINATES))
    forgotten = {}
    for table in tables_behind(pipeline, source):
        if lake.exists(spark, table):
            there = lake.read(spark, table)
            if rebuild or checkpoint.merging is not Merging.INSERT_NEW:
                assert replayed.held is not None
                count = rewritten_rows.elsewhere(replayed.held, there).count()
            else:
                count = rewritten_rows.forgotten(replayed, there).count()
            forgotten.update({table: count} if count else {})
    return replace(found, forgotten=forgotten)


def tables_behind(pipeline: Pipeline, source: str) -> Iterator[TableName]:
    for each in pipeline.staging_of(source):
        yield TableName(Zone.STAGING, each.name)
        for trusted in pipeline.trusted_of(each.name):
            yield TableName(Zone.TRUSTED, trusted.name)


def clamped(
    spark: SparkSession,
    pipeline: Pipeline,
    source: Source,
    replayed: ReplayRange,
    without: DataFrame | None = None,
) -> ReplayRange:
    """The range from the first row that raw holds, so that older rows of the zones are not even read.

    `without` has the coordinates of rows that are not replayed."""
    lake = pipeline.lake_location
    rows = lake.read(spark, TableName(Zone.RAW, source.name)).where(replayed.raw)
    held = brought_back(rows, without).select(*raw_zone.COORDINATES)
    lowest = F.min("batch") if replayed.column == "batch" else F.unix_micros(F.min("timestamp"))
    found = rows.agg(lowest).first()
    if found is None or found[0] is None:
        return replace(replayed, held=held)
    if replayed.column == "batch":
        first = str(found[0])
        if any(has_older(spark, pipeline, each, replayed, first, held) for each in keyless(pipeline, source)):
            return replace(replayed, held=held)
    else:
        first = literal(datetime.fromtimestamp(found[0] / 1e6, UTC))
    return replayed.clamped(first, held)


def keyless(pipeline: Pipeline, source: Source) -> list[TableName]:
    """Staging tables where no key shows that a row is there already."""
    return [TableName(Zone.STAGING, each.name) for each in pipeline.staging_of(source.name) if not each.key]


def has_older(
    spark: SparkSession,
    pipeline: Pipeline,
    table: TableName,
    replayed: ReplayRange,
    first: str,
    held: DataFrame,
) -> bool:
    """Whether the table has rows of older batches that raw holds in a newer one: an interrupted backfill read
    them again."""
    lake = pipeline.lake_location
    if not lake.exists(spark, table):
        return False
    below = lake.read(spark, table).where(f"{replayed.zone} AND _batch < {first}")
    return not rewritten_rows.at(held, below).isEmpty()
