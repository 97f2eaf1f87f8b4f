"""Signs of life of a process: a file that it touches, and that its supervisor watches.

In: whether the process is healthy. Out: the age of the last beat. A process that runs but cannot work (its
JVM hangs, its server is gone) stops beating, and is restarted. Clocks are not compared: the supervisor counts
from when it saw the file change, so a machine that slept kills nobody. Does not know: what the process does.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

BEAT_FILE = "BARNABAS_BEAT_FILE"
BEAT_S = 5.0


class BeatWatch:
    """The supervisor's side."""

    def __init__(self, path: Path, silent_s_max: float | None) -> None:
        self.path = path
        self._silent_s_max = silent_s_max
        self._seen = 0
        self._since = 0.0

    def begin(self, now: float) -> None:
        """A process starts: it has the whole time until its first beat."""
        self.path.unlink(missing_ok=True)
        self._seen, self._since = 0, now

    def silent_s(self, now: float) -> float:
        """Seconds for which the process has been silent, if these are too many; else 0."""
        if self._silent_s_max is None:
            return 0.0
        with contextlib.suppress(OSError):
            changed = self.path.stat().st_mtime_ns
            if changed != self._seen:
                self._seen, self._since = changed, now
        silent = now - self._since
        return silent if silent > self._silent_s_max else 0.0


def beat_while(is_healthy: Callable[[], bool], every_s: float = BEAT_S) -> Callable[[], None]:
    """Beat from a thread of its own as long as `is_healthy`; returns what ends it. Does nothing in a process
    that no supervisor started."""
    path = os.environ.get(BEAT_FILE)
    ended = threading.Event()
    if path is None:
        return ended.set

    def beat() -> None:
        while True:
            if is_healthy():
                with contextlib.suppress(OSError):  # a full disk: others will say so
                    Path(path).touch()
            if ended.wait(every_s):
                return

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    return ended.set
