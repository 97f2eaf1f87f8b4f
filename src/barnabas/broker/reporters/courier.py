"""A courier: one thread that hands work to one reporter, and keeps its failures away from the node.

In: calls to run, from the loop. Out: the calls, one at a time, in order. The queue is short: a call that
finds it full is dropped. After a failure the courier drops calls for a while that doubles up to a minute, and
logs one line a minute. Does not know: what a call does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

log = logging.getLogger("barnabas.reporters")
QUEUE_MAX = 4
BACKOFF_S_MIN, BACKOFF_S_MAX = 1.0, 60.0
LOG_EVERY_S = 60.0

Call = Callable[[], None]


class Courier:
    def __init__(
        self, name: str, queue_max: int = QUEUE_MAX, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self._queue_max = queue_max
        self._now_s = now_s
        self._calls: deque[Call] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._last: Call | None = None
        self._backoff_s = 0.0
        self._quiet_until = float("-inf")
        self._logged_at = float("-inf")
        self.done = self.failed = self.dropped = 0
        self._thread = threading.Thread(target=self._run, name=f"reporter-{name}", daemon=True)
        self._thread.start()

    def send(self, call: Call) -> bool:
        """Queue a call. False: it is dropped, because the reporter is behind or its receiver away."""
        with self._changed:
            if self._is_closed or len(self._calls) >= self._queue_max or self._now_s() < self._quiet_until:
                self.dropped += 1
                return False
            self._calls.append(call)
            self._changed.notify()
            return True

    def close(self, last: Call | None, patience_s: float) -> None:
        """Run the calls that are queued and the last one, for so long. Blocks: not for the loop's thread."""
        with self._changed:
            self._is_closed, self._last = True, last
            self._changed.notify()
        self._thread.join(patience_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._calls:
                    if not self._is_closed:
                        self._changed.wait()
                    elif self._last is not None:
                        self._calls.append(self._last)
                        self._last = None
                    else:
                        return
                call = self._calls.popleft()
            try:
                call()
            except Exception as error:  # reporters are code of other packages
                self._failed(error)
            else:
                self.done += 1
                self._backoff_s = 0.0

    def _failed(self, error: Exception) -> None:
        now_s = self._now_s()
        self.failed += 1
        self._backoff_s = min(max(self._backoff_s * 2, BACKOFF_S_MIN), BACKOFF_S_MAX)
        with self._changed:
            self._quiet_until = now_s + self._backoff_s
            self.dropped += len(self._calls)
            self._calls.clear()
        if now_s - self._logged_at >= LOG_EVERY_S:
            self._logged_at = now_s
            log.warning(
                "the reporter %s failed, the next try is in %.0f s (%d reports were dropped so far): %s",
                self.name,
                self._backoff_s,
                self.dropped,
                error or type(error).__name__,
            )
