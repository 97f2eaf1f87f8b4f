"""The streaming application: sources in real time and near real time, and the speed layer of every view.

In: a pipeline, the serving process. Out: batches through the zones as they come, and views that follow. A
thread for each source and each view: one that waits for its source, or has failed, is tried again with
backoff, and the others go on. Ends when it is told to, when its supervisor is gone, or when its JVM is.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.pipeline.engine.backoff import Backoff
from barnabas.pipeline.engine.timeline import Kind, State
from barnabas.pipeline.ingest.results import AddedRows, BatchResult
from barnabas.pipeline.lake.tables import TableName
from barnabas.pipeline.observe.recorder import Diary
from barnabas.pipeline.run.application import Application, run_application
from barnabas.pipeline.run.work import Work, streaming_sources, streaming_views
from barnabas.pipeline.spec.model import Pace, Pipeline

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

REAL_TIME_POLL_S = 0.1
VIEW_POLL_S = 1.0
BACKOFF_S_MAX = 30.0
JOIN_S_MAX = 25.0
TOLD_S_MAX = 10.0  # a batch that takes longer, or dies, is found by looking
ADDED_MAX = 64  # what a view did not take in time it reads from its table


class Streaming:
    """All threads of the application; `run` returns when each of them has ended its piece of work."""

    def __init__(self, application: Application) -> None:
        self._app = application
        self._work: Work = application.work
        self._diary: Diary = application.diary
        self._pipeline: Pipeline = application.pipeline
        self._changed = {name: threading.Event() for name in streaming_views(self._pipeline)}
        self._added: dict[str, deque[AddedRows]] = {name: deque(maxlen=ADDED_MAX) for name in self._changed}
        self._told_before: dict[
            TableName, float
        ] = {}  # tables that are being written to, by the monotonic clock
        self._tables = {view.name: view.table for view in self._pipeline.views}
        self._work.listener = self

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
        deadline = time.monotonic() + JOIN_S_MAX
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _drop_removed(self) -> None:
        """Views that the file has no longer are served no longer."""
        for view in self._app.serving.views():
            if view["name"] not in self._changed:
                self._app.serving.drop(view["name"])

    # -- one source --------------------------------------------------------------------------------

    def _source(self, name: str) -> None:
        frequency = self._pipeline.source(name).frequency
        pause_s = frequency.interval_s if frequency.pace is Pace.NEAR_REAL_TIME else REAL_TIME_POLL_S
        backoff = Backoff(most_s=BACKOFF_S_MAX)
        self._diary.stand(Kind.SOURCE, name, State.STARTING)
        while not self._app.stopping.is_set():
            started, began = time.time(), time.monotonic()
            try:
                for batch in self._work.batches(name, to_now=frequency.pace is Pace.NEAR_REAL_TIME):
                    backoff.succeeded()
                    self._diary.stand(Kind.SOURCE, name, State.RUNNING)
                    self._follow(batch)
                    if self._app.stopping.is_set():
                        break
            except Exception as error:
                if not self._goes_on(Kind.SOURCE, name, error, started, backoff):
                    return
                continue
            backoff.succeeded()
            self._diary.stand(Kind.SOURCE, name, State.IDLE)
            self._app.stopping.wait(max(REAL_TIME_POLL_S, began + pause_s - time.monotonic()))

    def _follow(self, batch: BatchResult) -> None:
        for changed in batch.changed:
            for view in self._work.views.fed_by(changed.table):
                if view in self._changed:
                    self._changed[view].set()

    def increments(self, table: TableName, rows: DataFrame) -> Mapping[str, pa.Table]:
        """A `Follower`: views are computed from the rows of a batch while they are being written."""
        self._told_before[table] = time.monotonic() + TOLD_S_MAX
        return self._work.views.increments(table, rows)

    def added(self, added: AddedRows) -> None:
        self._told_before.pop(added.table, None)
        for view in added.views:
            if view in self._changed:
                self._added[view].append(added)
                self._changed[view].set()

    # -- one view ----------------------------------------------------------------------------------

    def _view(self, name: str) -> None:
        backoff = Backoff(most_s=BACKOFF_S_MAX)
        self._diary.stand(Kind.VIEW_SPEED, name, State.STARTING)
        changed = self._changed[name]
        while not self._app.stopping.is_set():
            changed.clear()
            started = time.time()
            added = [self._added[name].popleft() for _ in range(len(self._added[name]))]
            try:
                self._work.catch_up(name, added)
            except Exception as error:
                if not self._goes_on(Kind.VIEW_SPEED, name, error, started, backoff):
                    return
                continue
            backoff.succeeded()
            self._diary.stand(Kind.VIEW_SPEED, name, State.IDLE)
            # Who looks by chance between a commit and being told of it would read what is about to come.
            while not changed.wait(VIEW_POLL_S) and self._will_be_told(name):
                pass

    def _will_be_told(self, view: str) -> bool:
        return time.monotonic() < self._told_before.get(self._tables[view], 0.0)

    # -- failures ----------------------------------------------------------------------------------

    def _goes_on(self, kind: Kind, name: str, error: Exception, started: float, backoff: Backoff) -> bool:
        """Writes a failure down and waits; False where somebody has to decide first."""
        self._app.check_alive(error)
        if self._app.stopping.is_set():
            return False
        if not getattr(error, "retryable", True):
            self._diary.failed(kind, name, error, started, "stopped until somebody decides")
            return False
        delay_s = backoff.failed(time.time() - started)
        self._diary.failed(kind, name, error, started, f"again in {delay_s:g} s")
        self._app.log(f"{kind} {name}: {error}")
        self._app.stopping.wait(delay_s)
        return True


def main(arguments: list[str]) -> int:
    return run_application("streaming", arguments, lambda application: Streaming(application).run())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
