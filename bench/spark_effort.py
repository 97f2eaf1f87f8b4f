"""How much processor time Spark, its Python workers and the broker take together.

In: nothing; it looks at the processes that this one started. Out: seconds of processor time between two
looks. On two cores that are both busy it says what the clock says, and goes on saying it when somebody else
is busy on the same machine. Does not know: what is measured.
"""

from __future__ import annotations

import psutil


def look() -> dict[int, float]:
    """Seconds by process, of those that live now."""
    found = {}
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        found[child.pid] = times.user + times.system
    return found


class Effort:
    """`with Effort() as effort: ...`, then `effort.seconds`."""

    seconds = 0.0

    def __enter__(self) -> Effort:
        self._before = look()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = sum(after - self._before.get(pid, 0.0) for pid, after in look().items())
