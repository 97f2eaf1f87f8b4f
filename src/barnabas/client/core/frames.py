"""Frames of Kafka's protocol: requests to bytes, received bytes to whole responses.

In: messages with a version, bytes as they come. Out: pieces to write, response messages.
Does not know: sockets, which request a response belongs to.
"""

from __future__ import annotations

import functools
import struct
from typing import TypeVar

from barnabas.protocol import ApiKey, ErrorCode, Message, ProtocolError
from barnabas.protocol.apis import request_header_version, response_header_version
from barnabas.protocol.headers import RequestHeader, ResponseHeader

R = TypeVar("R", bound=Message)

FRAME_BYTES_MAX = 1 << 30
READ_BYTES = 16 * 1024
HEADER_BYTES = 8  # of a request, up to its correlation id
_length = struct.Struct(">i")
_header = struct.Struct(">ihhi")
_error_code = struct.Struct(">h")


class FrameBuffer:
    """Receive memory of a connection: `room` to receive into, `received`, then `next_frame` until None.

    A frame is a view that is valid until `room` is called again.
    """

    __slots__ = ("_buffer", "_bytes_kept_max", "_end", "_start")

    def __init__(self, bytes_kept_max: int) -> None:
        """A buffer that grew beyond `bytes_kept_max` is given back when it is empty."""
        self._buffer = bytearray(READ_BYTES)
        self._bytes_kept_max = bytes_kept_max
        self._start = self._end = 0

    def room(self) -> memoryview:
        """Memory for the next bytes: up to the end of the frame that has begun, so that it need not move."""
        held = self._end - self._start
        if not held:
            self._start = self._end = 0
            if len(self._buffer) > self._bytes_kept_max:
                self._buffer = bytearray(READ_BYTES)
        size = self._frame_size() if held >= 4 else 0
        if self._start + max(size, 4) > len(self._buffer):
            old, room = self._buffer, self._buffer
            if size > len(old):
                room = bytearray(max(size, min(2 * len(old), FRAME_BYTES_MAX)))
            room[:held] = old[self._start : self._end]
            self._buffer, self._start, self._end = room, 0, held
        stop = self._start + size if size else len(self._buffer)
        return memoryview(self._buffer)[self._end : stop]

    def received(self, count: int) -> None:
        self._end += count

    def next_frame(self) -> memoryview | None:
        """A whole frame without its length; ProtocolError when the bytes are no frame."""
        if self._end - self._start < 4:
            return None
        size = self._frame_size()
        if self._end - self._start < size:
            return None
        start = self._start
        self._start += size
        return memoryview(self._buffer)[start + 4 : start + size]

    def _frame_size(self) -> int:
        (length,) = _length.unpack_from(self._buffer, self._start)
        if not 4 <= length <= FRAME_BYTES_MAX:
            raise ProtocolError("length", f"a frame of {length} bytes is no response of Kafka's protocol")
        return 4 + int(length)


def key_of(request: type[Message]) -> int:
    key = request.schema.key
    assert key is not None, f"{request.__name__} is not a request"
    return key


def correlation_id_of(frame: memoryview) -> int:
    (correlation_id,) = _length.unpack_from(frame)
    return int(correlation_id)


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
    """The part of a request's header behind the correlation id: the same in all requests of a client."""
    header = RequestHeader(request_api_key=key, request_api_version=version, client_id=client_id)
    return header.encode(request_header_version(key, version))[HEADER_BYTES:]


def decode_response(frame: bytes | memoryview, response: type[R], key: int, version: int) -> R:
    """The body of a response, behind its header."""
    view = memoryview(frame)
    body = view[4:] if response_header_version(key, version) == 0 else view[flexible_header_size(view) :]
    if key == ApiKey.API_VERSIONS and _error_code.unpack_from(body)[0] == ErrorCode.UNSUPPORTED_VERSION:
        version = 0  # a broker that does not know the version of the request responds in this one
    return response.decode(body, version)


def flexible_header_size(frame: memoryview) -> int:
    """The correlation id, and tagged fields of which there are none so far."""
    return 5 if frame[4] == 0 else len(ResponseHeader.decode(frame, 1).encode(1))
