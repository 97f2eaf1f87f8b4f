"""POST /inserts-stream: rows of JSON, one a line, written into a stream or table as they arrive.

Each row gets a line with its number, in order. A row that is wrong gets an error, and ends the stream, as
with ksqlDB. Rows are written as they arrive, without waiting for those before them; so many are on their way
at most, then a fast sender waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import parse_json
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.json_values import dumped
from barnabas.sql.server.commands.command import texts
from barnabas.sql.server.rest.bodies import DELIMITED, JSON
from barnabas.sql.server.settings.properties import plain_names
from barnabas.sql.server.statements.changing import check_writable
from barnabas.sql.server.statements.errors import BAD_REQUEST, SERVER_ERROR, bad_request, refused
from barnabas.sql.server.statements.session import Server, Session
from barnabas.sql.types.sql_types import PLAIN_NAME

LINE_BYTES_MAX = 1 << 20
ROWS_ON_THEIR_WAY_MAX = 1000
ACKS_AT_ONCE_MAX = 500  # in one piece of the response

Ack = dict[str, Any]


class AcksResponse(StreamingResponse):
    """A response that begins while the body still comes. Starlette's own listens for the end of the
    connection meanwhile, and takes the parts of the body that arrive then away from their reader."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):
            await self.stream_response(send)


class InsertEndpoint:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def insert(self, request: Request) -> Response:
        lines = lines_of(request)
        first = await anext(lines, None)
        head = object_of(first or b"")
        target = head.get("target")
        if not isinstance(target, str) or not target:
            raise bad_request('the first line must name a "target"')
        name = name_of(target)
        try:
            source = self._server.metastore.source(name)
        except SqlError as error:
            raise refused(error) from None
        if source.is_source:
            raise bad_request(f"Cannot insert into read-only {source.kind.lower()}: {name}")
        check_writable(self._server)
        session = Session(self._server, plain_names(texts(head.get("properties"))))
        is_array = JSON in request.headers.get("accept", "")
        acks = self._acks(lines, name, session)
        media_type = JSON if is_array else DELIMITED
        return AcksResponse(in_array(acks) if is_array else in_lines(acks), media_type=media_type)

    async def _acks(
        self, lines: AsyncIterator[bytes], target: str, session: Session
    ) -> AsyncIterator[list[Ack]]:
        """Acks in the order of rows, as many at once as are there."""
        begun: asyncio.Queue[Awaitable[None] | None] = asyncio.Queue(ROWS_ON_THEIR_WAY_MAX)
        beginning = asyncio.create_task(self._begin_rows(lines, target, session, begun))
        number, acks = 0, list[Ack]()
        try:
            while (row := await begun.get()) is not None:
                try:
                    await row
                except Exception as error:
                    ack = ack_of_error(number, error)
                    if ack is None:
                        raise
                    yield [*acks, ack]
                    return
                acks.append({"status": "ok", "seq": number})
                number += 1
                if begun.empty() or len(acks) >= ACKS_AT_ONCE_MAX:
                    yield acks
                    acks = []
            if acks:
                yield acks
        finally:
            beginning.cancel()
            await asyncio.gather(beginning, return_exceptions=True)

    async def _begin_rows(
        self,
        lines: AsyncIterator[bytes],
        target: str,
        session: Session,
        begun: asyncio.Queue[Awaitable[None] | None],
    ) -> None:
        """Hand rows over to the engine until the first that is wrong: it is the last one, and raises when its
        turn of acks has come."""
        server, properties = self._server, session.all_properties
        try:
            async for line in lines:
                row = await server.engine.begin_row(server.metastore, target, object_of(line), properties)
                await begun.put(row)
        except Exception as error:
            await begun.put(Wrong(error))
        await begun.put(None)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A row that is not written."""

    error: Exception

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()
        raise self.error


def ack_of_error(number: int, error: Exception) -> Ack | None:
    """None for an error that is no answer."""
    match error:
        case SqlError() | ApiError():
            code, message = BAD_REQUEST, error.message
        case KafkaError() | ClientError():
            code, message = SERVER_ERROR, str(error)
        case _:
            return None
    return {"status": "error", "seq": number, "error_code": code, "message": message}


async def in_lines(acks: AsyncIterator[list[Ack]]) -> AsyncIterator[str]:
    async for some in acks:
        yield "".join(dumped(ack) + "\n" for ack in some)


async def in_array(acks: AsyncIterator[list[Ack]]) -> AsyncIterator[str]:
    separator = "["
    async for some in acks:
        yield separator + ",\n".join(dumped(ack) for ack in some)
        separator = ",\n"
    yield "]" if separator != "[" else "[]"


async def lines_of(request: Request) -> AsyncIterator[bytes]:
    """The lines of a body that may go on; empty ones are left out."""
    rest = b""
    async for chunk in request.stream():
        rest += chunk
        *whole, rest = rest.split(b"\n")
        for line in whole:
            if line.strip():
                yield line
        if len(rest) > LINE_BYTES_MAX:
            raise bad_request(f"a line has at most {LINE_BYTES_MAX} bytes")
    if rest.strip():
        yield rest


def object_of(line: bytes) -> dict[str, Any]:
    try:
        found = parse_json(line)
    except ApiError as error:
        raise bad_request(f"Invalid JSON in inserts stream: {error.message}") from None
    if not isinstance(found, dict):
        raise bad_request("Invalid JSON in inserts stream: a line must be an object")
    return found


def name_of(text: str) -> str:
    """A name as statements have it: upper case unless it is in back quotes."""
    if len(text) > 1 and text[0] == text[-1] == "`":
        return text[1:-1].replace("``", "`")
    return text.upper() if PLAIN_NAME.fullmatch(text.upper()) else text
