"""A follower's connection to one leader.

In: requests. Out: responses in request order, decoded as views of the receive memory, so that their batches
are staged and written like those of producers; a call of `lost` when the connection is closed, or when the
leader does not respond in time.
Does not know: what is fetched, sessions, when to connect again.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from barnabas.client.core.address import Address
from barnabas.client.core.connection import RENEWAL_SECONDS_MIN, RENEWED_AFTER
from barnabas.client.core.errors import ClientError
from barnabas.client.core.frames import flexible_header_size, frame_start, key_of
from barnabas.client.core.login import log_in
from barnabas.client.core.versions import ask_versions, newest_common
from barnabas.client.login_threads import run_aside
from barnabas.connection.inbox import Inbox
from barnabas.protocol import Message, ProtocolError
from barnabas.protocol.apis import response_header_version
from barnabas.protocol.codec import codec

if TYPE_CHECKING:
    from barnabas.broker.produce.tick import Tick
    from barnabas.security.clients.client_security import ClientSecurity

R = TypeVar("R", bound=Message)
T = TypeVar("T")

log = logging.getLogger("barnabas.following")
FRAME_BYTES_MAX = 1 << 30
_correlation = struct.Struct(">i").unpack_from
Then = Callable[[Any], None]


class ApiBinding:
    """The version and the codec of one API on this connection."""

    __slots__ = ("decode", "is_flexible", "key", "version")

    def __init__(self, response: type[Message], version: int) -> None:
        self.key = key = key_of(response)
        self.version = version
        self.decode = codec(response, version).decode
        self.is_flexible = response_header_version(key, version) > 0


class LeaderLink(asyncio.BufferedProtocol):
    __slots__ = (
        "_asked_at", "_bindings", "_client_id", "_correlation_id", "_greeting", "_held", "_is_closed",
        "_is_handling", "_login", "_loop", "_lost", "_offers", "_renew_at", "_renewing", "_tick",
        "_timeout", "_timer", "_transport", "_waiting", "inbox",
    )  # fmt: skip

    def __init__(
        self, tick: Tick, client_id: str, timeout_ms: int, lost: Callable[[LeaderLink, str], None]
    ) -> None:
        self.inbox = Inbox(tick.arena, FRAME_BYTES_MAX)
        self._tick = tick
        self._client_id = client_id
        self._timeout = timeout_ms / 1000
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._offers: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0
        self._bindings: dict[type[Message], ApiBinding] = {}  # by the class of the response
        self._waiting: deque[tuple[int, ApiBinding, Then]] = deque()  # in the order of requests
        self._asked_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._greeting: asyncio.Future[Any] | None = None
        self._renew_at: float | None = None  # when to log in again
        self._login: tuple[Address, ClientSecurity]  # set together with the time
        self._renewing: asyncio.Task[None] | None = None
        self._held: list[tuple[list[bytes], ApiBinding, Then]] = []  # requests that wait for the login
        self._is_closed = False
        self._is_handling = False

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    # -- requests --------------------------------------------------------------------------------

    async def greet(self, address: Address, security: ClientSecurity) -> None:
        """Do everything that comes before the first fetch. OSError: the connection is lost; ClientError: the
        login failed."""
        self._offers = await ask_versions(self)
        if security.mechanism:
            await self._log_in(address, security)

    async def aside(self, work: Callable[..., T], *arguments: object) -> T:
        """Do work of a login that waits for others, in a thread."""
        return await run_aside(work, *arguments)

    async def _log_in(self, address: Address, security: ClientSecurity) -> None:
        lifetime_ms = await log_in(self, address, self._offers, security)
        if lifetime_ms:
            seconds = max(lifetime_ms * RENEWED_AFTER[0] / 1000, RENEWAL_SECONDS_MIN)
            self._renew_at = self._loop.time() + seconds
            self._login = address, security

    async def _renew(self) -> None:
        """Log in again, then send the requests that waited."""
        try:
            await self._log_in(*self._login)
        except (ClientError, OSError) as error:
            self.abort(f"the login could not be renewed: {error}")
            return
        self._renewing = None
        held, self._held = self._held, []
        for request in held:
            self._transmit(*request)

    async def send(self, request: Message, response: type[R], *, version: int) -> R:
        """Send a request of the handshake and wait for its response."""
        future: asyncio.Future[R] = self._loop.create_future()
        self._greeting = future

        def answered(decoded: R) -> None:
            if not future.done():
                future.set_result(decoded)

        self._transmit(request.encode_parts(version), ApiBinding(response, version), answered)
        try:
            return await future
        finally:
            self._greeting = None

    def send_request(self, request: Message, response: type[Message], then: Then) -> None:
        """Send a request. `then` gets the response; its views are valid until `then` returns, or if staged,
        until the tick ends."""
        binding = self._bindings.get(response)
        if binding is None:
            offered = self._offers.get(key_of(type(request)))
            version = newest_common(type(request), offered) if offered is not None else None
            if version is None:
                self.abort(f"it does not serve {type(request).__name__}")
                return
            binding = self._bindings[response] = ApiBinding(response, version)
        self._send(request.encode_parts(binding.version), binding, then)

    def send_encoded(self, body: bytes, response: type[Message], then: Then) -> None:
        """Send an encoded request of an API that was used before."""
        self._send([body], self._bindings[response], then)

    def version_of(self, response: type[Message]) -> int:
        """The version of an API that was used before."""
        return self._bindings[response].version

    def _send(self, body: list[bytes], binding: ApiBinding, then: Then) -> None:
        """Send a request, or hold it while the login is renewed: brokers close the connection at the first
        request after the session's end."""
        if self._renew_at is not None and self._loop.time() >= self._renew_at:
            self._renew_at = None
            self._renewing = self._loop.create_task(self._renew())
        if self._renewing is None:
            self._transmit(body, binding, then)
        else:
            self._held.append((body, binding, then))

    def _transmit(self, body: list[bytes], binding: ApiBinding, then: Then) -> None:
        if self._is_closed or self._transport is None:
            return
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._waiting.append((correlation_id, binding, then))
        self._asked_at = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout, self._check)
        size = sum(map(len, body))
        start = frame_start(binding.key, binding.version, correlation_id, self._client_id, size)
        self._transport.write(b"".join([start, *body]))

    def _check(self) -> None:
        """Close the connection if the leader has not responded in time."""
        self._timer = None
        if self._is_closed:
            return
        if self._waiting and self._loop.time() - self._asked_at >= self._timeout:
            self.abort(f"no response within {self._timeout:.0f} s")
        else:
            self._timer = self._loop.call_later(self._timeout, self._check)

    def abort(self, reason: str) -> None:
        if not self._is_closed and self._transport is not None:
            self._transport.abort()
        self._close(reason)

    def _close(self, reason: str) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._held.clear()
        if not self._is_handling:  # batches of the current response may be staged
            self.inbox.release_buffers()
        if self._greeting is not None and not self._greeting.done():
            self._greeting.set_exception(ConnectionResetError(reason))
        self._lost(self, reason)

    # -- what asyncio calls ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._close(str(error) if error else "the leader closed the connection")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.inbox.buffer()  # and nothing else: uvloop crashes if reading ends in here

    def buffer_updated(self, nbytes: int) -> None:
        run = self.inbox.received(nbytes)
        if run is not None and not self._is_closed:
            self._handle(run)

    def _handle(self, run: memoryview) -> None:
        inbox, tick = self.inbox, self._tick
        position, end = 0, len(run)
        inbox.arena.is_lent = self._is_handling = True
        try:
            while position < end and not self._is_closed:
                stop = inbox.frame_end(run, position, end)
                if not stop:
                    break
                self._accept_response(run[position + 4 : stop])
                position = stop
        except ProtocolError as error:
            self.abort(f"malformed response: {error}")
        except Exception:
            log.exception("a response of a leader could not be handled")
            self.abort("its response could not be handled")
        finally:
            inbox.arena.is_lent = self._is_handling = False
        inbox.consume(run, position if not self._is_closed else end, referenced=tick.is_open)
        if tick.is_open:
            tick.channel_done()
        if self._is_closed:
            inbox.release_buffers()
            return
        if inbox.waits_for_memory and self._transport is not None:
            self._transport.pause_reading()
            tick.arena.wait_for_room(self._resume)

    def _resume(self) -> None:
        if not self._is_closed and self._transport is not None:
            self._transport.resume_reading()

    def _accept_response(self, frame: memoryview) -> None:
        if not self._waiting or _correlation(frame)[0] != self._waiting[0][0]:
            raise ProtocolError("correlation_id", "a response without a request")
        _, binding, then = self._waiting.popleft()
        self._asked_at = self._loop.time()
        decoded, _ = binding.decode(frame, flexible_header_size(frame) if binding.is_flexible else 4)
        then(decoded)
