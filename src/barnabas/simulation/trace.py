"""The trace of a history: everything that crossed a port, in order, as one hash.

In: events with their virtual time. Out: a hash that is the same for the same seed and the same code, and the
last events as lines for whoever looks into a failure. Does not know: what the events mean.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

LINES_MAX = 400


class Trace:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._hash = hashlib.sha256()
        self.events = 0
        self.lines: deque[str] = deque(maxlen=LINES_MAX)
        self.on_line: Callable[[str], None] | None = None  # for a person who follows a replay

    def note(self, *what: object) -> None:
        """An event of the history; its text must not depend on addresses or hashes of objects."""
        self.events += 1
        self._hash.update(self.remark(*what).encode())

    def remark(self, *what: object) -> str:
        """A line for people, which is no part of the hash."""
        line = f"{self._now():12.6f} {' '.join(map(str, what))}"
        self.lines.append(line)
        if self.on_line is not None:
            self.on_line(line)
        return line

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
