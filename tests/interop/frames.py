"""Raw connections and frames: bytes to a broker and back, with nothing in between that could hide a fault."""

from __future__ import annotations

import socket
import struct
from types import TracebackType

ANSWER_TIMEOUT_S = 30.0
CLIENT_ID = b"interop"


class Closed(Exception):
    """The broker closed the connection."""


class Wire:
    """One TCP connection that sends and receives whole frames."""

    def __init__(self, port: int, timeout: float = ANSWER_TIMEOUT_S) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation_id = 100

    def send(self, key: int, version: int, header_version: int, body: bytes) -> int:
        """Sends a request and returns its correlation id."""
        self.correlation_id += 1
        self.send_bytes(framed(request(key, version, header_version, self.correlation_id, body)))
        return self.correlation_id

    def send_bytes(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (ConnectionError, BrokenPipeError) as error:
            raise Closed from error

    def receive(self, timeout: float = ANSWER_TIMEOUT_S) -> bytes:
        """The next frame without its size; TimeoutError when none comes."""
        self.socket.settimeout(timeout)
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self.socket.recv(min(size - len(parts), 1 << 20))
            except ConnectionError as error:
                raise Closed from error
            if not part:
                raise Closed
            parts += part
        return bytes(parts)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def request(key: int, version: int, header_version: int, correlation_id: int, body: bytes) -> bytes:
    """A request as it follows the size: header 1, or 2 with an empty list of tagged fields."""
    header = struct.pack(">hhih", key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    return header + (b"\x00" if header_version == 2 else b"") + body
