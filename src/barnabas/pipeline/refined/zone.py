"""The refined zone: business tables, computed by SQL or by a Python function.

In: trusted and refined tables. Out: commits. Tables that depend on new rows only are appended to batch by
batch, each batch once. Others are updated in order of dependency: by increments where their SQL allows it
(`spec.update_mode`), else as a whole. Each commit says how far it has read its inputs.
Does not know: views, schedules.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from barnabas.engine.errors import NeedsDecision
from barnabas.engine.lease_status import check_lease
from barnabas.engine.session import apart, is_remote
from barnabas.pipeline.increments.scopes import Scope
from barnabas.pipeline.increments.source_table import SourceTable
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import SYSTEM_COLUMNS
from barnabas.pipeline.lake.table_change import TableChange
from barnabas.pipeline.lake.tables import Lake, TableName, Zone
from barnabas.pipeline.refined.incremental import Incremental, Target
from barnabas.pipeline.refined.progress import Progress, fingerprint, newest_progress
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Pipeline, Refined
from barnabas.pipeline.spec.source_locks import source_lock
from barnabas.pipeline.spec.state_folder import state_folder
from barnabas.pipeline.spec.update_mode import Update, UpdateMode, known_columns, update_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_SCHEDULE = "*/5 * * * *"  # of tables that batches are not appended to
LOG = logging.getLogger(__name__)
# In messages of Delta and Spark about changes that are vacuumed, not recorded, of another schema, or that
# cannot be merged.
UNREADABLE = (
    "CHANGE_DATA",
    "CHANGE_FEED",
    "FILE_NOT_EXIST",
    "FileNotFound",
    "MULTIPLE_SOURCE_ROW",  # several rows for a group: its keys do not tell groups apart
    "SCHEMA",
    "TIME_TRAVEL",
    "VERSION_NOT_FOUND",
    "versionNotFound",
)


def schedules(pipeline: Pipeline) -> dict[str, str]:
    """Cron expressions of the tables that batches are not appended to."""
    return {
        each.name: each.schedule or DEFAULT_SCHEDULE
        for each in pipeline.refined
        if not refined_sql.appends(pipeline, each)
    }


def refresh(spark: SparkSession, pipeline: Pipeline, names: Iterable[str] | None = None) -> list[TableChange]:
    """Bring tables up to date, in order; all of them unless named. Tables with missing inputs are skipped,
    and so are those whose inputs did not change."""
    wanted = None if names is None else set(names)
    lake = pipeline.lake_location
    session = spark if is_remote(spark) else apart(spark)  # commits take their ids from its settings
    found = []
    for each in refined_sql.in_order(pipeline):
        if wanted is not None and each.name not in wanted:
            continue
        inputs = refined_sql.inputs_of(pipeline, each)
        if not all(lake.exists(session, table) for table in inputs.values()):
            continue
        table = TableName(Zone.REFINED, each.name)
        with lock_of_input(pipeline, each), source_lock(pipeline, str(table)):
            if not updated(session, pipeline, each, inputs):
                continue
        count = lake.read(session, table).count()
        found.append(TableChange(table, lake.version(session, table), count))
    return found


def updated(
    spark: SparkSession, pipeline: Pipeline, refined: Refined, inputs: Mapping[str, TableName]
) -> bool:
    """Bring one table up to date; False if there was nothing to do."""
    lake, table = pipeline.lake_location, TableName(Zone.REFINED, refined.name)
    epoch = check_lease(state_folder(pipeline)).epoch
    tables = {name: SourceTable(spark, lake, each) for name, each in inputs.items()}
    versions = {name: lake.version(spark, each) for name, each in inputs.items()}
    identities = {name: each.identity() for name, each in tables.items()}
    progress = Progress(fingerprint(refined.sql or refined.python), versions, identities)
    update = update_of(pipeline, refined)
    if update.aliases:
        columns = [name for each in inputs.values() for name in lake.read(spark, each).columns]
        update = known_columns(update, columns)
        if update.mode is UpdateMode.WHOLE:
            LOG.info("refined.%s is %s", refined.name, update.text)
    there = lake.exists(spark, table)
    before = newest_progress(spark, lake, table) if there and update.mode is not UpdateMode.BATCHES else None
    if before == progress and update.is_steady:
        return False
    txn = commits.rewriting(spark, lake, table, writer_of(pipeline, refined), epoch)
    target = Target(lake.path(table), txn, progress.text())
    if (
        before is not None
        and update.star is not None
        and progress.can_continue(before)
        and incremented(spark, refined, update, tables, before, progress, target)
    ):
        note_progress(spark, lake, table, target, writer_of(pipeline, refined), epoch)
        return True
    with Scope(spark) as scope:
        rows = computed(scope, refined, {name: each.rows(versions[name]) for name, each in tables.items()})
        if not there:
            commits.ensure(spark, lake.path(table), rows.schema, commits.CHANGES)
            txn = commits.rewriting(spark, lake, table, writer_of(pipeline, refined), epoch)
        commits.overwrite(rows, lake.path(table), txn, metadata=progress.text())
    return True


def incremented(
    spark: SparkSession,
    refined: Refined,
    update: Update,
    tables: Mapping[str, SourceTable],
    before: Progress,
    now: Progress,
    target: Target,
) -> bool:
    """Commit an increment; False if the changes cannot be read or applied, so that the table must be computed
    as a whole: files are vacuumed, the schema changed, or a type cannot be compared."""
    from pyspark.errors import AnalysisException, PySparkException

    with Scope(spark) as scope:
        try:
            Incremental(scope, refined, update, tables, before.reads, now.reads).commit(target)
        except PySparkException as problem:
            if not isinstance(problem, AnalysisException) and not is_unreadable(problem):
                raise
            LOG.warning(
                "refined.%s is computed as a whole: the changes after %s cannot be used: %s",
                refined.name,
                dict(before.reads),
                str(problem).partition("\n")[0],
            )
            return False
    return True


def is_unreadable(problem: Exception) -> bool:
    """Whether changes between two versions are gone, not recorded, or cannot be merged."""
    text = str(problem)
    return any(word in text for word in UNREADABLE)


def note_progress(
    spark: SparkSession, lake: Lake, table: TableName, target: Target, writer: str, epoch: int
) -> None:
    """Commit the progress of an increment that changed nothing: Delta makes no commit for it."""
    if newest_progress(spark, lake, table) != Progress.parse(target.metadata):
        txn = commits.rewriting(spark, lake, table, writer, epoch)
        commits.append(lake.read(spark, table).limit(0), target.path, txn, metadata=target.metadata)


def lock_of_input(pipeline: Pipeline, refined: Refined) -> AbstractContextManager[object]:
    """The lock of the source whose batches are appended to this table; no lock for other tables."""
    if not refined_sql.appends(pipeline, refined):
        return nullcontext()
    [table] = refined_sql.inputs_of(pipeline, refined).values()
    source = pipeline.source_of(table)
    return nullcontext() if source is None else source_lock(pipeline, source.name)


def writer_of(pipeline: Pipeline, refined: Refined) -> str:
    """The writer of a table that is recomputed as a whole."""
    return f"{pipeline.name}/refined/{refined.name}"


def computed(scope: Scope, refined: Refined, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Rows of the table, computed from frames by the names that its SQL or function uses."""
    if refined.python:
        result: Any = function(refined)(
            scope.spark, **{name.rpartition(".")[2]: rows for name, rows in frames.items()}
        )
        return result  # type: ignore[no-any-return]
    names = {name: scope.place(rows) for name, rows in frames.items()}
    return scope.spark.sql(refined_sql.with_names(refined.sql, names))


