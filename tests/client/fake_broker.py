"""A broker that says what a test tells it to: answers by API, one function each, over a real socket.

`FakeBroker({MetadataRequest: answer})` calls `answer(request, version)`; a returned message is sent in that
version, bytes as they are behind the correlation id, None closes the connection, SILENCE says nothing.
"""

import asyncio
import struct
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from barnabas.client.core.address import Address
from barnabas.protocol import Message
from barnabas.protocol.apis import request_class, request_header_version, response_header_version
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SILENCE: Any = object()
Answer = Callable[[Any, int], Any]


class FakeBroker:
    def __init__(
        self, answers: Mapping[type[Message], Answer], versions: Mapping[int, tuple[int, int]] = {}
    ) -> None:
        self._answers = {ApiVersionsRequest: self._api_versions, **answers}
        self._versions = dict(versions)
        self.seen: list[tuple[Message, int]] = []
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def address(self) -> Address:
        assert self._server is not None
        return Address(*self._server.sockets[0].getsockname()[:2])

    async def __aenter__(self) -> "FakeBroker":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    def count(self, kind: type[Message]) -> int:
        return sum(isinstance(request, kind) for request, _ in self.seen)

    def _api_versions(self, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        keys = {key.schema.key: key for key in self._answers}
        nested = ApiVersionsResponse.ApiVersion
        ranges = {
            key: self._versions.get(key, (kind.schema.versions.first, kind.schema.versions.last))
            for key, kind in keys.items()
        }
        return ApiVersionsResponse(
            api_keys=[
                nested(api_key=k, min_version=low, max_version=high) for k, (low, high) in ranges.items()
            ]
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(length)
                key, version, correlation_id = struct.unpack_from(">hhi", frame)
                header_version = request_header_version(key, version)
                header = RequestHeader.decode(frame, header_version)
                body = frame[len(header.encode(header_version)) :]
                request = request_class(key).decode(body, version)
                self.seen.append((request, version))
                answer = self._answers[type(request)](request, version)
                if answer is None:
                    return
                if answer is not SILENCE:
                    writer.write(framed(answer, key, version, correlation_id))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


def framed(answer: Message | bytes, key: int, version: int, correlation_id: int) -> bytes:
    flexible = response_header_version(key, version) == 1
    head = struct.pack(">i", correlation_id) + (b"\0" if flexible else b"")
    body = answer if isinstance(answer, bytes) else answer.encode(version)
    return struct.pack(">i", len(head) + len(body)) + head + body
