"""Runs due jobs in lanes: sources side by side, at most so many at once; all others one after the other.

In: due jobs, the sources that each job is made from. Out: the jobs run in threads. A table and its sources
take turns, so a table of the night's load is not made from half of it: the table begins when none of its
sources is being read, and a source that is due again begins behind the tables that wait for it. A slow source
holds up no other job. Does not know: schedules, what a job does.
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
        self,
        do: Callable[[Job], object],
        sources: Sources,
        sources_at_once: int = SOURCES_AT_ONCE,
        *,
        is_due: Callable[[Job], bool] = lambda job: True,
    ) -> None:
        self._do = do
        self._sources = sources
        self._is_due = is_due
        self._mutex = threading.Lock()
        self._under_way: dict[str, Job] = {}
        self._waiting: set[str] = set()  # due jobs that found one of their sources under way
        self._side_by_side = ThreadPoolExecutor(sources_at_once, thread_name_prefix="source")
        self._in_order = ThreadPoolExecutor(1, thread_name_prefix="job")

    def begin(self, due: Iterable[Job]) -> None:
        """Begin the due jobs that can begin now; the others when they are given again."""
        jobs = list(due)
        with self._mutex:
            self._waiting &= {job.key for job in jobs}
        for job in jobs:
            with self._mutex:
                # One that ended since the caller looked is not due any more.
                if not self._may_begin(job) or not self._is_due(job):
                    continue
                self._waiting.discard(job.key)
                self._under_way[job.key] = job
            lane = self._side_by_side if job.kind == Kind.SOURCE else self._in_order
            lane.submit(self._run, job)

    def _may_begin(self, job: Job) -> bool:
        if job.key in self._under_way:
            return False
        if job.kind == Kind.SOURCE:
            return not any(job.key in self._behind(key) for key in (*self._waiting, *self._under_way))
        if not self._behind(job.key).isdisjoint(self._under_way):
            self._waiting.add(job.key)
            return False
        return all(each.kind == Kind.SOURCE for each in self._under_way.values())

    def _behind(self, key: str) -> frozenset[str]:
        return self._sources.get(key, frozenset())

    @property
    def under_way(self) -> frozenset[str]:
        """Keys of the jobs that have begun and not ended."""
        with self._mutex:
            return frozenset(self._under_way)

    @property
    def is_idle(self) -> bool:
        return not self.under_way

    def _run(self, job: Job) -> None:
        try:
            self._do(job)
        finally:
            with self._mutex:
                self._under_way.pop(job.key, None)

    def close(self) -> None:
        """Wait for jobs that have begun; drop those that have not."""
        for lane in (self._side_by_side, self._in_order):
            lane.shutdown(wait=True, cancel_futures=True)
