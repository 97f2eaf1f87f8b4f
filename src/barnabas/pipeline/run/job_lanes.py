"""Runs due jobs in lanes: sources side by side, at most so many at once; all others one after the other.

In: due jobs, the sources that each job is made from. Out: the jobs run in threads. A job waits until none of
its sources is being read, so a table of the night's load is not made from half of it; a slow source holds up
no other job. Does not know: schedules, what a job does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from barnabas.engine.schedule import Job
from barnabas.engine.timeline import Kind

SOURCES_AT_ONCE = 4

Sources = Mapping[str, frozenset[str]]  # by the key of a job: keys of the sources that it is made from


class JobLanes:
    """`do` must not raise. Call `begin` from one thread."""

    def __init__(
        self, do: Callable[[Job], object], sources: Sources, sources_at_once: int = SOURCES_AT_ONCE
    ) -> None:
        self._do = do
        self._sources = sources
        self._mutex = threading.Lock()
        self._under_way: set[str] = set()
        self._side_by_side = ThreadPoolExecutor(sources_at_once, thread_name_prefix="source")
        self._in_order = ThreadPoolExecutor(1, thread_name_prefix="job")

    def begin(self, due: Iterable[Job]) -> None:
        """Begin the due jobs that can begin now; the others when they are given again."""
        for job in due:
            with self._mutex:
                if job.key in self._under_way or self._sources.get(job.key, frozenset()) & self._under_way:
                    continue
                self._under_way.add(job.key)
            lane = self._side_by_side if job.kind == Kind.SOURCE else self._in_order
            lane.submit(self._run, job)

    @property
    def is_idle(self) -> bool:
        with self._mutex:
            return not self._under_way

    def _run(self, job: Job) -> None:
        try:
            self._do(job)
        finally:
            with self._mutex:
                self._under_way.discard(job.key)

    def close(self) -> None:
        """Wait for jobs that have begun; drop those that have not."""
        for lane in (self._side_by_side, self._in_order):
            lane.shutdown(wait=True, cancel_futures=True)