def function(refined: Refined) -> Callable[..., Any]:
    module, _, name = refined.python.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise NeedsDecision(f"refined.{refined.name}: {refined.python} cannot be imported: {error}") from None
    return found


def appended_by(pipeline: Pipeline, trusted: str) -> list[tuple[Refined, str]]:
    """Refined tables that rows of a trusted table are appended to, with the name that their SQL uses for
    it."""
    found = []
    for each in pipeline.refined:
        if refined_sql.appends(pipeline, each):
            [(name, table)] = refined_sql.inputs_of(pipeline, each).items()
            if table == TableName(Zone.TRUSTED, trusted):
                found.append((each, name))
    return found


def append_rows(
    appender: commits.Appender, lake: Lake, refined: Refined, name: str, rows: DataFrame, txn: commits.Txn
) -> TableChange | None:
    """Append what new rows of the input add to the table, once."""
    table, spark = TableName(Zone.REFINED, refined.name), rows.sparkSession
    before = lake.version(spark, table)
    with Scope(spark) as scope:
        new = computed(scope, refined, {name: rows})
        appender.append(new, lake.path(table), txn, properties=commits.CHANGES if before < 0 else None)
    after = lake.version(spark, table)
    return TableChange(table, after, -1) if after != before else None


def shown_columns(rows: DataFrame) -> list[str]:
    return [name for name in rows.columns if name not in SYSTEM_COLUMNS]
