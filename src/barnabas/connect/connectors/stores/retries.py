"""A count of retries: the same records are tried again with a growing pause, up to a bound.

The runtime gives a sink the same records again after a RetriableError; this says when, and when to stop.
Does not know: stores.
"""

from __future__ import annotations

from barnabas.connect.plugins import ConnectError, RetriableError, SinkContext

PAUSE_MS_MAX = 60_000


class Retries:
    """Retries of one sink task. `retries_max` of -1: without end."""

    def __init__(self, context: SinkContext, retries_max: int, backoff_ms: int) -> None:
        self._context = context
        self._retries_max = retries_max
        self._backoff_ms = backoff_ms
        self._failures = 0
        self.pause_ms = 0  # before the next try

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, what: str, error: BaseException | None = None) -> ConnectError:
        """The error to raise: a RetriableError until the retries are used up."""
        self._failures += 1
        if 0 <= self._retries_max < self._failures:
            return ConnectError(f"{what}; gave up after {self._retries_max} retries")
        self.pause_ms = min(self._backoff_ms * 2 ** min(self._failures - 1, 16), PAUSE_MS_MAX)
        self._context.retry_after_ms(self.pause_ms)
        return RetriableError(what)
