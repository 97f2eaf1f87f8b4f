"""A response that is ready later, cheaper than a task; for long-poll fetches and the like."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.protocol import Message

Response = Message | bytes
"""A message, or an encoded one."""


class Deferred:
    """Its holder resolves it once; the connection that waits registers one callback."""

    __slots__ = ("_callback", "_on_cancel", "_result", "is_done", "on_next")

    def __init__(self, on_cancel: Callable[[], None] | None = None) -> None:
        self.is_done = False
        self._result: Response | None = None
        self._callback: Callable[[Response | None], None] | None = None
        self._on_cancel = on_cancel
        # Called when the client has sent another request: the holder may resolve early.
        self.on_next: Callable[[], None] | None = None

    def resolve(self, result: Response | None) -> None:
        if self.is_done:
            return
        self.is_done = True
        callback, self._callback = self._callback, None
        self._on_cancel = self.on_next = None  # break reference cycles, so that no garbage is left
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
        """Resolve with the result of another one."""
        if self.is_done:
            other.cancel()
            return
        self._on_cancel = other.cancel
        other.then(self.resolve)

    def cancel(self) -> None:
        """Release what the wait held: the connection was lost."""
        if self.is_done:
            return
        self.is_done = True
        self._callback = self.on_next = None
        if self._on_cancel is not None:
            self._on_cancel()
            self._on_cancel = None
