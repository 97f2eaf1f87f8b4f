"""The refined zone: business tables, computed by SQL or by a Python function.

In: trusted and refined tables. Out: commits. Tables that depend on new rows only are appended to batch by
batch, each batch once. All others are recomputed as a whole, in order of dependency.
Does not know: views, schedules.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from barnabas.engine.errors import NeedsDecision
from barnabas.engine.lease_status import check_lease
from barnabas.pipeline.ingest.results import TableChange
from barnabas.pipeline.ingest.source_locks import source_lock
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import SYSTEM_COLUMNS
from barnabas.pipeline.lake.tables import Lake, TableName, Zone
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Pipeline, Refined
from barnabas.pipeline.spec.state_folder import state_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_SCHEDULE = "*/5 * * * *"  # of tables that are recomputed as a whole


def schedules(pipeline: Pipeline) -> dict[str, str]:
    """Cron expressions of the tables that are recomputed as a whole."""
    return {
        each.name: each.schedule or DEFAULT_SCHEDULE
        for each in pipeline.refined
        if not refined_sql.appends(pipeline, each)
    }


def refresh(spark: SparkSession, pipeline: Pipeline, names: Iterable[str] | None = None) -> list[TableChange]:
    """Recompute tables as a whole, in order; all of them unless named. Tables with missing inputs are
    skipped."""
    wanted = None if names is None else set(names)
    lake = pipeline.lake_location
    found = []
    for each in refined_sql.in_order(pipeline):
        if wanted is not None and each.name not in wanted:
            continue
        inputs = refined_sql.inputs_of(pipeline, each)
        if not all(lake.exists(spark, table) for table in inputs.values()):
            continue
        table = TableName(Zone.REFINED, each.name)
        with lock_of_input(pipeline, each), source_lock(pipeline, str(table)):
            epoch = check_lease(state_folder(pipeline)).epoch
            frames = {name: lake.read(spark, table) for name, table in inputs.items()}
            rows = computed(spark, each, frames)
            if not lake.exists(spark, table):
                commits.ensure(spark, lake.path(table), rows.schema, commits.CHANGES)
            txn = commits.rewriting(spark, lake, table, writer_of(pipeline, each), epoch)
            commits.overwrite(rows, lake.path(table), txn)
        count = lake.read(spark, table).count()
        found.append(TableChange(table, lake.version(spark, table), count))
    return found


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


def computed(spark: SparkSession, refined: Refined, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Rows of the table, computed from frames by the names that its SQL or function uses."""
    if refined.python:
        result: Any = function(refined)(
            spark, **{name.rpartition(".")[2]: rows for name, rows in frames.items()}
        )
        return result  # type: ignore[no-any-return]
    names = {}
    for index, (name, rows) in enumerate(frames.items()):
        names[name] = f"_barnabas_{refined.name}_{index}"
        rows.createOrReplaceTempView(names[name])
    return spark.sql(refined_sql.with_names(refined.sql, names))


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
    new = computed(spark, refined, {name: rows})
    before = lake.version(spark, table)
    appender.append(new, lake.path(table), txn, properties=commits.CHANGES if before < 0 else None)
    after = lake.version(spark, table)
    return TableChange(table, after, -1) if after != before else None


def shown_columns(rows: DataFrame) -> list[str]:
    return [name for name in rows.columns if name not in SYSTEM_COLUMNS]
