"""Reports the queries of one process to the catalogue.

In: changes of state, progress, errors. Out: one small file beside the data, written by a thread at most every
few seconds, at once when a state changed. A failure to write never stops the work: the next attempt writes
everything again. Does not know: what queries do.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.engine.catalogue.catalogue import program_file
from barnabas.engine.catalogue.statuses import (
    ERROR_CHARS_MAX,
    ProgramStatus,
    QueryState,
    QueryStatus,
    bounded_metrics,
    bounded_offsets,
)
from barnabas.engine.places.place import Place

WRITE_S = 5.0  # between two writes
CHANGE_S = 0.5  # between two writes after a change of state
HEARTBEAT_S = 15.0  # a process without news writes so often, so that it is not called lost
QUERIES_MAX = 1000
CLOSE_S_MAX = 15.0
LOG = logging.getLogger(__name__)


class Reporter:
    """The statuses of all queries of one process. Thread-safe; `close` writes them a last time."""

    def __init__(
        self,
        place: Place,
        application: str,
        program: str,
        *,
        write_s: float = WRITE_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._place = place
        self._write_s = write_s
        self._clock = clock
        now = clock()
        self._status = ProgramStatus(application, program, socket.gethostname(), os.getpid(), now, now)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_closing = False
        self._has_news = True
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name="catalogue", daemon=True)
        self._thread.start()

    # -- what queries report -----------------------------------------------------------------------

    def set_state(self, query: str, state: str, detail: str = "", kind: str = "") -> None:
        with self._lock:
            found = self._query(query)
            if found is None:
                return
            found.kind = kind or found.kind
            text = detail[:ERROR_CHARS_MAX]
            if (found.state, found.detail) != (state, text):
                found.state, found.detail, found.since = state, text, self._clock()
                self._news(at_once=True)

    def progress(
        self,
        query: str,
        *,
        batch: int | None = None,
        rows_in: int = 0,
        rows_out: int = 0,
        seconds: float = 0.0,
        lag: int | None = None,
        delay_s: float | None = None,
        offsets: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """A batch ended; `rows_in` and `rows_out` are those of the batch."""
        with self._lock:
            found = self._query(query)
            if found is None:
                return
            found.batch = found.batch if batch is None else batch
            found.batches += 1
            found.rows_in += rows_in
            found.rows_out += rows_out
            found.rows_per_second = rows_in / seconds if seconds > 0 else 0.0
            found.lag = lag
            found.delay_s = delay_s
            if offsets is not None:
                found.offsets = bounded_offsets(offsets)
            if metrics is not None:
                found.metrics = bounded_metrics(metrics)
            self._news()

    def measured(self, query: str, *, lag: int | None, metrics: Mapping[str, Mapping[str, float]]) -> None:
        """Metrics of a query between its batches: rates fall, and the lag grows."""
        with self._lock:
            found = self._query(query)
            if found is not None:
                found.lag, found.metrics = lag, bounded_metrics(metrics)
                self._news()

    def failed(self, query: str, error: str, *, state: str = QueryState.FAILED, detail: str = "") -> None:
        """Note the last error of a query; `error` must hold no secrets."""
        with self._lock:
            found = self._query(query)
            if found is None:
                return
            found.errors += 1
            found.last_error = error[:ERROR_CHARS_MAX]
            found.last_error_at = self._clock()
        self.set_state(query, state, detail or error)

    def _query(self, name: str) -> QueryStatus | None:
        found = self._status.queries.get(name)
        if found is None:
            if len(self._status.queries) >= QUERIES_MAX:
                self._status.queries_left_off += 1
                return None
            now = self._clock()
            found = self._status.queries[name] = QueryStatus(name, started=now, since=now)
        return found

    # -- writing -----------------------------------------------------------------------------------

    def _news(self, *, at_once: bool = False) -> None:
        self._has_news = True
        if at_once:
            self._wake.set()

    def _run(self) -> None:
        written = 0.0
        while not self._is_closing:
            self._wake.wait(self._write_s)
            if self._wake.is_set():
                self._wake.clear()
                time.sleep(min(CHANGE_S, self._write_s))  # several changes become one write
            if self._has_news or self._clock() - written >= HEARTBEAT_S:
                self.flush()
                written = self._clock()

    def flush(self) -> bool:
        """Write now; whether it worked."""
        with self._lock:
            self._has_news = False
            self._status.updated = self._clock()
            data = self._status.data()
            name = program_file(self._status.application, self._status.program)
        try:
            self._place.write(name, data)
        except Exception as error:
            self.failures += 1
            self._has_news = True
            LOG.warning("the catalogue cannot be written: %s", error)
            return False
        return True

    def close(self, state: str = QueryState.STOPPED) -> None:
        """Write a last time; queries that did not fail are in `state` now."""
        with self._lock:
            for query in self._status.queries.values():
                if query.state != QueryState.FAILED:
                    query.state, query.detail, query.since = state, "", self._clock()
        self._is_closing = True
        self._wake.set()
        self._thread.join(CLOSE_S_MAX)
        self.flush()
