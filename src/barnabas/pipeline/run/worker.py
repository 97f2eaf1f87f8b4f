"""Does the work of a pipeline piece by piece, for both applications and for `run --once`.

In: a session, a pipeline, where parts of views go. Out: batches in all zones, views up to date, refined
tables, maintenance; each piece is recorded. Every piece can be repeated after a crash. Does not know:
processes, threads, schedules.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from barnabas.engine.errors import IngestError
from barnabas.engine.lease_status import check_lease
from barnabas.engine.schedule import Job
from barnabas.engine.timeline import Kind, State
from barnabas.pipeline.ingest import maintenance
from barnabas.pipeline.ingest.results import AddedRows, BatchResult, CommitListener, TableChange
from barnabas.pipeline.ingest.rewriting.finishing import finish
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.observe.recorder import RunRecorder
from barnabas.pipeline.refined import zone as refined_zone
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Pipeline, by_name
from barnabas.pipeline.spec.state_folder import state_folder
from barnabas.pipeline.views.layers import Outcome, Views
from barnabas.pipeline.views.parts import Parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAINTENANCE = "lake"

RowProgress = Callable[[int, int | None], object]


class Worker:
    """Thread-safe, except that each source must be used by one thread only."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        parts: Parts,
        recorder: RunRecorder,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_stopping = is_stopping
        self.spark = spark
        self.pipeline = pipeline
        self.recorder = recorder
        self.views = Views(spark, pipeline, parts)
        self.listener: CommitListener | None = None  # hears of commits of batches
        self._runners: dict[str, SourceRunner] = {}
        self._newest: dict[TableName, datetime] = {}  # event times of tables that batches changed
        # Jobs of several sources may change one view.
        self._turns = {view.name: threading.Lock() for view in pipeline.views}

    def runner(self, source: str) -> SourceRunner:
        if source not in self._runners:
            self._runners[source] = SourceRunner(self.spark, self.pipeline, source, listener=self.listener)
        return self._runners[source]

    def batches(self, source: str, *, to_now: bool) -> Iterator[BatchResult]:
        """Batches of a streaming source: what it has now (`to_now`), or until nothing is left."""
        runner = self.runner(source)
        for batch in runner.batches(self._is_stopping) if to_now else iter(runner.step, None):
            self._noted(runner, batch, streaming=True)
            yield batch

    def drain(self, source: str, say: RowProgress | None = None) -> list[BatchResult]:
        """Read all that a source has now. `say` gets the number of rows done, and the total if known."""
        runner = self.runner(source)
        found: list[BatchResult] = []
        done = 0
        for batch in runner.batches(self._is_stopping):
            lag = self._noted(runner, batch, streaming=False)
            done += batch.rows_in
            if say is not None:
                say(done, None if lag is None else done + lag)
            found.append(batch)
        runner.count_zones()
        self.recorder.set_state(Kind.SOURCE, source, State.IDLE)
        return found

    def _noted(self, runner: SourceRunner, batch: BatchResult, *, streaming: bool) -> int | None:
        """Record a batch; the number of unread rows, if known."""
        try:
            lag = runner.lag()
        except IngestError:
            lag = None  # the source became unavailable after the batch
        self.recorder.batch(batch, lag, streaming=streaming)
        if batch.newest_event_time is not None:
            for changed in batch.changed:
                self._newest[changed.table] = batch.newest_event_time
        return lag

    # -- views -------------------------------------------------------------------------------------

    def catch_up(self, view: str, added: Sequence[AddedRows] = ()) -> Outcome:
        outcome = self.views.catch_up(view, added)
        self.recorder.outcome(outcome, newest=self._newest.get(self._table_of(view)))
        return outcome

    def refresh_view(self, view: str) -> Outcome:
        with self._turns[view]:
            outcome = self.views.refresh(view)
        self.recorder.outcome(outcome)
        return outcome

    def catch_up_after(self, changed: Iterable[TableChange]) -> None:
        """Catch up the views whose tables changed, each once, in the order of the file."""
        names = {name for each in changed for name in self.views.fed_by(each.table)}
        for view in self.pipeline.views:
            if view.name in names:
                with self._turns[view.name]:
                    self.catch_up(view.name)

    def _table_of(self, view: str) -> TableName:
        return next(each.table for each in self.pipeline.views if each.name == view)

    # -- scheduled work ----------------------------------------------------------------------------

    def do(self, job: Job, say: RowProgress | None = None) -> None:
        """Do a scheduled job, and update the views that depend on it."""
        check_lease(state_folder(self.pipeline))
        if job.kind == Kind.SOURCE:
            batches = self.drain(job.name, say)
            self.catch_up_after([changed for batch in batches for changed in batch.changed])
        elif job.kind == Kind.REFINED:
            self._refine_once(job.name) if job.is_once else self.refine([job.name])
        elif job.kind == Kind.VIEW_BATCH:
            self.refresh_view(job.name)
        elif job.kind == Kind.MAINTENANCE:
            self.maintain()
        self.recorder.set_state(Kind(job.kind), job.name, State.IDLE)

    def _refine_once(self, name: str) -> None:
        """Recompute a table that batches are appended to, while no batch is being written to it."""
        table = by_name(self.pipeline.refined, name)
        with refined_zone.lock_of_input(self.pipeline, table):
            for each in refined_sql.inputs_of(self.pipeline, table).values():
                if (source := self.pipeline.source_of(each)) is not None:
                    finish(self.spark, self.pipeline, source.name)
            self.refine([name])

    def refine(self, names: Iterable[str]) -> list[TableChange]:
        """Bring refined tables up to date, in order, and the views over them."""
        started = time.time()
        changed = refined_zone.refresh(self.spark, self.pipeline, names)
        for each in changed:
            self.recorder.made(Kind.REFINED, each.table.name, started, each.rows, each.version)
        self.catch_up_after(changed)
        return changed

    def maintain(self) -> None:
        started = time.time()
        maintenance.maintain(self.spark, self.pipeline)
        self.recorder.made(Kind.MAINTENANCE, MAINTENANCE, started, 0)


def jobs_of(pipeline: Pipeline) -> list[Job]:
    """All scheduled jobs, in the order in which they are done if all are due."""
    found = [
        Job(Kind.SOURCE, each.name, each.frequency.cron)
        for each in pipeline.sources
        if not each.frequency.is_streaming
    ]
    due = refined_zone.schedules(pipeline)
    found += [Job(Kind.REFINED, each.name, due[each.name]) for each in pipeline.refined if each.name in due]
    # Tables that batches are appended to are recomputed once, when they are new or their SQL changed.
    found += [
        Job(Kind.REFINED, each.name, None, is_once=True) for each in pipeline.refined if each.name not in due
    ]
    found += [Job(Kind.VIEW_BATCH, each.name, each.batch) for each in pipeline.views if each.batch]
    if pipeline.maintenance.compact:
        found.append(Job(Kind.MAINTENANCE, MAINTENANCE, pipeline.maintenance.compact, is_due_at_first=False))
    return found


def streaming_sources(pipeline: Pipeline) -> list[str]:
    return [each.name for each in pipeline.sources if each.frequency.is_streaming]


def streaming_views(pipeline: Pipeline) -> list[str]:
    """Views that the streaming application keeps up to date."""
    return [each.name for each in pipeline.views if each.table.zone in (Zone.TRUSTED, Zone.REFINED)]
