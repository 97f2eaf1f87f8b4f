"""The serving process's HTTP service: queries for guests, parts for the applications.

In: a `Store`. Out: a `Service` for the frame, which asks callers who they are.

    GET  /views                 all views with their columns and freshness
    GET  /views/{name}?…        rows: filters, order, limit, offset, columns, as_of; JSON, or Arrow by Accept
    POST /sql                   one SELECT over the views: text, or JSON {"sql": …, "as_of": …}
    GET  /health, /openapi.json, /   liveness, description for programs, a page for people
    …    /inner/views/{name}/…  state, announced, batch, speed, checked: for the layers

Bad input gets 400 and one sentence. Does not know: Spark, how views are merged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from barnabas.pipeline.serving.http import answers, description, wire
from barnabas.pipeline.serving.store.port import Answer, Store, StoreError, UnknownView
from barnabas.pipeline.serving.store.query import BadRequest, parse, parse_as_of
from barnabas.pipeline.views.parts import Conflict, ViewState
from barnabas.services.app import Service
from barnabas.services.errors import ApiError
from barnabas.services.limits import Limits
from barnabas.services.routes import Need, ServiceRoute

SQL_BYTES_MAX = 100_000
PART_BYTES_MAX = 64 << 20  # larger parts come as files of the lake
BODIES_BYTES_MAX = 4 * PART_BYTES_MAX
REQUEST_S_MAX = 3600.0  # a large part takes long to store; statements have a limit of their own
STATUSES = {BadRequest: 400, UnknownView: 404, Conflict: 409, StoreError: 503}


def serving_service(store: Store) -> Service:
    """Routes that need ADMIN are for the applications alone."""
    views = ViewEndpoints(store)
    inner, admin = "/inner/views/{view}", Need.ADMIN

    async def close() -> None:
        await run_in_threadpool(store.close)

    return Service(
        "serving",
        [
            ServiceRoute("/", views.page, needs=Need.READ),
            ServiceRoute("/openapi.json", views.openapi, needs=Need.READ),
            ServiceRoute("/health", views.health, needs=None),
            ServiceRoute("/views", views.views, needs=Need.READ),
            ServiceRoute("/views/{view}", views.view, needs=Need.READ),
            ServiceRoute("/sql", views.sql, methods=["POST"], needs=Need.READ),
            ServiceRoute("/inner/health", views.inner_health, needs=admin),
            ServiceRoute(inner, views.state, needs=admin),
            ServiceRoute(inner, views.drop, methods=["DELETE"], needs=admin),
            ServiceRoute(f"{inner}/announced", views.announce, methods=["PUT"], needs=admin),
            ServiceRoute(
                f"{inner}/batch",
                views.put_batch,
                methods=["PUT"],
                needs=admin,
                body_bytes_max=PART_BYTES_MAX,
            ),
            ServiceRoute(
                f"{inner}/speed",
                views.put_speed,
                methods=["PUT"],
                needs=admin,
                body_bytes_max=PART_BYTES_MAX,
            ),
            ServiceRoute(f"{inner}/checked", views.checked, methods=["PUT"], needs=admin),
        ],
        stop=close,
        error_form=lambda error: {"error": error.message},
        converted=converted,
        limits=Limits(
            body_bytes_max=SQL_BYTES_MAX, bodies_bytes_max=BODIES_BYTES_MAX, request_s_max=REQUEST_S_MAX
        ),
    )


def converted(error: Exception) -> ApiError | None:
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return ApiError(status, status, str(error))
    return None


class ViewEndpoints:
    """One method for each endpoint. The store blocks, so it is called in threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
        body = await request.body()
        statement, as_of, wanted = sql_of(body, request.headers.get("content-type", ""))
        return rendered(await run_in_threadpool(self._store.sql, statement, as_of), request, wanted)

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
            value = json.loads(await request.body())
            fingerprint, horizon = str(value["fingerprint"]), int(value["horizon"])
            joined = {str(name): int(version) for name, version in value.get("joined", {}).items()}
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise BadRequest(f"fingerprint and horizon are needed: {wrong}") from None
        view = request.path_params["view"]
        await run_in_threadpool(self._store.announce, view, fingerprint, horizon, joined)
        return JSONResponse({})

    async def checked(self, request: Request) -> Response:
        try:
            value = json.loads(await request.body())
            version, at = int(value["version"]), datetime.fromisoformat(value["at"])
        except (ValueError, KeyError, TypeError) as wrong:
            raise BadRequest(f"version and at are needed: {wrong}") from None
        await run_in_threadpool(self._store.checked, request.path_params["view"], version, at)
        return JSONResponse({})

    async def _put(self, request: Request, put: Callable[[bytes], ViewState]) -> Response:
        body = await request.body()
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
