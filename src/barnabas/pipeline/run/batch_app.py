"""The batch application: sources, refined tables, views and maintenance on their schedules.

In: a pipeline, the serving process. Out: due jobs are done: sources side by side, refined tables and views
one after the other, each behind its sources. A job that fails is tried again with backoff; the others go on.
The application ends on a signal, when its supervisor is gone, or when its JVM is gone.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable

from barnabas.engine.backoff import Backoff
from barnabas.engine.schedule import Job, Schedule
from barnabas.engine.timeline import Kind
from barnabas.pipeline.lineage.pipeline_graph import graph_of
from barnabas.pipeline.observe.recorder import RunRecorder, utc_now
from barnabas.pipeline.run.job_lanes import JobLanes
from barnabas.pipeline.run.program import SparkProgram, run_program
from barnabas.pipeline.run.worker import Worker, jobs_of
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder

LOOK_S_MAX, LOOK_S_MIN = 5.0, 0.2
BACKOFF_S_MAX = 300.0
LATER_S = 3600.0  # pause after an error that a person has to decide on


class BatchApplication:
    """Does the scheduled jobs of a pipeline."""

    def __init__(self, program: SparkProgram) -> None:
        self._app = program
        self._worker: Worker = program.worker
        self._recorder: RunRecorder = program.recorder
        jobs = jobs_of(program.pipeline)
        self._schedule = Schedule(state_folder(program.pipeline), jobs)
        self._backoffs = {job.key: Backoff(most_s=BACKOFF_S_MAX) for job in jobs}
        self._not_before: dict[str, float] = {}
        self._mutex = threading.Lock()  # of the schedule
        self._lanes = JobLanes(self.do, sources_of_jobs(program.pipeline, jobs), is_due=self._is_due)

    def run(self) -> None:
        while not self._app.stopping.is_set():
            self._lanes.begin([job for job in self._schedule.jobs if self._is_due(job)])
            with self._mutex:
                wait_s = self._schedule.seconds_until_next(utc_now(), LOOK_S_MAX)
            self._app.stopping.wait(max(LOOK_S_MIN, wait_s) if self._lanes.is_idle else LOOK_S_MIN)
        self._lanes.close()

    def _is_due(self, job: Job) -> bool:
        with self._mutex:
            if not self._schedule.is_due(job, utc_now()):
                return False
        return time.monotonic() >= self._not_before.get(job.key, 0.0)

    def do(self, job: Job) -> bool:
        """Do one job; whether it succeeded."""
        if self._app.stopping.is_set():
            return False
        began, started = utc_now(), time.time()
        try:
            with self._recorder.working(Kind(job.kind), job.name, "tried again"):
                self._worker.do(job)
        except Exception as error:
            self._app.check_alive(error)
            self._app.log(f"{job.key}: {error}")
            delay_s = self._backoffs[job.key].failed(time.time() - started)
            self._not_before[job.key] = time.monotonic() + (
                delay_s if getattr(error, "retryable", True) else LATER_S
            )
            return False
        self._backoffs[job.key].succeeded()
        with self._mutex:
            self._schedule.done(job, began)
        return True


def sources_of_jobs(pipeline: Pipeline, jobs: Iterable[Job]) -> dict[str, frozenset[str]]:
    """Keys of the jobs that read the sources of a table or a view, by the key of the job that makes it."""
    graph = graph_of(pipeline)
    reading = {
        job.key: {each.key for each in graph.behind(f"source.{job.name}")}
        for job in jobs
        if job.kind == Kind.SOURCE
    }
    nodes = {Kind.REFINED: "refined", Kind.VIEW_BATCH: "view"}
    return {
        job.key: frozenset(
            key for key, made in reading.items() if f"{nodes[Kind(job.kind)]}.{job.name}" in made
        )
        for job in jobs
        if job.kind in nodes
    }


def main(arguments: list[str]) -> int:
    return run_program("batch", arguments, lambda program: BatchApplication(program).run())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
