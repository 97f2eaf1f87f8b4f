"""Shared by replay, backfill and release: an interrupted batch is finished first, conflicts are retried,
refined tables follow.

In: a session, a pipeline. Out: what changed, and which views depend on it.
Does not know: how rows are rewritten, views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from barnabas.engine.errors import CommitConflict, classified
from barnabas.engine.lease_status import check_lease
from barnabas.engine.session import is_remote
from barnabas.pipeline.ingest import raw_zone
from barnabas.pipeline.ingest.judging.parsed_batch import ParsedBatch
from barnabas.pipeline.ingest.results import RewriteResult, TableChange
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.ingest.write_mode import WriteResult
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.refined import zone as refined_zone
from barnabas.pipeline.sources.source_slice import LATE_BEFORE
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS_MAX = 3
T = TypeVar("T")


def epoch_of(pipeline: Pipeline) -> int:
    """The epoch of the lease that this run holds. NotOurLease if another host may have it."""
    return check_lease(state_folder(pipeline)).epoch


def finish(spark: SparkSession, pipeline: Pipeline, source: str) -> None:
    """Finish an interrupted batch first: finished later, it would write again what was rewritten
    meanwhile."""
    if pipeline.lake_location.exists(spark, TableName(Zone.RAW, source)):
        SourceRunner(spark, pipeline, source).recover()


def rewritten(
    spark: SparkSession,
    pipeline: Pipeline,
    what: str,
    result: RewriteResult,
    changed: Iterable[TableChange],
    before: Iterable[TableName] = (),
) -> RewriteResult:
    """Compute the refined tables that depend on the changes; add them and the names of dependent views.

    `before`: tables that an interrupted command has changed."""
    changed = list(changed)
    touched = {each.table for each in changed if each.table.zone in (Zone.STAGING, Zone.TRUSTED)}
    touched.update(before)
    tables, views = refined_sql.dependents(pipeline, touched)
    changed += refined_zone.refresh(spark, pipeline, [each.name for each in tables]) if tables else []
    return RewriteResult(
        what=what,
        rows_in=result.rows_in,
        staged=result.staged,
        accepted=result.accepted,
        quarantined=result.quarantined,
        changed=tuple(changed),
        refined=tuple(each.name for each in tables),
        views=tuple(views),
    )


def retrying(attempt: Callable[[], T], doing: str) -> T:
    for left in reversed(range(ATTEMPTS_MAX)):
        try:
            return attempt()
        except Exception as error:
            meaning = classified(error, doing)
            if not isinstance(meaning, CommitConflict) or not left:
                raise meaning from error
    raise AssertionError


def fixed_copy(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The rows as they are now. Spark Connect loses checkpoints of cloned sessions, so there they are
    copied."""
    return spark.createDataFrame(rows.toArrow(), rows.schema) if is_remote(spark) else rows.localCheckpoint()


def with_late(rows: DataFrame) -> DataFrame:
    return rows.select(*raw_zone.COLUMNS, F.lit(None).cast("timestamp").alias(LATE_BEFORE))


def result_of(what: str, parsed: ParsedBatch, done: WriteResult) -> RewriteResult:
    return RewriteResult(
        what=what,
        rows_in=parsed.count,
        staged=done.staged,
        accepted=done.accepted,
        quarantined=done.quarantined,
        changed=tuple(done.changed),
    )


def together(what: str, results: Iterable[RewriteResult]) -> RewriteResult:
    """The results of chunks as one: a table that changed several times is named once, with its last version
    and all rows."""
    found = RewriteResult(what=what)
    changed: dict[TableName, TableChange] = {}
    for each in results:
        found = replace(
            found,
            rows_in=found.rows_in + each.rows_in,
            staged=found.staged + each.staged,
            accepted=found.accepted + each.accepted,
            quarantined=found.quarantined + each.quarantined,
        )
        for change in each.changed:
            before = changed.get(change.table)
            rows = change.rows + (before.rows if before is not None else 0)
            changed[change.table] = replace(change, rows=rows)
    return replace(found, changed=tuple(changed.values()))
