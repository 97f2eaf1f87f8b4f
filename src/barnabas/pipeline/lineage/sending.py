"""Sends OpenLineage events to a server over HTTP, beside the work.

In: events, the server of the pipeline's file. Out: requests of OpenLineage's own client, in one thread. The
queue is bounded: while the server does not answer, the oldest events are dropped, counted and logged; the
file (`lineage.log`) has them all. Does not know: what an event says.
"""

from __future__ import annotations

import logging
import queue
import threading

from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

from barnabas.engine.errors import brief
from barnabas.engine.secrets import SecretError, reveal, scrubbed
from barnabas.pipeline.spec.model import LineageServer

LOG = logging.getLogger("barnabas.pipeline")
EVENTS_MAX = 1000  # that wait for the server
PAUSE_S = 5.0  # after a failure
CLOSE_S = 5.0


def transport_of(server: LineageServer) -> HttpTransport:
    token = reveal(server.token) if server.token else ""
    auth = ApiKeyTokenProvider({"api_key": token}) if token else TokenProvider({})
    # Without the library's own retries: they sleep for minutes, and `LineageSender` tries again.
    retry = {"total": 0}
    return HttpTransport(
        HttpConfig(
            url=reveal(server.url), endpoint=server.endpoint, timeout=server.timeout_s, auth=auth, retry=retry
        )
    )


class LineageSender:
    """A thread with a queue. `close` waits a moment for what is left."""

    def __init__(self, server: LineageServer, pause_s: float = PAUSE_S) -> None:
        self._server = server
        self._pause_s = pause_s
        self._queue: queue.Queue[RunEvent] = queue.Queue(EVENTS_MAX)
        self._is_closing = threading.Event()
        self._transport: HttpTransport | None = None
        self._is_failing = False
        self.sent = 0
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
        self._thread.start()

    def send(self, event: RunEvent) -> None:
        """Queue an event; the oldest one makes room where there is none."""
        while True:
            try:
                self._queue.put_nowait(event)
                return
            except queue.Full:
                self._drop()

    def close(self, within_s: float = CLOSE_S) -> None:
        self._is_closing.set()
        self._thread.join(within_s)

    def _drop(self) -> None:
        try:
            self._queue.get_nowait()
        except queue.Empty:
            return
        self.dropped += 1
        if self.dropped % EVENTS_MAX == 1:
            LOG.warning("lineage: %s events were not sent, the file has them", self.dropped)

    def _run(self) -> None:
        while not (self._is_closing.is_set() and self._queue.empty()):
            try:
                event = self._queue.get(timeout=0.2)
            except queue.Empty:
                continue
            while not self._is_sent(event):
                if self._is_closing.wait(self._pause_s):
                    return  # the server does not answer, and the process ends

    def _is_sent(self, event: RunEvent) -> bool:
        try:
            if self._transport is None:
                self._transport = transport_of(self._server)
            self._transport.emit(event)
        except SecretError as error:
            return self._failed(error)
        except Exception as error:  # of the library, of requests, of the server
            if is_refused(error):
                LOG.warning("lineage: the server refuses an event: %s", scrubbed(brief(error)))
                self.dropped += 1
                return True
            return self._failed(error)
        self.sent += 1
        if self._is_failing:
            LOG.info("lineage: events are sent again")
        self._is_failing = False
        return True

    def _failed(self, error: Exception) -> bool:
        if not self._is_failing:
            LOG.warning("lineage: events cannot be sent: %s", scrubbed(brief(error)))
        self._is_failing = True
        self._transport = None  # its address and token may be others the next time
        return False


def is_refused(error: Exception) -> bool:
    """Whether the server will never take this event: a client error that is no matter of time or access."""
    status = getattr(getattr(error, "response", None), "status_code", 0)
    return 400 <= int(status) < 500 and status not in (401, 403, 408, 429)
