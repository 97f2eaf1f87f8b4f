"""Diagnostics of a process: crashes, slow callbacks, unexpected errors, and a dump of its state on SIGUSR1.

In: a node and its loop. Out: log lines and metrics. `faulthandler` writes the stacks of all threads to
standard error on a crash, and on SIGUSR1 at once, also while a callback blocks the loop; the rest of the dump
follows when the loop runs again. Not for simulations, which have a handler of their own.
Does not know: what a node consists of (see `inspection`).
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from barnabas.runtime.loop_watch import LoopWatch

if TYPE_CHECKING:
    from barnabas.broker.node import Node

log = logging.getLogger("barnabas.watching")
DUMP_SIGNAL = signal.SIGUSR1


class Watching:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._loop = asyncio.get_running_loop()
        self.watch = LoopWatch(self._loop)
        self._has_signals = threading.current_thread() is threading.main_thread()

    def start(self) -> None:
        """Start before the node, so that its start is watched too."""
        if self._loop.get_exception_handler() is None:
            self._loop.set_exception_handler(self._callback_failed)
        self.watch.start()
        if self._has_signals:
            self._loop.add_signal_handler(DUMP_SIGNAL, self.dump)
            enable_faulthandler()

    def stop(self) -> None:
        self.watch.stop()

    def register_metrics(self) -> None:
        """Register metrics of the loop, and log slow callbacks from now on; the node has started."""
        self.watch.logs_slow_callbacks = (
            self._has_signals
        )  # needs a signal; without it only the lag is measured
        metrics, kind, watch = self._node.broker.metrics, ("barnabas.server", "EventLoop"), self.watch
        metrics.gauge(
            *kind,
            "LagMs",
            "How late the loop came to its last beat, in ms.",
            lambda: watch.lag_s * 1000,
        )
        metrics.gauge(
            *kind,
            "LagMaxMs",
            "The largest lag of the last one to two minutes, in ms.",
            lambda: watch.lag_max_s * 1000,
        )
        metrics.counter(
            *kind,
            "SlowCallbacksPerSec",
            "Times that callbacks held the loop for about 100 ms or more; the log names them.",
            lambda: watch.slow_count,
        )

    def dump(self) -> None:
        """Write the current state of the node to the log."""
        from barnabas.broker.metrics.inspection import lines_of  # rarely needed

        log.warning("state of the node, requested by %s:", DUMP_SIGNAL.name)
        for line in lines_of(self._node, self.watch):
            log.warning("  %s", line)
        log.warning("end of the state")

    def _callback_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log and count an exception of a callback or task that nothing else caught; the node continues."""
        error, message = context.get("exception"), context.get("message") or "a callback failed"
        if isinstance(error, OSError) and "transport" in context:
            log.info("a connection failed: %s (%s)", error, message)
            return
        broker = getattr(self._node, "broker", None)
        if broker is None or error is None:
            loop.default_exception_handler(context)
            return
        what = context.get("handle") or context.get("task") or context.get("future") or ""
        try:
            raise error
        except BaseException:
            broker.unexpected.note("the event loop:", f"{message} {what}")


def enable_faulthandler() -> None:
    """Enable `faulthandler`. Call it after the loop has set its handler of the signal, which is chained."""
    try:
        faulthandler.enable(sys.stderr)
        faulthandler.register(DUMP_SIGNAL, sys.stderr, all_threads=True, chain=True)
    except (AttributeError, ValueError, OSError) as error:  # standard error is no file
        log.info("cannot write stacks on faults: %s", error)
