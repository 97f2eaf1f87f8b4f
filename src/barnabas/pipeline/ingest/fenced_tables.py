"""Fences all tables of a pipeline when another host, or a run that was killed, held the lease before.

In: a session, a pipeline. Out: tables that refuse commits of former holders; a note that all are fenced. It
is done before the first commit of an epoch: without it, batches of the former epoch would be written again.
Does not know: who holds the lease.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from barnabas.engine.delta import fencing
from barnabas.engine.lease_status import check_lease, is_fenced, note_fenced
from barnabas.pipeline.ingest import quarantine
from barnabas.pipeline.ingest.raw_zone import RawZone
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.refined import zone as refined_zone
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.source_locks import SourceLock
from barnabas.pipeline.spec.state_folder import state_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FENCES_AT_ONCE_MAX = 4
LOCK_FILE = "fence.lock"


def fence_tables(spark: SparkSession, pipeline: Pipeline) -> bool:
    """Fence every table, unless this epoch has done it; whether it was done now."""
    folder = state_folder(pipeline)
    status = check_lease(folder)
    if status.is_fenced or is_fenced(folder, status.epoch):
        return False
    with SourceLock(folder / LOCK_FILE):
        if is_fenced(folder, status.epoch):
            return False  # another process of this run did it meanwhile
        found: dict[TableName, list[str]] = {}
        for table, app in writers_of(pipeline):
            found.setdefault(table, []).extend((app, commits.rewriting_app(app)))

        def fence(table: TableName) -> None:
            lake = pipeline.lake_location
            if lake.exists(spark, table):
                metadata = checkpoint_of(spark, pipeline, table)
                fencing.fence(spark, lake.path(table), found[table], status.epoch, metadata)

        with ThreadPoolExecutor(FENCES_AT_ONCE_MAX) as pool:
            list(pool.map(fence, found))
        note_fenced(folder, status.epoch)
    return True


def writers_of(pipeline: Pipeline) -> Iterator[tuple[TableName, str]]:
    """Each table with the name of a writer of it, as in transaction ids of batches."""
    for source in pipeline.sources:
        first = f"{pipeline.name}/{source.name}"
        yield TableName(Zone.RAW, source.name), f"{first}/raw"
        for staging in pipeline.staging_of(source.name):
            tables = [TableName(Zone.STAGING, staging.name), quarantine.table_of(staging.name)]
            for trusted in pipeline.trusted_of(staging.name):
                tables += [TableName(Zone.TRUSTED, trusted.name), quarantine.table_of(trusted.name)]
                for refined, _ in refined_zone.appended_by(pipeline, trusted.name):
                    yield TableName(Zone.REFINED, refined.name), f"{first}/refined/{refined.name}"
            yield from ((table, f"{first}/{table.zone}/{table.name}") for table in dict.fromkeys(tables))
    for each in pipeline.refined:
        yield TableName(Zone.REFINED, each.name), refined_zone.writer_of(pipeline, each)


def checkpoint_of(spark: SparkSession, pipeline: Pipeline, table: TableName) -> str:
    """The newest checkpoint of a raw table: every commit there repeats it."""
    if table.zone is not Zone.RAW:
        return ""
    zone = RawZone(spark, pipeline.lake_location, pipeline.name, table.name)
    checkpoint = zone.newest_checkpoint()
    return checkpoint.text() if checkpoint is not None else ""
