"""Endpoints that stream rows: /query, /query-stream, /close-query, and the WebSocket /ws/query."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from barnabas.services.errors import ApiError
from barnabas.sql.execution.json_values import dumped, json_row
from barnabas.sql.execution.port import PullResult, Row, RunningSelect, SelectKind
from barnabas.sql.server.rest import selecting
from barnabas.sql.server.rest.bodies import STREAM_NAMES, Asked, asked, asked_in_text, body_of, json_response
from barnabas.sql.server.rest.forms import Delimited, Form, Streamed, stream_form
from barnabas.sql.server.rest.selecting import Selection, selection
from barnabas.sql.server.rest.statements import StatementEndpoints
from barnabas.sql.server.statements.entities import fields_json
from barnabas.sql.server.statements.errors import NOT_ACCEPTABLE, bad_request, converted, error_json
from barnabas.sql.server.statements.session import Server
from barnabas.sql.syntax.statements import Print

TEXT = "text/plain; charset=utf-8"
POLICY_VIOLATION, INTERNAL_ERROR, NORMAL = 1008, 1011, 1000
REASON_BYTES_MAX = 120


class QueryEndpoints:
    def __init__(self, server: Server, statements: StatementEndpoints, stopping: asyncio.Event) -> None:
        self._server = server
        self._statements = statements
        self._stopping = stopping

    async def query(self, request: Request) -> Response:
        return await self._answer(await asked(request), Streamed())

    async def query_stream(self, request: Request) -> Response:
        form = stream_form(request.headers.get("accept", ""))
        if form is None:
            raise ApiError(406, NOT_ACCEPTABLE, "/query-stream has no form of the types that Accept names")
        return await self._answer(await asked(request, STREAM_NAMES), form)

    async def _answer(self, given: Asked, form: Form) -> Response:
        selected = await self._selected(given)
        if isinstance(selected.statement, Print):
            if not isinstance(form, Delimited | Streamed):
                raise ApiError(406, NOT_ACCEPTABLE, "PRINT has lines of text only: leave out Accept")
            return await self._printed(selected.statement)
        texts: AsyncIterator[str]
        if selected.prepared is not None and selected.prepared.select is SelectKind.PULL:
            texts = selecting.pull_texts(await selecting.pulled(self._server, selected), form)
        else:
            select = selecting.started(self._server, selected)
            texts = selecting.push_texts(self._server, select, selected.text, form, self._stopping)
        return StreamingResponse(texts, media_type=form.media_type)

    async def _selected(self, given: Asked) -> Selection:
        await self._statements.wait_for(given.sequence_number)
        return await selection(given.session(self._server), given.text)

    async def _printed(self, statement: Print) -> Response:
        from barnabas.sql.server.printing.printer import places_of

        await places_of(self._server.cluster, statement.topic)  # a topic that is missing is an error of HTTP
        texts = selecting.print_texts(self._server, statement, self._stopping)
        return StreamingResponse(texts, media_type=TEXT)

    async def close_query(self, request: Request) -> Response:
        query_id = (await body_of(request)).get("queryId")
        if not isinstance(query_id, str) or not query_id:
            raise bad_request('the request needs "queryId"')
        if not self._server.selects.end(query_id):
            raise bad_request(f"No query with id {query_id}")
        return json_response({}, request)

    # -- WebSocket ---------------------------------------------------------------------------------

    async def web_socket(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            text = socket.query_params.get("request") or await socket.receive_text()
            selected = await self._selected(asked_in_text(text))
            await self._send_all(socket, selected)
        except WebSocketDisconnect:
            return
        except Exception as error:
            found = error if isinstance(error, ApiError) else converted(error)
            if found is None:
                raise
            await socket.send_text(dumped(error_json(found)))
            reason = found.message.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
            await socket.close(INTERNAL_ERROR if found.status >= 500 else POLICY_VIOLATION, reason)
            return
        await socket.close(NORMAL, "done")

    async def _send_all(self, socket: WebSocket, selected: Selection) -> None:
        """Send until the end, or until the client has gone."""
        sending = asyncio.ensure_future(self._send(socket, selected))
        gone = asyncio.ensure_future(closed(socket))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
            else:
                raise WebSocketDisconnect
        finally:
            for each in (sending, gone):
                each.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)

    async def _send(self, socket: WebSocket, selected: Selection) -> None:
        server = self._server
        if isinstance(selected.statement, Print):
            async for text in selecting.print_texts(server, selected.statement, self._stopping):
                await socket.send_text(text.rstrip("\n"))
            return
        if selected.prepared is not None and selected.prepared.select is SelectKind.PULL:
            await self._send_pull(socket, await selecting.pulled(server, selected))
            return
        await self._send_push(socket, selecting.started(server, selected), selected.text)

    async def _send_pull(self, socket: WebSocket, result: PullResult) -> None:
        await socket.send_text(dumped(fields_json(result.schema)))
        for values in result.rows:
            await socket.send_text(row_text(Row(values), result.schema))

    async def _send_push(self, socket: WebSocket, select: RunningSelect, text: str) -> None:
        async with (
            self._server.selects.noted(select, text) as opened,
            selecting.ending(opened, self._stopping),
        ):
            await socket.send_text(dumped(fields_json(select.schema)))
            async for row in selecting.taking_turns(select):
                await socket.send_text(row_text(row, select.schema))
            if select.end:
                await socket.send_text(dumped({"finalMessage": select.end}))


def row_text(row: Row, schema: object) -> str:
    columns = {"columns": json_row(row.values, schema)}  # type: ignore[arg-type]
    return dumped({"row": {**columns, "tombstone": True} if row.is_tombstone else columns})


async def closed(socket: WebSocket) -> None:
    """Wait until the client closes the connection."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
