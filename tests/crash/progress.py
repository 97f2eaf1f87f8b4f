"""How far work has to come before the next kill, and the kill.

In: a counter of what was done. Out: nothing, once it went up by so many. Does not know: who does the work.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

PROGRESS_TIMEOUT_S = 90.0


def wait_for(progress: Callable[[], int], more: int) -> None:
    """Waits until a counter went up by so many."""
    goal = progress() + more
    wait_until(lambda: progress() >= goal, PROGRESS_TIMEOUT_S, lambda: f"at {progress()}, {goal} wanted")


def kill_and_start(broker: Broker) -> None:
    broker.kill()
    broker.start()
