"""The trace of a history: a hash of all events at ports, in order.

In: events with their virtual time. Out: a hash that is equal for the same seed and code, and the last events
as text to investigate a failure.
Does not know: what the events mean.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

Event = tuple[float, tuple[str | int, ...]]
LINES_MAX = 400
AT_ONCE = 500  # events hashed with one call, for speed


class Trace:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._hash = hashlib.sha256()
        self._unhashed: list[Event] = []
        self._last: deque[Event] = deque(maxlen=LINES_MAX)
        self.events = 0
        self.on_line: Callable[[str], None] | None = None  # prints events during a replay

    def note(self, *what: str | int) -> None:
        """Add an event. Its text must not depend on addresses or hashes of objects."""
        self.events += 1
        event = self._now(), what
        self._unhashed.append(event)
        if len(self._unhashed) == AT_ONCE:
            self._update()
        self._keep(event)

    def remark(self, *what: str | int) -> None:
        """Add a line for the reader that is not part of the hash."""
        self._keep((self._now(), what))

    def _keep(self, event: Event) -> None:
        self._last.append(event)
        if self.on_line is not None:
            self.on_line(line_of(event))

    def _update(self) -> None:
        self._hash.update(repr(self._unhashed).encode())
        self._unhashed.clear()

    @property
    def lines(self) -> list[str]:
        """The last events as text."""
        return [line_of(event) for event in self._last]

    def hexdigest(self) -> str:
        self._update()
        return self._hash.hexdigest()


def line_of(event: Event) -> str:
    now_s, what = event
    return f"{now_s:12.6f} {' '.join(map(str, what))}"
