"""POST /inserts-stream: rows of JSON, one a line, written into a stream or table as they arrive.

Each row gets a line with its number. A row that is wrong gets an error, and ends the stream, as with ksqlDB.
One row is written before the next one is read, so a fast sender waits and costs one line of memory.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import parse_json
from barnabas.sql.errors import SqlError
from barnabas.sql.server.commands.command import texts
from barnabas.sql.server.rest.bodies import DELIMITED, JSON
from barnabas.sql.server.settings.properties import plain_names
from barnabas.sql.server.statements.changing import check_writable
from barnabas.sql.server.statements.errors import BAD_REQUEST, SERVER_ERROR, bad_request, refused
from barnabas.sql.server.statements.session import Server, Session
from barnabas.sql.types.sql_types import PLAIN_NAME

LINE_BYTES_MAX = 1 << 20


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
    ) -> AsyncIterator[dict[str, Any]]:
        number = 0
        server = self._server
        async for line in lines:
            try:
                row = object_of(line)
                await server.engine.insert_row(server.metastore, target, row, session.all_properties)
            except (SqlError, ApiError) as error:
                message = error.message
                yield {"status": "error", "seq": number, "error_code": BAD_REQUEST, "message": message}
                return
            except (KafkaError, ClientError) as error:
                yield {"status": "error", "seq": number, "error_code": SERVER_ERROR, "message": str(error)}
                return
            yield {"status": "ok", "seq": number}
            number += 1


async def in_lines(acks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    async for ack in acks:
        yield json.dumps(ack) + "\n"


async def in_array(acks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    separator = "["
    async for ack in acks:
        yield separator + json.dumps(ack)
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
