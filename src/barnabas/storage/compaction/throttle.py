"""Limit of the cleaner's I/O rate (`log.cleaner.io.max.bytes.per.second`).

In: the number of bytes read or written. Out: a pause when they exceed the rate. Unused budget expires after a
second, so an idle cleaner cannot burst later.
Does not know: what is read and written.
"""

from collections.abc import Callable

SAVED_SECONDS_MAX = 1.0
UNLIMITED = 1e15


class Throttle:
    __slots__ = ("_bytes_per_second", "_now", "_paid_until", "_sleep")

    def __init__(
        self, bytes_per_second: float, now: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._now = now
        self._sleep = sleep
        self._paid_until = now()  # the time at which the rate allows the next byte

    def spend(self, count: int) -> None:
        if self._bytes_per_second >= UNLIMITED:
            return
        now = self._now()
        self._paid_until = max(self._paid_until, now - SAVED_SECONDS_MAX) + count / self._bytes_per_second
        if self._paid_until > now:
            self._sleep(self._paid_until - now)
