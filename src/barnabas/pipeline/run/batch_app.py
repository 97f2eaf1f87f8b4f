"""The batch application: sources, refined tables, views and maintenance on their schedules.

In: a pipeline, the serving process. Out: due jobs are done in order: sources, then refined tables, then
views. A job that fails is tried again with backoff; the others go on. The application ends on a signal,
when its supervisor is gone, or when its JVM is gone.
"""

from __future__ import annotations

import sys
import time

from barnabas.engine.backoff import Backoff
from barnabas.engine.schedule import Job, Schedule
from barnabas.engine.timeline import Kind
from barnabas.pipeline.observe.recorder import RunRecorder, utc_now
from barnabas.pipeline.run.program import SparkProgram, run_program
from barnabas.pipeline.run.worker import Worker, jobs_of
from barnabas.pipeline.spec.state_folder import state_folder

LOOK_S_MAX = 5.0
BACKOFF_S_MAX = 300.0
LATER_S = 3600.0  # pause after an error that a person has to decide on


class BatchApplication:
    """Does the scheduled jobs of a pipeline, one after another."""

    def __init__(self, program: SparkProgram) -> None:
        self._app = program
        self._worker: Worker = program.worker
        self._recorder: RunRecorder = program.recorder
        jobs = jobs_of(program.pipeline)
        self._schedule = Schedule(state_folder(program.pipeline), jobs)
        self._backoffs = {job.key: Backoff(most_s=BACKOFF_S_MAX) for job in jobs}
        self._not_before: dict[str, float] = {}

    def run(self) -> None:
        while not self._app.stopping.is_set():
            for job in self._schedule.due(utc_now()):
                if self._app.stopping.is_set():
                    return
                if time.monotonic() >= self._not_before.get(job.key, 0.0):
                    self.do(job)
            wait_s = self._schedule.seconds_until_next(utc_now(), LOOK_S_MAX)
            self._app.stopping.wait(max(0.2, wait_s))

    def do(self, job: Job) -> bool:
        """Do one job; whether it succeeded."""
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
        self._schedule.done(job, began)
        return True


def main(arguments: list[str]) -> int:
    return run_program("batch", arguments, lambda program: BatchApplication(program).run())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
