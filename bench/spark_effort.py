"""Measures the processor time of Spark, its Python workers and the broker together.

In: nothing; it reads the processes that this one started. Out: seconds of processor time between two
readings. If both cores are busy, this agrees with the clock, and other load on the machine does not change
it. Does not know: what is measured.
"""

from __future__ import annotations

import psutil


def look() -> dict[int, float]:
    """The processor seconds of each running process."""
    found = {}
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        found[child.pid] = times.user + times.system
    return found


class Effort:
    """Measures a block: `with Effort() as effort: ...`, then `effort.seconds`."""

    seconds = 0.0

    def __enter__(self) -> Effort:
        self._before = look()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = sum(after - self._before.get(pid, 0.0) for pid, after in look().items())
