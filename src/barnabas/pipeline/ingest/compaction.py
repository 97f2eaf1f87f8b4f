"""Compacts small files of a source's tables in the background, while batches go on.

In: the tables that each batch changed. Out: commits that change no row. A table is compacted after every
`COMMITS_TO_COMPACT` commits, so a run rewrites what came since the last one and at most one file that was not
full. Rows of neighbouring batches stay together, and statistics of batches and times stay narrow. Appends do
not conflict with it; tables that are merged by key are compacted under the source's lock. A host that has
lost the lease does not begin; a compaction that it had begun changes no row, and Delta refuses it if another
host has replaced its files. Does not know: schedules (`maintenance` has one).
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from barnabas.engine.errors import brief
from barnabas.engine.lease_status import check_lease
from barnabas.engine.session import apart
from barnabas.pipeline.ingest import maintenance
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Merging, Pipeline, Source
from barnabas.pipeline.spec.source_locks import source_lock
from barnabas.pipeline.spec.state_folder import state_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS_TO_COMPACT = 200
MERGED_ZONES = (Zone.STAGING, Zone.TRUSTED)
LOG = logging.getLogger(__name__)


class Compactor:
    """One thread for the tables of one source."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, source: Source, epoch: int) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._source = source
        self._epoch = epoch
        self._commits: Counter[TableName] = Counter()
        self._under_way: dict[TableName, Future[None]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="compact")
        self._mutex = threading.Lock()

    def committed(self, tables: Iterable[TableName]) -> None:
        """Count a commit of each table; compact those that have enough."""
        for table in tables:
            if table.zone is Zone.REFINED:
                continue
            self._commits[table] += 1
            if self._commits[table] >= COMMITS_TO_COMPACT and self._is_free(table):
                self._commits[table] = 0
                self._under_way[table] = self._pool.submit(self._compact, table)

    def _is_free(self, table: TableName) -> bool:
        last = self._under_way.get(table)
        return last is None or last.done()

    def wait(self) -> None:
        """Wait until nothing is being compacted."""
        wait(self._under_way.values())

    def _compact(self, table: TableName) -> None:
        try:
            check_lease(state_folder(self._pipeline), self._epoch)
            with self._lock(table):
                for each in maintenance.compacted(apart(self._spark), self._pipeline, table, at_once=1):
                    LOG.info("%s: %d files became %d", table, each.before, each.after)
        except Exception as problem:  # the next time comes
            LOG.warning("%s could not be compacted: %s", table, brief(problem))

    def _lock(self, table: TableName) -> AbstractContextManager[object]:
        is_merged = self._source.merging is not Merging.INSERT_NEW and table.zone in MERGED_ZONES
        return source_lock(self._pipeline, self._source.name) if is_merged else nullcontext()
