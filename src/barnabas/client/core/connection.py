"""One connection to one broker: versions, requests under way, responses matched by correlation id.

In: request messages, received bytes. Out: pieces to write, response messages, or a ClientError that says what
happened to the connection. A face moves the bytes: it writes pieces, receives into `frames` and waits.
Does not know: topics, leaders, retries, what an error code in a response means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from barnabas.client.core.address import Address
from barnabas.client.core.errors import ConnectionLost, UnsupportedApi
from barnabas.client.core.frames import (
    FrameBuffer,
    correlation_id_of,
    decode_response,
    key_of,
    request_frame,
)
from barnabas.client.core.login import log_in
from barnabas.client.core.network import ConnectionSettings
from barnabas.client.core.versions import ApiRanges, newest_common
from barnabas.protocol import Message, ProtocolError

R = TypeVar("R", bound=Message)
T = TypeVar("T")

CORRELATION_ID_MAX = 2**31 - 1
RENEWED_AFTER = (0.85, 0.95)  # of a session's lifetime, as Kafka's clients do
RENEWAL_SECONDS_MIN = 1.0  # brokers refuse to renew a session earlier


class Exchange(Generic[R]):
    """A request on its way, and later its response."""

    __slots__ = ("_error", "_result", "correlation_id", "key", "name", "on_done", "response", "version")

    def __init__(self, request: type[Message], response: type[R], version: int, correlation_id: int) -> None:
        self.name = request.__name__
        self.key = key_of(request)
        self.response = response
        self.version = version
        self.correlation_id = correlation_id
        self.on_done: Callable[[], None] | None = None
        self._result: R | None = None
        self._error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return self._result is not None or self._error is not None

    def result(self) -> R:
        """The response, or the error that came instead."""
        if self._error is not None:
            raise self._error
        assert self._result is not None, f"{self.name} has no response yet"
        return self._result

    def finish(self, frame: memoryview) -> None:
        try:
            self._result = decode_response(frame, self.response, self.key, self.version)
        except Exception as error:
            self._error = error
        self._tell()

    def fail(self, error: BaseException) -> None:
        if not self.is_done:
            self._error = error
            self._tell()

    def _tell(self) -> None:
        if self.on_done is not None:
            self.on_done()


class ConnectionCore(ABC):
    """A face adds `_transmit`, `wait` and `close`, and calls `complete` and `fail`."""

    def __init__(self, address: Address, settings: ConnectionSettings, bytes_kept_max: int) -> None:
        self.address = address
        self.settings = settings
        self.versions: ApiRanges = {}  # filled by the handshake
        self.frames = FrameBuffer(bytes_kept_max)
        self.lost: ConnectionLost | None = None
        self.bytes_sent = self.bytes_received = 0
        self.on_sent: Callable[[int], object] | None = None  # called with the size of each request
        self.on_renewed: Callable[[float, bool], object] | None = None  # seconds of a login, and its success
        self._renew_at: float | None = None  # when to log in again; None: the session has no limit
        self._exchanges: dict[int, Exchange[Any]] = {}
        self._last_correlation_id = -1

    @property
    def is_open(self) -> bool:
        return self.lost is None

    @property
    def has_session_end(self) -> bool:
        """Whether the connection logs in again when its session ends."""
        return self._renew_at is not None

    @property
    def is_idle(self) -> bool:
        """Whether no response is expected."""
        return not self._exchanges

    @property
    def requests_sent(self) -> int:
        return self._last_correlation_id + 1

    @property
    def responses_awaited(self) -> int:
        return len(self._exchanges)

    def version_for(self, request: type[Message], version_max: int | None = None) -> int:
        """The version that `send` would use, or UnsupportedApi."""
        return common_version(self.address, self.versions, request, version_max)

    async def send(
        self,
        request: Message,
        response: type[R],
        *,
        version: int | None = None,
        version_max: int | None = None,
        timeout_ms: float | None = None,
    ) -> R:
        """Send a request and wait for its response."""
        if version is None:
            version = self.version_for(type(request), version_max)
        return await self.wait(await self.start(request, response, version), timeout_ms)

    async def start(self, request: Message, response: type[R], version: int) -> Exchange[R]:
        """Send a request; `wait` for its response later. Several may be under way."""
        if self._renew_at is not None and self.now() >= self._renew_at:
            await self._renew_session()
        return await self.begin(request, response, version)

    async def begin(self, request: Message, response: type[R], version: int) -> Exchange[R]:
        """Send a request now, also in the middle of a login."""
        exchange = Exchange(type(request), response, version, self._next_correlation_id())
        pieces = request_frame(request, version, exchange.correlation_id, self.settings.client_id)
        self._exchanges[exchange.correlation_id] = exchange
        try:
            await self._transmit(pieces, exchange.name)
        except BaseException:
            self._exchanges.pop(exchange.correlation_id, None)
            raise
        return exchange

    async def post(self, request: Message, *, version_max: int | None = None) -> None:
        """Send a request that has no response (Produce with acks=0)."""
        version = self.version_for(type(request), version_max)
        if self._renew_at is not None and self.now() >= self._renew_at:
            await self._renew_session()
        correlation_id = self._next_correlation_id()
        await self._transmit(
            request_frame(request, version, correlation_id, self.settings.client_id), type(request).__name__
        )

    async def authenticate(self) -> None:
        """Log in, for the first time or again. Nothing else may be sent meanwhile."""
        security = self.settings.security
        lifetime_ms = await log_in(LoginRequests(self), self.address, self.versions, security)
        seconds = max(lifetime_ms * self.uniform(*RENEWED_AFTER) / 1000, RENEWAL_SECONDS_MIN)
        self._renew_at = self.now() + seconds if lifetime_ms else None

    async def _renew_session(self) -> None:
        """Log in again: brokers close the connection at the first request after the session's end. Faces that
        several tasks use let the others wait."""
        began, succeeded = self.now(), False
        try:
            await self.authenticate()
            succeeded = True
        except BaseException:
            await self.close()  # in the middle of a login no other request is allowed
            raise
        finally:
            if self.on_renewed is not None:
                self.on_renewed(self.now() - began, succeeded)

    async def aside(self, work: Callable[..., T], *arguments: object) -> T:
        """Do work that waits for others. A face on an event loop does it in a thread."""
        return work(*arguments)

    @abstractmethod
    def now(self) -> float:
        """Seconds of a clock that never goes back."""

    @abstractmethod
    def uniform(self, low: float, high: float) -> float:
        """A random number: sessions of many clients must not be renewed together."""

    @abstractmethod
    async def wait(self, exchange: Exchange[R], timeout_ms: float | None = None) -> R:
        """The response, RequestTimeout, or ConnectionLost."""

    @abstractmethod
    async def close(self) -> None:
        """Close; requests under way fail."""

    @abstractmethod
    async def _transmit(self, pieces: list[bytes], name: str) -> None:
        """Write pieces of a request, or raise ConnectionLost."""

    # -- for faces -------------------------------------------------------------------------------

    def complete(self, awaited: Exchange[Any] | None = None) -> bool:
        """Hand over a response that was received whole; False when there is none.

        Only the response of `awaited` may hold views of the receive memory: any other is read from a copy. A
        response that nobody waits for any more is dropped.
        """
        try:
            frame = self.frames.next_frame()
        except ProtocolError as error:
            self.fail(ConnectionLost(self.address, f"it sent nonsense: {error.reason}"))
            return False
        if frame is None:
            return False
        exchange = self._exchanges.pop(correlation_id_of(frame), None)
        if exchange is not None:
            exchange.finish(frame if exchange is awaited else memoryview(bytes(frame)))
        return True

    def forget(self, exchange: Exchange[Any]) -> None:
        """Nobody waits for this response any more."""
        self._exchanges.pop(exchange.correlation_id, None)

    def fail(self, error: ConnectionLost) -> None:
        """The connection is gone: so are all responses."""
        if self.lost is None:
            self.lost = error
        exchanges, self._exchanges = self._exchanges, {}
        for exchange in exchanges.values():
            exchange.fail(self.lost)

    def _next_correlation_id(self) -> int:
        if self.lost is not None:
            raise self.lost
        self._last_correlation_id = (self._last_correlation_id + 1) & CORRELATION_ID_MAX
        return self._last_correlation_id


class LoginRequests:
    """The requests of a login: they do not wait for its end."""

    def __init__(self, connection: ConnectionCore) -> None:
        self._connection = connection

    async def send(self, request: Message, response: type[R], *, version: int) -> R:
        return await self._connection.wait(await self._connection.begin(request, response, version))

    async def aside(self, work: Callable[..., T], *arguments: object) -> T:
        return await self._connection.aside(work, *arguments)


def common_version(
    address: Address, offers: ApiRanges, request: type[Message], version_max: int | None = None
) -> int:
    """The newest version of a request that a broker with these offers and we know, or UnsupportedApi."""
    name = request.__name__.removesuffix("Request")
    offered = offers.get(key_of(request))
    if offered is None:
        raise UnsupportedApi(address, name, "the broker does not offer this API")
    version = newest_common(request, offered, version_max)
    if version is None:
        known = request.schema.versions
        theirs = f"{offered[0]}-{offered[1]}"
        raise UnsupportedApi(address, name, f"it offers versions {theirs}, we know {known!r}")
    return version
