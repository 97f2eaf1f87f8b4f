"""The flow of a connection: reading paused and resumed, a client muted, the connection refused or closed.

In: calls of the channel and of quotas. Out: calls of the transport. Does not know: requests, responses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.produce.tick import Tick
    from barnabas.broker.wire.server import Listener

log = logging.getLogger("barnabas.channel")
MUTED_MS_MAX = 15 * 60 * 1000  # so that dead peers are still detected


class ConnectionFlow(asyncio.BufferedProtocol):
    """The base of a channel, which has these fields."""

    __slots__ = ("_is_closing", "_is_paused", "_muted")
    _client_raw: memoryview | None
    _is_closing: bool
    _is_paused: bool
    _muted: asyncio.TimerHandle | None
    _time: Callable[[], float]
    host: str
    listener: Listener
    tick: Tick
    transport: asyncio.Transport

    @property
    def route(self) -> Route | None:
        raise NotImplementedError

    def block_requests(self) -> None:
        raise NotImplementedError

    def unblock_requests(self) -> None:
        raise NotImplementedError

    # -- quotas --------------------------------------------------------------------------------

    def mute(self, wait_ms: int) -> None:
        """Read nothing for this long. Responses are still sent."""
        until = self._time() + min(wait_ms, MUTED_MS_MAX) / 1000
        if self.route is not None:
            self.route.times.observe_throttle(wait_ms)
        if self._muted is None:
            self.block_requests()
            self.pause()
        elif until <= self._muted.when():
            return
        else:
            self._muted.cancel()
        self._muted = self.listener.loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self.unblock_requests()

    # -- flow ----------------------------------------------------------------------------------

    def pause(self) -> None:
        if not self._is_paused and not self._is_closing:
            self._is_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._is_paused and not self._is_closing:
            self._is_paused = False
            self.transport.resume_reading()

    def refuse(self, reason: str) -> None:
        if not self._is_closing:
            log.info("closing the connection from %s: %s", self.host, reason)
        self.close()

    def fail(self, doing: str) -> None:
        """Log an unexpected exception and close the connection. Call it in an `except` block."""
        self.tick.unexpected.note(doing, self.host)
        self.close()

    def abort(self, reason: str) -> None:
        """Close at once without sending queued responses. Logged at DEBUG: a flood causes many."""
        log.debug("closing the connection from %s: %s", self.host, reason)
        self._is_closing = True
        self.transport.abort()

    @property
    def has_spoken(self) -> bool:
        """Whether the client has sent a request."""
        return self._client_raw is not None

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.transport.close()
