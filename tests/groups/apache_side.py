"""Serves the requests of a transcript with Apache Kafka, over one connection per client.

What our shard did is the expectation: a response or a wait, and which other clients get one.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Mapping

from barnabas.protocol import ApiKey, Message
from barnabas.protocol.apis import request_header_version, response_class, response_header_version
from barnabas.protocol.headers import RequestHeader

ANSWER_TIMEOUT_S = 20.0
SILENCE_S = 0.1  # an unexpected response would have come by then
CORRELATION_SIZE = 4


class ApacheSide:
    def __init__(self, port: int, topic_ids: Mapping[str, bytes]) -> None:
        self._port = port
        self._topic_ids = topic_ids
        self._connections: dict[str, socket.socket] = {}
        self._asked: dict[str, tuple[ApiKey, int]] = {}
        self.waits = False  # whether the next request is expected to wait
        self.hear: list[str] = []  # clients that are expected to get a response after it

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def ask(self, client: str, request: Message, version: int) -> Message | None:
        assert request.schema.key is not None
        key = ApiKey(request.schema.key)
        if client not in self._connections:
            self._connections[client] = socket.create_connection(("127.0.0.1", self._port))
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=1, client_id=client
        )
        frame = header.encode(request_header_version(key, version)) + request.encode(version)
        self._connections[client].sendall(struct.pack(">i", len(frame)) + frame)
        self._asked[client] = (key, version)
        if not self.waits:
            return self._receive(client)
        with contextlib.suppress(TimeoutError):
            return self._receive(client, SILENCE_S)
        return None

    def heard(self) -> dict[str, Message]:
        return {client: self._receive(client) for client in self.hear}

    def topic_id(self, name: str) -> bytes:
        return self._topic_ids.get(name, b"\7" * 16)

    def _receive(self, client: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Message:
        connection = self._connections[client]
        connection.settimeout(timeout_s)
        (size,) = struct.unpack(">i", exactly(connection, 4))
        connection.settimeout(ANSWER_TIMEOUT_S)
        frame = exactly(connection, size)
        key, version = self._asked[client]
        has_tags = response_header_version(key, version) > 0
        return response_class(key).decode(frame[CORRELATION_SIZE + has_tags :], version)


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        assert part, "Apache Kafka closed the connection"
        data += part
    return data
