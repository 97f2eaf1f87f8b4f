"""Replay: batches of raw go through the zones again, with the current schema and rules.

In: a session, a pipeline, a source, numbers of batches. Out: what changed, and which views depend on it.
Events are rewritten chunk by chunk, in the order in which they were read; a killed replay goes on behind its
last chunk. Of change events and snapshots the last rows count: they are one chunk, which executors judge. A
running pipeline goes on; batches of the same source wait for the source's lock.
Does not know: views, the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.engine.errors import NeedsDecision
from barnabas.engine.session import apart
from barnabas.pipeline.ingest import raw_zone, schemas
from barnabas.pipeline.ingest.batch_parser import BatchParser, in_reading_order
from barnabas.pipeline.ingest.fenced_tables import fence_tables
from barnabas.pipeline.ingest.judging.judgement import horizons_us
from barnabas.pipeline.ingest.results import RewriteResult
from barnabas.pipeline.ingest.rewriting.chunks import Chunk, chunks, rows_per_chunk
from barnabas.pipeline.ingest.rewriting.finishing import (
    epoch_of,
    finish,
    result_of,
    retrying,
    rewritten,
    together,
    with_late,
)
from barnabas.pipeline.ingest.rewriting.mended import brought_back, mended
from barnabas.pipeline.ingest.rewriting.progress import Progress
from barnabas.pipeline.ingest.rewriting.replay_preview import (
    BATCH_MAX,
    Confirm,
    Preview,
    clamped,
    preview,
    range_of_batches,
    refuse_removals,
    tables_behind,
)
from barnabas.pipeline.ingest.write_mode import ReplayRange
from barnabas.pipeline.ingest.zone_rows import with_system
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Merging, Pipeline, Source
from barnabas.pipeline.spec.source_locks import source_lock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPLAY = "replay"


def replay(
    spark: SparkSession,
    pipeline: Pipeline,
    source: str,
    from_batch: int | None = None,
    to_batch: int | None = None,
    *,
    rebuild: bool = False,
    confirm: Confirm = refuse_removals,
) -> RewriteResult:
    """Write batches of raw again, with the current schema and rules; all batches unless numbers are given.

    Rows that raw has forgotten stay as they are. `rebuild` empties the tables first, which a column of
    another type needs: then `confirm` is asked about the rows that raw cannot bring back. Of change events,
    all batches from the first one on are read: a later change or deletion of a row must win."""
    found = pipeline.source(source)
    whole = range_of_batches(from_batch, to_batch)
    with source_lock(pipeline, source):
        fence_tables(spark, pipeline)
        progress = Progress(pipeline, found, f"{REPLAY} {whole.first} {whole.end} {rebuild}")
        empties = rebuild and progress.resumes_at is None
        if not empties:
            finish(spark, pipeline, source)
        foreseen = preview(spark, pipeline, source, whole, rebuild=empties)
        if not confirm(replace(foreseen, resumes_at=progress.resumes_at)):
            return RewriteResult(what=REPLAY)
        if empties:
            drop_tables(spark, pipeline, found)
            progress.note(0)
            finish(spark, pipeline, source)
        result = replay_rows(spark, pipeline, found, whole, foreseen, progress)
        done = rewritten(
            spark,
            pipeline,
            f"replay of {source}",
            result,
            result.changed,
            touched(pipeline, source, progress),
        )
        progress.finish()
        return done


def touched(pipeline: Pipeline, source: str, progress: Progress) -> list[TableName]:
    """Tables that an interrupted run of the command may have changed."""
    return [] if progress.resumes_at is None else list(tables_behind(pipeline, source))


def drop_tables(spark: SparkSession, pipeline: Pipeline, source: Source) -> None:
    """Empty the tables and give them the current columns, in one commit each."""
    schema = schemas.declared(source)
    if schema is None:
        raise NeedsDecision(
            f"source {source.name}: only tables with a declared schema can be rebuilt: declare it"
        )
    lake = pipeline.lake_location
    parser = BatchParser(spark, pipeline, source)
    columns = {TableName(Zone.STAGING, each.name): with_system(schema.fields) for each in parser.staging}
    for _, trusted in parser.trusted:
        columns[TableName(Zone.TRUSTED, trusted.name)] = parser.trusted_schema(trusted, schema)
    for table, found in columns.items():
        app = f"{pipeline.name}/{source.name}/{table.zone}/{table.name}"
        txn = commits.rewriting(spark, lake, table, app, epoch_of(pipeline))
        commits.overwrite(spark.createDataFrame([], found), lake.path(table), txn)


def replay_rows(
    spark: SparkSession,
    pipeline: Pipeline,
    source: Source,
    whole: ReplayRange,
    foreseen: Preview,
    progress: Progress,
) -> RewriteResult:
    spark, lake = apart(spark), pipeline.lake_location
    zone = raw_zone.RawZone(spark, lake, pipeline.name, source.name)
    checkpoint = zone.newest_checkpoint()
    if checkpoint is None or checkpoint.batch == 0:
        return RewriteResult(what=REPLAY)
    what = f"replay of {source.name}"
    if checkpoint.merging is not Merging.INSERT_NEW:
        return retrying(
            lambda: replay_last_rows(
                apart(spark), pipeline, source, whole, checkpoint, is_rebuild=foreseen.is_rebuild
            ),
            what,
        )
    without = None
    if foreseen.is_rebuild:
        foreseen = replace(foreseen, forgotten={})  # the tables are empty
    elif foreseen.forgotten:
        without = mended(spark, pipeline, source.name, whole)
    replayed = clamped(spark, pipeline, source, whole, without)
    replayed = replace(replayed, with_forgotten=frozenset(foreseen.forgotten))
    parser = BatchParser(spark, pipeline, source)
    parser.open()
    results = []
    for piece in pieces(spark, pipeline, source, replayed, progress.resumes_at or 0, without):

        def attempt(piece: ReplayRange = piece) -> RewriteResult:
            return replay_chunk(spark, pipeline, source, parser, piece, without)

        results.append(retrying(attempt, what))
        results = [together(REPLAY, results)]
        assert piece.batches is not None
        progress.note(piece.batches[1])
    return together(REPLAY, results)


def pieces(
    spark: SparkSession,
    pipeline: Pipeline,
    source: Source,
    replayed: ReplayRange,
    from_batch: int,
    without: DataFrame | None,
) -> Iterator[ReplayRange]:
    """Chunks of the range that lie behind each other without gaps: rows of a zone may have batches that raw
    does not hold any more."""
    rows = pipeline.lake_location.read(spark, TableName(Zone.RAW, source.name))
    stagings = pipeline.staging_of(source.name)
    trusteds = [trusted for staging in stagings for trusted in pipeline.trusted_of(staging.name)]
    horizons = horizons_us(stagings, trusteds)
    found = chunks(
        rows.where(f"{replayed.raw} AND batch >= {from_batch}"),
        rows_per_chunk(spark),
        min(horizons, default=None),
    )
    first, chunk = from_batch, next(found, None)
    while chunk is not None:
        following = next(found, None)
        end = BATCH_MAX if following is None else chunk.end
        yield piece_of(replayed, rows, Chunk(first, end, chunk.rows), without)
        first, chunk = end, following


def piece_of(replayed: ReplayRange, rows: DataFrame, chunk: Chunk, without: DataFrame | None) -> ReplayRange:
    piece = replace(replayed, batches=(chunk.first, chunk.end))
    held = brought_back(rows.where(piece.raw), without).select(*raw_zone.COORDINATES)
    return piece.chunk((chunk.first, chunk.end), held)


def replay_chunk(
    spark: SparkSession,
    pipeline: Pipeline,
    source: Source,
    parser: BatchParser,
    piece: ReplayRange,
    without: DataFrame | None,
) -> RewriteResult:
    lake, table = pipeline.lake_location, TableName(Zone.RAW, source.name)
    rows = brought_back(lake.read(spark, table).where(piece.raw), without)
    return written(parser, rows, lake.version(spark, table), piece)


def replay_last_rows(
    spark: SparkSession,
    pipeline: Pipeline,
    source: Source,
    whole: ReplayRange,
    checkpoint: raw_zone.RawCheckpoint,
    *,
    is_rebuild: bool,
) -> RewriteResult:
    """Replay change events or a snapshot: the last row of each key counts."""
    lake, table = pipeline.lake_location, TableName(Zone.RAW, source.name)
    rows = lake.read(spark, table)
    if checkpoint.merging is Merging.REPLACE_ALL:
        # The newest snapshot replaced all earlier ones.
        rows = rows.where(f"batch = {checkpoint.batch} AND ({whole.raw})")
    else:
        found = rows.where(whole.raw).agg(F.min("batch")).first()
        if found is None or found[0] is None:
            return RewriteResult(what=REPLAY)
        # Keys that changed in the range have their last change there or later: earlier batches are not read.
        whole = range_of_batches(int(found[0]), None)
        rows = rows.where(whole.raw)
        if not is_rebuild:
            rows = brought_back(rows, mended(spark, pipeline, source.name, whole))
        whole = replace(whole, held=rows.select(*raw_zone.COORDINATES))
    parser = BatchParser(spark, pipeline, source)
    parser.open()
    return written(parser, rows, lake.version(spark, table), whole, checkpoint.merging)


def written(
    parser: BatchParser,
    rows: DataFrame,
    number: int,
    piece: ReplayRange,
    merging: Merging = Merging.INSERT_NEW,
) -> RewriteResult:
    count = rows.count()
    if not count:
        return RewriteResult(what=REPLAY)
    parsed = parser.parse(with_late(in_reading_order(rows, count)), count)
    try:
        done = parser.write(parsed, number, merging, writer=f"{REPLAY}-{number}", replay_range=piece)
        return result_of(REPLAY, parsed, done)
    finally:
        parsed.release()
