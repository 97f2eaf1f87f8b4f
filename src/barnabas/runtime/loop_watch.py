"""Monitoring of the event loop: its lag, and the callbacks that block it.

In: a loop. Out: its lag as numbers, and a log line for every callback that blocked it for about 100 ms or
more, with the functions that were running. A timer, the beat, measures how late it fires and postpones an
alarm (SIGALRM). If a callback blocks the loop, the alarm fires and its handler records the stack. A busy loop
has a beat every 25 ms. An idle loop is not woken so often: there, only callbacks of 300 ms or more are always
found. If the loop does not run in the main thread, there are no alarms: the lag is measured without function
names.
Does not know: what runs on the loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from time import monotonic, thread_time
from types import FrameType

log = logging.getLogger("barnabas.loop")

BEAT_S = 0.025
REST_S = 0.25  # between beats of an idle loop
BUSY_SHARE = 0.05  # of a processor: above it the loop is busy
SLOW_S = 0.1
LOG_EVERY_S = 1.0
WINDOW_S = 60.0
FRAMES_MAX = 8  # in a logged stack
SAMPLES_MAX = 3
LOOP_FILES = tuple(f"asyncio{os.sep}{name}" for name in ("runners.py", "base_events.py", "events.py"))


class LoopWatch:
    """`lag_s` is the lag of the last beat, `slow_count` how often the loop was blocked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._has_alarms = threading.current_thread() is threading.main_thread()
        self._due = self._last_at = self._used_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._samples: list[str] = []
        self._logged_at = -LOG_EVERY_S
        self._not_logged = 0
        self._window_from = 0.0
        self._window_max = self._window_max_before = 0.0
        self.logs_slow_callbacks = False  # off during start-up, which has long steps and no clients
        self.lag_s = 0.0
        self.slow_count = 0

    def start(self) -> None:
        if self._has_alarms:
            signal.signal(signal.SIGALRM, self._on_alarm)
        self._window_from = self._due = self._last_at = monotonic()
        self._beat()

    def stop(self) -> None:
        """Call this before the loop ends: otherwise a pending alarm would fire after it."""
        if self._timer is not None:
            self._timer.cancel()
        if self._has_alarms:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(
                signal.SIGALRM, signal.SIG_IGN
            )  # an alarm may be pending, and the default action ends the process

    @property
    def lag_max_s(self) -> float:
        """The largest lag of the last one to two minutes."""
        return max(self._window_max, self._window_max_before)

    def _beat(self) -> None:
        now = monotonic()
        lag = self.lag_s = max(now - self._due, 0.0)
        if lag > self._window_max:
            self._window_max = lag
        if now - self._window_from >= WINDOW_S:
            self._window_from = now
            self._window_max_before, self._window_max = self._window_max, 0.0
        if lag >= SLOW_S - BEAT_S and self.logs_slow_callbacks:
            self._on_slow_callback(now, lag)
        if self._samples:
            self._samples = []
        used_s, passed_s = thread_time(), now - self._last_at
        is_busy = used_s - self._used_s > BUSY_SHARE * passed_s
        self._used_s, self._last_at = used_s, now
        wait_s = BEAT_S if is_busy else REST_S
        self._due = now + wait_s
        self._timer = self._loop.call_later(wait_s, self._beat)
        if self._has_alarms:
            # First at half the time that counts as slow, then repeatedly.
            signal.setitimer(signal.ITIMER_REAL, wait_s + SLOW_S / 2, SLOW_S / 2)

    def _on_slow_callback(self, now: float, lag: float) -> None:
        self.slow_count += 1
        if now - self._logged_at < LOG_EVERY_S:
            self._not_logged += 1
            return
        more = f" (and {self._not_logged} times since the last message)" if self._not_logged else ""
        self._logged_at, self._not_logged = now, 0
        seen = "; then in ".join(self._samples) or "no callback: the process did not get a processor"
        log.warning("the event loop was blocked for %.0f ms%s, seen in %s", lag * 1000, more, seen)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        # A signal handler runs between any two instructions: it must not log or acquire a lock.
        if len(self._samples) < SAMPLES_MAX:
            names = " < ".join(names_of(frame))
            # In the beat itself: no callback blocks the loop; the process did not get a processor.
            if names and names not in self._samples and not names.startswith("LoopWatch."):
                self._samples.append(names)


def names_of(frame: FrameType | None) -> list[str]:
    """The function names of a stack, the innermost first, up to the one that the loop called."""
    found: list[str] = []
    while frame is not None and not is_loop(frame):
        code = frame.f_code
        found.append(f"{code.co_qualname} ({short(code.co_filename)}:{frame.f_lineno})")
        frame = frame.f_back
    if len(found) > FRAMES_MAX:
        found = [*found[: FRAMES_MAX - 3], "...", *found[-2:]]
    return found


def is_loop(frame: FrameType) -> bool:
    """Whether this frame belongs to asyncio's loop itself."""
    name = frame.f_code.co_filename
    return name.endswith(LOOP_FILES) or f"{os.sep}uvloop{os.sep}" in name


def short(path: str) -> str:
    folder, _, name = path.rpartition(os.sep)
    return f"{folder.rpartition(os.sep)[2]}/{name}"
