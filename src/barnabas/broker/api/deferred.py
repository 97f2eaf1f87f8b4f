"""An answer that comes later, without the cost of a task: long-poll fetches and the like."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.protocol import Message

Response = Message | bytes
"""A message, or the same encoded already."""


class Deferred:
    """Resolved once, by whoever holds it; the connection that waits registers one callback."""

    __slots__ = ("_callback", "_on_cancel", "_result", "is_done", "on_next")

    def __init__(self, on_cancel: Callable[[], None] | None = None) -> None:
        self.is_done = False
        self._result: Response | None = None
        self._callback: Callable[[Response | None], None] | None = None
        self._on_cancel = on_cancel
        # The connection has sent another request: whoever holds this may answer early.
        self.on_next: Callable[[], None] | None = None

    def resolve(self, result: Response | None) -> None:
        if self.is_done:
            return
        self.is_done = True
        callback, self._callback = self._callback, None
        self._on_cancel = self.on_next = None  # which hold this in turn: nothing is left for the collector
        if callback is not None:
            callback(result)
        else:
            self._result = result

    def then(self, callback: Callable[[Response | None], None]) -> None:
        if self.is_done:
            callback(self._result)
        else:
            self._callback = callback

    def follow(self, other: Deferred) -> None:
        """Resolve as another one does."""
        if self.is_done:
            other.cancel()
            return
        self._on_cancel = other.cancel
        other.then(self.resolve)

    def cancel(self) -> None:
        """Nobody waits any more (the connection is gone): release what the waiting held."""
        if self.is_done:
            return
        self.is_done = True
        self._callback = self.on_next = None
        if self._on_cancel is not None:
            self._on_cancel()
            self._on_cancel = None
