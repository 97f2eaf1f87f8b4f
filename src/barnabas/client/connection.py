"""One connection to one broker: requests go out at once, answers are matched by correlation id.

In: request messages. Out: response messages, or a ClientError that says what happened to the connection. The
version of each request is the newest that both sides know; `open` asks the broker for its list first.
Does not know: topics, leaders, retries, what an error code in an answer means.
"""

import asyncio
import errno
import functools
import os
import socket
import struct
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from barnabas.client.address import Address
from barnabas.client.errors import ConnectError, ConnectionLost, RequestTimeout, UnsupportedApi
from barnabas.client.versions import ApiRanges, ask_versions, newest_common
from barnabas.protocol import ApiKey, ErrorCode, Message
from barnabas.protocol.apis import request_header_version, response_header_version
from barnabas.protocol.headers import RequestHeader, ResponseHeader

R = TypeVar("R", bound=Message)

FRAME_BYTES_MAX = 1 << 30
CONNECT_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_MS = 30_000
CORRELATION_ID_MAX = 2**31 - 1
HEADER_BYTES = 8  # of a request, up to its correlation id
_length = struct.Struct(">i")
_header = struct.Struct(">ihhi")
_error_code = struct.Struct(">h")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request whose answer has not come."""

    future: "asyncio.Future[Any]"
    response: type[Message]
    key: int
    version: int


class Connection(asyncio.Protocol):
    """Use `Connection.open`; any number of tasks may send at the same time."""

    def __init__(self, address: Address, client_id: str, request_timeout_ms: float) -> None:
        self.address = address
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.versions: ApiRanges = {}
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: dict[int, _Waiting] = {}
        self._last_correlation_id = -1
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost: ConnectionLost | None = None
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        client_id: str = "barnabas",
        connect_timeout_ms: float = CONNECT_TIMEOUT_MS,
        request_timeout_ms: float = REQUEST_TIMEOUT_MS,
    ) -> "Connection":
        """Connect and learn what the broker can do."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(connect_timeout_ms / 1000):
                _, connection = await loop.create_connection(
                    lambda: cls(address, client_id, request_timeout_ms), address.host, address.port
                )
        except TimeoutError:
            raise ConnectError(address, f"no answer within {connect_timeout_ms:.0f} ms") from None
        except OSError as error:
            raise ConnectError(address, reason_of(error)) from None
        try:
            connection.versions = await ask_versions(connection)
        except (ConnectionLost, RequestTimeout) as error:
            await connection.close()
            raise ConnectError(
                address, f"connected, but nothing there speaks Kafka's protocol ({error})"
            ) from error
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._lost is None

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
        """Send a request and wait for its answer."""
        if version is None:
            version = self.version_for(type(request), version_max)
        await self._writable.wait()
        correlation_id = self._write(request, version)
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = _Waiting(future, response, key_of(type(request)), version)
        limit_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await future
        except TimeoutError:
            raise RequestTimeout(self.address, type(request).__name__, limit_ms) from None
        finally:
            # An answer that comes later is dropped by its id.
            self._waiting.pop(correlation_id, None)

    async def post(self, request: Message, *, version_max: int | None = None) -> None:
        """Send a request that has no answer (Produce with acks=0)."""
        version = self.version_for(type(request), version_max)
        await self._writable.wait()
        self._write(request, version)

    def _write(self, request: Message, version: int) -> int:
        if self._lost is not None or self._transport is None:
            raise self._lost or ConnectionLost(self.address, "it was never made")
        self._last_correlation_id = (self._last_correlation_id + 1) & CORRELATION_ID_MAX
        frame = request_frame(request, version, self._last_correlation_id, self.client_id)
        self._transport.writelines(frame)
        return self._last_correlation_id

    async def close(self) -> None:
        """Close and wait until it is closed; requests under way fail."""
        self._fail(ConnectionLost(self.address, "it was closed here"))
        if self._transport is not None:
            self._transport.close()
            await self._closed

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(ConnectionLost(self.address, reason_of(error) if error else "the broker closed it"))
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        position = 0
        while len(received) - position >= 4:
            (length,) = _length.unpack_from(received, position)
            if not 4 <= length <= FRAME_BYTES_MAX:
                self._abandon(f"it sent a frame of {length} bytes, which is no answer of Kafka's protocol")
                return
            if len(received) - position - 4 < length:
                break
            frame = bytes(memoryview(received)[position + 4 : position + 4 + length])
            position += 4 + length
            self._answer(frame)
        if position:
            del received[:position]

    def _answer(self, frame: bytes) -> None:
        (correlation_id,) = _length.unpack_from(frame)
        waiting = self._waiting.get(correlation_id)
        if waiting is None or waiting.future.done():
            return
        try:
            waiting.future.set_result(decode_answer(frame, waiting.response, waiting.key, waiting.version))
        except Exception as error:
            waiting.future.set_exception(error)

    def _abandon(self, reason: str) -> None:
        self._fail(ConnectionLost(self.address, reason))
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: ConnectionLost) -> None:
        if self._lost is None:
            self._lost = error
        self._writable.set()
        for waiting in self._waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(self._lost)


def key_of(request: type[Message]) -> int:
    key = request.schema.key
    assert key is not None, f"{request.__name__} is not a request"
    return key


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


def request_frame(request: Message, version: int, correlation_id: int, client_id: str) -> list[bytes]:
    """A whole request in pieces: its length with its header, and its body."""
    parts = request.encode_parts(version)
    size = sum(map(len, parts))
    return [frame_start(key_of(type(request)), version, correlation_id, client_id, size), *parts]


def frame_start(key: int, version: int, correlation_id: int, client_id: str, body_bytes: int) -> bytes:
    """A request's length and its header."""
    rest = header_rest(key, version, client_id)
    return _header.pack(HEADER_BYTES + len(rest) + body_bytes, key, version, correlation_id) + rest


@functools.lru_cache(maxsize=1024)
def header_rest(key: int, version: int, client_id: str) -> bytes:
    """What follows the correlation id in a request's header: the same in all requests of a client."""
    header = RequestHeader(request_api_key=key, request_api_version=version, client_id=client_id)
    return header.encode(request_header_version(key, version))[HEADER_BYTES:]


def decode_answer(frame: bytes | memoryview, response: type[R], key: int, version: int) -> R:
    """The body of an answer, behind its header."""
    view = memoryview(frame)
    body = view[4:] if response_header_version(key, version) == 0 else view[flexible_header_size(view) :]
    if key == ApiKey.API_VERSIONS and _error_code.unpack_from(body)[0] == ErrorCode.UNSUPPORTED_VERSION:
        version = 0  # a broker that does not know the version we asked in answers in this one
    return response.decode(body, version)


def flexible_header_size(frame: memoryview) -> int:
    """The correlation id, and tagged fields of which there are none so far."""
    return 5 if frame[4] == 0 else len(ResponseHeader.decode(frame, 1).encode(1))


def reason_of(error: BaseException) -> str:
    """What a person should read of an OSError: `connection refused` instead of errno and address."""
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno).lower()
    if "Multiple exceptions" in str(error) and "refused" in str(error):
        return "connection refused"  # asyncio's summary when a name has several addresses
    return str(error) or type(error).__name__
