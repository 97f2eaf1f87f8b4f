"""The serving process's HTTP service: queries without a token, parts with it.

In: a `Store`, the token. Out: a Starlette application.

    GET  /views                 all views with their columns and freshness
    GET  /views/{name}?…        rows: filters, order, limit, offset, columns, as_of; JSON, or Arrow by Accept
    POST /sql                   one SELECT over the views: text, or JSON {"sql": …, "as_of": …}
    GET  /health, /openapi.json, /   liveness, description for programs, a page for people
    …    /inner/views/{name}/…  state, announced, batch, speed, checked: for the layers, with the token

Bad input gets 400 and one sentence. Does not know: Spark, how views are merged.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from barnabas.pipeline.serving.http import answers, description, wire
from barnabas.pipeline.serving.store.port import Answer, Store, StoreError, UnknownView
from barnabas.pipeline.serving.store.query import BadRequest, parse, parse_as_of
from barnabas.pipeline.views.parts import Conflict, ViewState

SQL_BYTES_MAX = 100_000
PART_BYTES_MAX = 2 << 30
Endpoint = Callable[[Request], Awaitable[Response]]


def application(store: Store, token: str) -> Starlette:
    """The routes. Requests to /inner need the token; without a token they are all refused."""
    service = Service(store, token)
    inner = "/inner/views/{view}"
    return Starlette(
        routes=[
            Route("/", service.page),
            Route("/openapi.json", service.openapi),
            Route("/health", service.health),
            Route("/views", service.views),
            Route("/views/{view}", service.view),
            Route("/sql", service.sql, methods=["POST"]),
            Route("/inner/health", service.inner(service.inner_health)),
            Route(inner, service.inner(service.state)),
            Route(inner, service.inner(service.drop), methods=["DELETE"]),
            Route(f"{inner}/announced", service.inner(service.announce), methods=["PUT"]),
            Route(f"{inner}/batch", service.inner(service.put_batch), methods=["PUT"]),
            Route(f"{inner}/speed", service.inner(service.put_speed), methods=["PUT"]),
            Route(f"{inner}/checked", service.inner(service.checked), methods=["PUT"]),
        ],
        exception_handlers={
            BadRequest: problem(400),
            UnknownView: problem(404),
            Conflict: problem(409),
            StoreError: problem(503),
            HTTPException: not_served,
        },
    )


class Service:
    """One method for each endpoint. The store blocks, so it is called in threads."""

    def __init__(self, store: Store, token: str) -> None:
        self._store = store
        self._token = token

    async def health(self, request: Request) -> Response:
        states = await run_in_threadpool(self._store.states)
        return JSONResponse({"status": "up", "views": len(states)})

    async def page(self, request: Request) -> Response:
        states = await run_in_threadpool(self._store.states)
        return HTMLResponse(description.page(states))

    async def openapi(self, request: Request) -> Response:
        states = await run_in_threadpool(self._store.states)
        return JSONResponse(description.openapi(states))

    async def views(self, request: Request) -> Response:
        states = await run_in_threadpool(self._store.states)
        now = answers.now()
        return JSONResponse({"views": [answers.described(state, now) for state in states]})

    async def view(self, request: Request) -> Response:
        try:
            text = request.scope["query_string"].decode("ascii")
            parameters = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
        except ValueError as wrong:
            raise BadRequest(f"the parameters cannot be read: {wrong}") from None
        query = parse(request.path_params["view"], parameters)
        wanted = dict(parameters).get("format")
        return rendered(await run_in_threadpool(self._store.answer, query), request, wanted)

    async def sql(self, request: Request) -> Response:
        body = await limited(request, SQL_BYTES_MAX)
        statement, as_of, wanted = sql_of(body, request.headers.get("content-type", ""))
        return rendered(await run_in_threadpool(self._store.sql, statement, as_of), request, wanted)

    def inner(self, endpoint: Endpoint) -> Endpoint:
        """Refuse requests without the token."""

        async def guarded(request: Request) -> Response:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not self._token or not hmac.compare_digest(given.encode(), self._token.encode()):
                return JSONResponse({"error": "the token is missing or wrong"}, 401)
            return await endpoint(request)

        return guarded

    async def inner_health(self, request: Request) -> Response:
        return JSONResponse({"status": "up"})

    async def state(self, request: Request) -> Response:
        state = await run_in_threadpool(self._store.state, request.path_params["view"])
        return JSONResponse({"state": wire.pack_state(state) if state else None})

    async def drop(self, request: Request) -> Response:
        await run_in_threadpool(self._store.drop, request.path_params["view"])
        return JSONResponse({"state": None})

    async def put_batch(self, request: Request) -> Response:
        return await self._put(request, lambda body: self._store.put_batch(wire.unpack_batch(body)))

    async def put_speed(self, request: Request) -> Response:
        return await self._put(request, lambda body: self._store.put_speed(wire.unpack_speed(body)))

    async def announce(self, request: Request) -> Response:
        try:
            value = json.loads(await limited(request, SQL_BYTES_MAX))
            fingerprint, horizon = str(value["fingerprint"]), int(value["horizon"])
        except (ValueError, KeyError, TypeError) as wrong:
            raise BadRequest(f"fingerprint and horizon are needed: {wrong}") from None
        await run_in_threadpool(self._store.announce, request.path_params["view"], fingerprint, horizon)
        return JSONResponse({})

    async def checked(self, request: Request) -> Response:
        try:
            value = json.loads(await limited(request, SQL_BYTES_MAX))
            version, at = int(value["version"]), datetime.fromisoformat(value["at"])
        except (ValueError, KeyError, TypeError) as wrong:
            raise BadRequest(f"version and at are needed: {wrong}") from None
        await run_in_threadpool(self._store.checked, request.path_params["view"], version, at)
        return JSONResponse({})

    async def _put(self, request: Request, put: Callable[[bytes], ViewState]) -> Response:
        body = await limited(request, PART_BYTES_MAX)
        try:
            state = await run_in_threadpool(put, body)
        except BadRequest:
            raise
        except ValueError as wrong:
            raise BadRequest(str(wrong)) from None
        return JSONResponse({"state": wire.pack_state(state)})


def rendered(answer: Answer, request: Request, wanted: str | None) -> Response:
    if wanted not in (None, "json", "arrow"):
        raise BadRequest(f"format is json or arrow, not {wanted!r}")
    now = answers.now()
    is_arrow = wanted == "arrow" or (
        wanted is None and answers.ARROW_MEDIA in request.headers.get("accept", "")
    )
    headers = {"barnabas-freshness": json.dumps(answers.fresh_of(answer, now))}
    if is_arrow:
        return Response(answers.as_arrow(answer, now), media_type=answers.ARROW_MEDIA, headers=headers)
    return Response(answers.as_json(answer, now), media_type="application/json", headers=headers)


def sql_of(body: bytes, content_type: str) -> tuple[str, int | datetime | None, str | None]:
    try:
        text = body.decode()
        if "json" not in content_type:
            return text, None, None
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest(
            "the body is a statement as UTF-8 text, or JSON such as {'sql': 'SELECT …'}"
        ) from None
    if not isinstance(value, dict) or not isinstance(value.get("sql"), str):
        raise BadRequest("the body has no text `sql`: write {'sql': 'SELECT …'}")
    if unknown := sorted(set(value) - {"sql", "as_of", "format"}):
        raise BadRequest(f"the body has {', '.join(map(repr, unknown))}: it takes sql, as_of and format")
    as_of, wanted = value.get("as_of"), value.get("format")
    if as_of is not None and (isinstance(as_of, bool) or not isinstance(as_of, int | str)):
        raise BadRequest(f"as_of is a version or a time, not {as_of!r}")
    return value["sql"], None if as_of is None else parse_as_of(str(as_of)), wanted


async def limited(request: Request, bytes_max: int) -> bytes:
    """The body; 413 as soon as it is too long."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > bytes_max:
            raise HTTPException(413, f"the body is longer than {bytes_max} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def problem(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status)

    return answer


async def not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = error.detail
    if error.status_code == 404:
        text = f"nothing is served at {request.url.path}: see / for what is"
    if error.status_code == 405:
        text = f"{request.method} is not served at {request.url.path}"
    return JSONResponse({"error": text}, error.status_code, headers=error.headers)
