"""The timer of a coordinator: one for all shards, set to the earliest deadline, and the clock they use.

In: hosts, whose shards know their next deadline. Out: calls of `on_timer`. Shards use the wall clock, since
they store timestamps. When the wall clock is set, a steady clock shows it, and shards are told by how much.
Does not know: what is due.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.host import CoordinatorHost

log = logging.getLogger(__name__)
LATE_MS = 1000  # a timer that is this late shows that the process was paused
SECOND_LOOK_MS = 50
TURN_S = 0.002  # of work for all hosts together, before the loop serves others
RETRY_MS = 1000  # after a shard failed in `on_timer`
CLOCK_SET_MS = 250  # the two clocks drift apart by less than this between two calls


class Deadlines:
    __slots__ = (
        "_ahead_ms", "_broker", "_clock", "_deadlines", "_is_closed", "_is_current", "_last_ms", "_numbers",
        "_timer", "_timer_ms",
    )  # fmt: skip

    def __init__(self, broker: Broker, is_current: Callable[[CoordinatorHost[Any]], bool]) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._last_ms = 0  # what `now_ms` returned last
        self._is_current = is_current  # whether the host is still open
        self._deadlines: list[tuple[int, int, CoordinatorHost[Any]]] = []
        self._numbers = count()  # breaks ties between equal deadlines
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._is_closed = False
        self._ahead_ms: int | None = None  # of the steady clock

    def now_ms(self) -> int:
        """Return the wall clock's time. Shards learn first if the clock was set."""
        now_ms = self._clock.now_ms()
        passed_ms, self._last_ms = now_ms - self._last_ms, now_ms
        if 0 <= passed_ms <= CLOCK_SET_MS:
            return now_ms  # too little to compare the clocks
        ahead_ms = now_ms - self._clock.steady_ms()
        if self._ahead_ms is None:
            self._ahead_ms = ahead_ms
        elif abs(ahead_ms - self._ahead_ms) > CLOCK_SET_MS:
            by_ms, self._ahead_ms = ahead_ms - self._ahead_ms, ahead_ms
            self._clock_was_set(by_ms)
        return now_ms

    def _clock_was_set(self, by_ms: int) -> None:
        log.warning("the clock was set by %d ms; sessions keep their remaining time", by_ms)
        # A host may be listed twice: armed for an earlier time in between, then again for this one.
        hosts = dict.fromkeys(
            host for deadline_ms, _, host in self._deadlines if host.armed_ms == deadline_ms
        )
        self._deadlines = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms += by_ms
        for host in hosts:
            host.armed_ms = None
            if self._is_current(host):
                try:
                    host.shard.on_clock_set(by_ms)
                except Exception:
                    self._broker.unexpected.note("reporting a clock change to", host.partition)
                self.arm(host)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def arm(self, host: CoordinatorHost[Any]) -> None:
        """Schedule a call of the host at its next deadline. A deadline that moved to later costs nothing: the
        host is called too early once."""
        deadline_ms = host.shard.next_deadline_ms()
        if deadline_ms is None or (host.armed_ms is not None and host.armed_ms <= deadline_ms):
            return
        host.armed_ms = deadline_ms
        heapq.heappush(self._deadlines, (deadline_ms, next(self._numbers), host))
        if self._timer is None or deadline_ms < self._timer_ms:
            self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer to the first deadline, after shards know if the clock was set."""
        now_ms = self.now_ms()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._deadlines:
            return
        self._timer_ms = max(self._deadlines[0][0], now_ms)  # work that waits for its turn is not late
        delay_ms = max(self._timer_ms - now_ms, 0)
        self._timer = self._broker.loop.call_later(delay_ms / 1000, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._is_closed:
            return
        now_ms = self.now_ms()
        if now_ms - self._timer_ms > LATE_MS:
            # The process was paused: heartbeats may lie unread in the sockets. Read them first.
            self._timer_ms = now_ms
            self._timer = self._broker.loop.call_later(SECOND_LOOK_MS / 1000, self._on_time)
            return
        deadlines = self._deadlines
        began = self._broker.loop.time()
        while deadlines and deadlines[0][0] <= now_ms:
            if self._broker.loop.time() - began > TURN_S:
                break  # the next turn of the loop does the rest
            deadline_ms, _, host = heapq.heappop(deadlines)
            if host.armed_ms == deadline_ms:
                host.armed_ms = None
                if self._is_current(host):
                    try:
                        host.on_timer(now_ms)
                    except Exception:
                        self._broker.unexpected.note("handling a deadline of", host.partition)
                        host.armed_ms = now_ms + RETRY_MS
                        heapq.heappush(deadlines, (host.armed_ms, next(self._numbers), host))
                    if host.armed_ms is not None and host.armed_ms <= now_ms:
                        host.armed_ms = now_ms + 1  # in the next turn of the loop, after others
                        heapq.heappush(deadlines, (now_ms + 1, next(self._numbers), host))
        if deadlines:
            self._set_timer()
