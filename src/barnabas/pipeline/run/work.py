"""The work of a pipeline, piece by piece, as both applications and `run --once` do it.

In: a session, a pipeline, where parts of views go. Out: batches carried through the zones, views brought up
to date, refined tables and maintenance on time; each written down in the diary. Every piece can be done
again after a crash. Does not know: processes, threads, when what is due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from barnabas.pipeline.engine.errors import IngestError
from barnabas.pipeline.engine.schedule import Job
from barnabas.pipeline.engine.timeline import Kind, State
from barnabas.pipeline.ingest import maintenance, refined_zone
from barnabas.pipeline.ingest.replay import finish
from barnabas.pipeline.ingest.results import AddedRows, BatchResult, CommitListener, TableChange
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.observe.recorder import Diary
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Pipeline, by_name
from barnabas.pipeline.views.layers import Outcome, Views
from barnabas.pipeline.views.parts import Parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAINTENANCE = "lake"

Say = Callable[[int, int | None], object]


class Work:
    """`runners` are not for several threads at once; everything else is."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        parts: Parts,
        diary: Diary,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_stopping = is_stopping
        self.spark = spark
        self.pipeline = pipeline
        self.diary = diary
        self.views = Views(spark, pipeline, parts)
        self.listener: CommitListener | None = None  # who is told at once what batches add
        self._runners: dict[str, SourceRunner] = {}
        self._newest: dict[TableName, datetime] = {}  # event times, of tables that batches changed

    def runner(self, source: str) -> SourceRunner:
        if source not in self._runners:
            self._runners[source] = SourceRunner(self.spark, self.pipeline, source, listener=self.listener)
        return self._runners[source]

    def batches(self, source: str, *, to_now: bool) -> Iterator[BatchResult]:
        """Batches of a source as it streams: of what is there now, or as long as something comes."""
        runner = self.runner(source)
        for batch in runner.batches(self._is_stopping) if to_now else iter(runner.step, None):
            self._noted(runner, batch, streaming=True)
            yield batch

    def drain(self, source: str, say: Say | None = None) -> list[BatchResult]:
        """All that a source has now. `say` hears how many rows are done, and how many there are in all."""
        runner = self.runner(source)
        found: list[BatchResult] = []
        done = 0
        for batch in runner.batches(self._is_stopping):
            lag = self._noted(runner, batch, streaming=False)
            done += batch.rows_in
            if say is not None:
                say(done, None if lag is None else done + lag)
            found.append(batch)
        self.diary.stand(Kind.SOURCE, source, State.IDLE)
        return found

    def _noted(self, runner: SourceRunner, batch: BatchResult, *, streaming: bool) -> int | None:
        """How many rows wait behind the batch, where that is known."""
        try:
            lag = runner.lag()
        except IngestError:
            lag = None  # it went away after the batch
        self.diary.batch(batch, lag, streaming=streaming)
        if batch.newest_event_time is not None:
            for changed in batch.changed:
                self._newest[changed.table] = batch.newest_event_time
        return lag

    # -- views -------------------------------------------------------------------------------------

    def catch_up(self, view: str, added: Sequence[AddedRows] = ()) -> Outcome:
        outcome = self.views.catch_up(view, added)
        self.diary.outcome(outcome, newest=self._newest.get(self._table_of(view)))
        return outcome

    def refresh_view(self, view: str) -> Outcome:
        outcome = self.views.refresh(view)
        self.diary.outcome(outcome)
        return outcome

    def catch_up_after(self, changed: Iterable[TableChange]) -> None:
        """The views whose tables changed, each once, in the order of the file."""
        tables = {each.table for each in changed}
        for view in self.pipeline.views:
            if view.table in tables:
                self.catch_up(view.name)

    def _table_of(self, view: str) -> TableName:
        return next(each.table for each in self.pipeline.views if each.name == view)

    # -- scheduled work ----------------------------------------------------------------------------

    def do(self, job: Job, say: Say | None = None) -> None:
        """One piece of scheduled work, with what depends on it."""
        if job.kind == Kind.SOURCE:
            batches = self.drain(job.name, say)
            self.catch_up_after([changed for batch in batches for changed in batch.changed])
        elif job.kind == Kind.REFINED:
            self._refine_once(job.name) if job.is_once else self.refine([job.name])
        elif job.kind == Kind.VIEW_BATCH:
            self.refresh_view(job.name)
        elif job.kind == Kind.MAINTENANCE:
            self.maintain()
        self.diary.stand(Kind(job.kind), job.name, State.IDLE)

    def _refine_once(self, name: str) -> None:
        """A table that batches are appended to, all of it: no batch is on its way to it meanwhile."""
        table = by_name(self.pipeline.refined, name)
        with refined_zone.lock_of_input(self.pipeline, table):
            for each in refined_sql.inputs_of(self.pipeline, table).values():
                if (source := self.pipeline.source_of(each)) is not None:
                    finish(self.spark, self.pipeline, source.name)
            self.refine([name])

    def refine(self, names: Iterable[str]) -> list[TableChange]:
        """Refined tables as a whole, in order, and the views over them."""
        started = time.time()
        changed = refined_zone.refresh(self.spark, self.pipeline, names)
        for each in changed:
            self.diary.made(Kind.REFINED, each.table.name, started, each.rows, each.version)
        self.catch_up_after(changed)
        return changed

    def maintain(self) -> None:
        started = time.time()
        maintenance.maintain(self.spark, self.pipeline)
        self.diary.made(Kind.MAINTENANCE, MAINTENANCE, started, 0)


def jobs_of(pipeline: Pipeline) -> list[Job]:
    """Everything that goes by a schedule, in the order in which it is done when all of it is due."""
    found = [
        Job(Kind.SOURCE, each.name, each.frequency.cron)
        for each in pipeline.sources
        if not each.frequency.is_streaming
    ]
    due = refined_zone.schedules(pipeline)
    found += [Job(Kind.REFINED, each.name, due[each.name]) for each in pipeline.refined if each.name in due]
    # Tables that batches are appended to are computed as a whole when they are new or another SQL fills them.
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
    """Views that the streaming application keeps up to date: all of them, whoever fills their tables."""
    return [each.name for each in pipeline.views if each.table.zone in (Zone.TRUSTED, Zone.REFINED)]
