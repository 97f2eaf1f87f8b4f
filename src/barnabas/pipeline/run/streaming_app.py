"""The streaming application: sources in real time and near real time, and the speed layer of every view.

In: a pipeline, the serving process. Out: batches in the zones as rows arrive, and views that follow. Each
source and each view has a thread. After a failure the thread tries again with backoff, and the others go
on. The application ends on a signal, when its supervisor is gone, or when its JVM is gone.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.engine.backoff import Backoff
from barnabas.engine.supervisor import stop_seconds
from barnabas.engine.timeline import Kind, State
from barnabas.pipeline.ingest.results import AddedRows, BatchResult
from barnabas.pipeline.lake.tables import TableName
from barnabas.pipeline.observe.recorder import RunRecorder
from barnabas.pipeline.run.program import SparkProgram, run_program
from barnabas.pipeline.run.worker import Worker, streaming_sources, streaming_views
from barnabas.pipeline.spec.model import Pace, Pipeline

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

REAL_TIME_POLL_S = 0.1
VIEW_POLL_S = 1.0
BACKOFF_S_MAX = 30.0
CLOSE_S = 5.0  # of the time for a stop; left for closing the session
TOLD_S_MAX = 10.0  # then the view looks at its table itself: the batch may have failed
ADDED_MAX = 64  # a view that falls behind reads its table instead


class StreamingApplication:
    """The threads of the application. `run` returns when each has ended its current work."""

    def __init__(self, program: SparkProgram) -> None:
        self._app = program
        self._worker: Worker = program.worker
        self._recorder: RunRecorder = program.recorder
        self._pipeline: Pipeline = program.pipeline
        self._changed = {name: threading.Event() for name in streaming_views(self._pipeline)}
        self._added: dict[str, deque[AddedRows]] = {name: deque(maxlen=ADDED_MAX) for name in self._changed}
        self._told_before: dict[
            TableName, float
        ] = {}  # tables with a commit under way: how long to wait for it
        self._tables = {view.name: view.table for view in self._pipeline.views}
        self._worker.listener = self

    def run(self) -> None:
        self._drop_removed()
        loops: list[tuple[str, Callable[[], None]]] = []
        for source in streaming_sources(self._pipeline):
            loops.append((f"source-{source}", lambda name=source: self._source(name)))  # type: ignore[misc]
        for view in self._changed:
            loops.append((f"view-{view}", lambda name=view: self._view(name)))  # type: ignore[misc]
        threads = [threading.Thread(target=loop, name=name, daemon=True) for name, loop in loops]
        for thread in threads:
            thread.start()
        self._app.stopping.wait()
        for event in self._changed.values():
            event.set()
        deadline = time.monotonic() + max(stop_seconds() - CLOSE_S, CLOSE_S)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _drop_removed(self) -> None:
        """Delete views that the file does not have any more."""
        for view in self._app.serving.views():
            if view["name"] not in self._changed:
                self._app.serving.drop(view["name"])

    # -- one source --------------------------------------------------------------------------------

    def _source(self, name: str) -> None:
        frequency = self._pipeline.source(name).frequency
        pause_s = frequency.interval_s if frequency.pace is Pace.NEAR_REAL_TIME else REAL_TIME_POLL_S
        backoff = Backoff(most_s=BACKOFF_S_MAX)
        self._recorder.set_state(Kind.SOURCE, name, State.STARTING)
        while not self._app.stopping.is_set():
            started, began = time.time(), time.monotonic()
            try:
                for batch in self._worker.batches(name, to_now=frequency.pace is Pace.NEAR_REAL_TIME):
                    backoff.succeeded()
                    self._recorder.set_state(Kind.SOURCE, name, State.RUNNING)
                    self._follow(batch)
                    if self._app.stopping.is_set():
                        break
            except Exception as error:
                if not self._goes_on(Kind.SOURCE, name, error, started, backoff):
                    return
                continue
            backoff.succeeded()
            self._recorder.set_state(Kind.SOURCE, name, State.IDLE)
            self._app.stopping.wait(max(REAL_TIME_POLL_S, began + pause_s - time.monotonic()))

    def _follow(self, batch: BatchResult) -> None:
        for changed in batch.changed:
            for view in self._worker.views.fed_by(changed.table):
                if view in self._changed:
                    self._changed[view].set()

    def increments(self, table: TableName, rows: DataFrame) -> Mapping[str, pa.Table]:
        """As a `CommitListener`: compute views from the rows of a batch while they are being written."""
        self._told_before[table] = time.monotonic() + TOLD_S_MAX
        return self._worker.views.increments(table, rows)

    def added(self, added: AddedRows) -> None:
        self._told_before.pop(added.table, None)
        for view in added.views:
            if view in self._changed:
                self._added[view].append(added)
                self._changed[view].set()

    # -- one view ----------------------------------------------------------------------------------

    def _view(self, name: str) -> None:
        backoff = Backoff(most_s=BACKOFF_S_MAX)
        self._recorder.set_state(Kind.VIEW_SPEED, name, State.STARTING)
        changed = self._changed[name]
        while not self._app.stopping.is_set():
            changed.clear()
            started = time.time()
            added = [self._added[name].popleft() for _ in range(len(self._added[name]))]
            try:
                self._worker.catch_up(name, added)
            except Exception as error:
                if not self._goes_on(Kind.VIEW_SPEED, name, error, started, backoff):
                    return
                continue
            backoff.succeeded()
            self._recorder.set_state(Kind.VIEW_SPEED, name, State.IDLE)
            # Between a commit and `added`, the view would read rows whose increments are about to arrive.
            while not changed.wait(VIEW_POLL_S) and self._will_be_told(name):
                pass

    def _will_be_told(self, view: str) -> bool:
        return time.monotonic() < self._told_before.get(self._tables[view], 0.0)

    # -- failures ----------------------------------------------------------------------------------

    def _goes_on(self, kind: Kind, name: str, error: Exception, started: float, backoff: Backoff) -> bool:
        """Record a failure and wait before the next attempt; False if a person has to decide first."""
        self._app.check_alive(error)
        if self._app.stopping.is_set():
            return False
        if not getattr(error, "retryable", True):
            self._recorder.failed(kind, name, error, started, "stopped until a person decides")
            return False
        delay_s = backoff.failed(time.time() - started)
        self._recorder.failed(kind, name, error, started, f"next attempt in {delay_s:g} s")
        self._app.log(f"{kind} {name}: {error}")
        self._app.stopping.wait(delay_s)
        return True


def main(arguments: list[str]) -> int:
    return run_program("streaming", arguments, lambda program: StreamingApplication(program).run())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
