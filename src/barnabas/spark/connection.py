"""A connection to one broker for code that blocks: Spark's workers read and write one thing at a time.

In: requests. Out: answers, in order; several requests may be under way, so that the next fetch travels while
the last one is decoded. Versions are negotiated once. Every wait has a limit.
Does not know: topics, leaders, retries.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from typing import TypeVar

from barnabas.client.address import Address
from barnabas.client.connection import common_version, decode_answer, key_of, reason_of, request_frame
from barnabas.client.errors import ConnectError, ConnectionLost, RequestTimeout
from barnabas.client.versions import ApiRanges, versions_request
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

R = TypeVar("R", bound=Message)

RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
FRAME_BYTES_MAX = 1 << 30
CORRELATION_ID_MAX = 2**31 - 1
ASK_VERSION_MAX = 4
PIECES_MAX = 512  # what one call to the system may take
_length = struct.Struct(">i")


class BlockingConnection:
    def __init__(self, address: Address, client_id: str, timeout_ms: int) -> None:
        """Connects and learns what the broker can do."""
        self.address = address
        self.client_id = client_id
        self.timeout_ms = timeout_ms
        self._expected: deque[tuple[int, str, int, int]] = deque()  # id, name, api key, version
        self._last_id = -1
        self._frame = bytearray(64 * 1024)
        try:
            self._socket = socket.create_connection(address, timeout_ms / 1000)
        except TimeoutError:
            raise ConnectError(address, f"no answer within {timeout_ms} ms") from None
        except OSError as error:
            raise ConnectError(address, reason_of(error)) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self.versions: ApiRanges = {}
        try:
            self.versions = self._ask_versions()
        except ConnectionLost as error:
            self.close()
            raise ConnectError(
                address, f"connected, but nothing there speaks Kafka's protocol ({error})"
            ) from error
        except BaseException:
            self.close()
            raise

    def _ask_versions(self) -> ApiRanges:
        version = ASK_VERSION_MAX
        while True:
            self.send(versions_request(version), version)
            answer = self.receive(ApiVersionsResponse)
            if answer.error_code != ErrorCode.UNSUPPORTED_VERSION or version == 0:
                return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
            theirs = [e.max_version for e in answer.api_keys if e.api_key == ApiVersionsRequest.schema.key]
            version = min(theirs[0], version - 1) if theirs else 0

    def version_for(self, request: type[Message], version_max: int | None = None) -> int:
        return common_version(self.address, self.versions, request, version_max)

    @property
    def is_idle(self) -> bool:
        """Whether no answer is expected: only then somebody else may use the connection."""
        return not self._expected

    def ask(self, request: Message, response: type[R], version_max: int | None = None) -> R:
        self.send(request, self.version_for(type(request), version_max))
        return self.receive(response)

    def send(self, request: Message, version: int) -> None:
        self._last_id = (self._last_id + 1) & CORRELATION_ID_MAX
        frame = request_frame(request, version, self._last_id, self.client_id)
        try:
            self._send_all(frame)
        except TimeoutError:
            raise RequestTimeout(self.address, type(request).__name__, self.timeout_ms) from None
        except OSError as error:
            raise ConnectionLost(self.address, reason_of(error)) from None
        self._expected.append((self._last_id, type(request).__name__, key_of(type(request)), version))

    def _send_all(self, frame: list[bytes]) -> None:
        """Records go out from where they lie."""
        if len(frame) > PIECES_MAX:
            frame = [b"".join(frame)]
        pieces = [memoryview(piece) for piece in frame]
        while pieces:
            sent = self._socket.sendmsg(pieces)
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.pop(0))
            if pieces:
                pieces[0] = pieces[0][sent:]

    def receive(self, response: type[R], timeout_ms: int | None = None) -> R:
        """The next answer. Its `records` are views that are valid until the next call."""
        correlation_id, name, key, version = self._expected[0]
        self._socket.settimeout((timeout_ms or self.timeout_ms) / 1000)
        try:
            self._fill(4, 0)
            (size,) = _length.unpack_from(self._frame)
            if not 4 <= size <= FRAME_BYTES_MAX:
                raise ConnectionLost(self.address, f"it sent a frame of {size} bytes, which is no answer")
            if size > len(self._frame):
                self._frame = bytearray(max(size, 2 * len(self._frame)))
            self._fill(size, 0)
        except TimeoutError:
            raise RequestTimeout(self.address, name, timeout_ms or self.timeout_ms) from None
        except OSError as error:
            raise ConnectionLost(self.address, reason_of(error)) from None
        self._expected.popleft()
        frame = memoryview(self._frame)[:size]
        if _length.unpack_from(frame)[0] != correlation_id:
            raise ConnectionLost(self.address, f"it answered another request than {name}")
        return decode_answer(frame, response, key, version)

    def _fill(self, size: int, start: int) -> None:
        view = memoryview(self._frame)
        while start < size:
            received = self._socket.recv_into(view[start:size])
            if not received:
                raise ConnectionLost(self.address, "the broker closed it")
            start += received

    def close(self) -> None:
        self._socket.close()
