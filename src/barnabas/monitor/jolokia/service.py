"""Jolokia's endpoint as a service of the HTTP frame, served on a node's metrics port.

In: the registry, `run` for work in pieces. Out: an ASGI application for GET and POST at /jolokia. Errors are
documents with a `status`, and the status of HTTP is 200, as Jolokia does it; a body that is not JSON gets a
document with status 400. Does not know: sockets, the broker.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.monitor.jolokia.documents import document_of, refusal
from barnabas.monitor.jolokia.requests import BULK_MAX, ILLEGAL, JolokiaError, of_json, of_path
from barnabas.services.app import Service, ServiceApp
from barnabas.services.limits import Limits
from barnabas.services.routes import ServiceRoute

if TYPE_CHECKING:
    from barnabas.metrics.registry import Registry
    from barnabas.runtime.pieces import Steps

BODY_BYTES_MAX = 1024 * 1024
REQUEST_S_MAX = 30.0
ENCODED_IN_STEPS = 4  # levels: responses of a bulk, the value, domains, MBeans
MIME_TYPES = ("application/json", "text/plain")
Run = Callable[["Steps[Any]"], Awaitable[Any]]


class Jolokia:
    def __init__(
        self,
        registry: Registry,
        run: Run,
        product: Mapping[str, str],
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._run = run
        self._product = product
        self._now_s = now_s

    async def get(self, request: Request) -> Response:
        options = dict(request.query_params)
        path = request.path_params.get("rest", "") or options.pop("p", "")
        try:
            asked = of_path(path, options)
        except JolokiaError as error:
            return await self._response(self._refused(error, {}), options)
        document = await self._run(document_of(asked, self._registry, self._product, self._now_s()))
        return await self._response(document, options)

    async def post(self, request: Request) -> Response:
        options = dict(request.query_params)
        try:
            data = json.loads(await request.body() or b"null")
        except (ValueError, RecursionError):
            error = JolokiaError(400, ILLEGAL, "Invalid JSON request")
            return await self._response(self._refused(error, {}), options)
        if isinstance(data, list):
            if len(data) > BULK_MAX:
                error = JolokiaError(400, ILLEGAL, f"{len(data)} requests, {BULK_MAX} are allowed at once")
                return await self._response(self._refused(error, {}), options)
            return await self._response([await self._document(each, options) for each in data], options)
        return await self._response(await self._document(data, options), options)

    async def _document(self, data: Any, options: Mapping[str, str]) -> Any:
        try:
            asked = of_json(data, options)
        except JolokiaError as error:
            return self._refused(error, data)
        return await self._run(document_of(asked, self._registry, self._product, self._now_s()))

    def _refused(self, error: JolokiaError, data: Any) -> dict[str, Any]:
        return {"request": data, **refusal(error)}

    async def _response(self, document: Any, options: Mapping[str, str]) -> Response:
        kind = options.get("mimeType", MIME_TYPES[0])
        parts: list[str] = []
        await self._run(encode(document, parts.append))
        return Response(
            "".join(parts),
            media_type=kind if kind in MIME_TYPES else MIME_TYPES[0],
            headers={"Cache-Control": "no-cache"},
        )


def encode(document: Any, write: Callable[[str], object], depth: int = ENCODED_IN_STEPS) -> Steps[None]:
    """JSON in steps: its library would encode a document of all MBeans in one long call."""
    if not depth or not document or not isinstance(document, dict | list):
        write(json.dumps(document, separators=(",", ":")))
        yield
        return
    is_object = isinstance(document, dict)
    items = document.items() if isinstance(document, dict) else ((None, each) for each in document)
    separator = "{" if is_object else "["
    for key, value in items:
        write(f"{separator}{json.dumps(key)}:" if is_object else separator)
        yield from encode(value, write, depth - 1)
        separator = ","
    write("}" if is_object else "]")


def application(registry: Registry, run: Run, product: Mapping[str, str]) -> ServiceApp:
    """Everybody who reaches the metrics port may read, as at /metrics."""
    agent = Jolokia(registry, run, product)
    routes = []
    for path in ("/jolokia", "/jolokia/{rest:path}"):
        routes.append(ServiceRoute(path, agent.get, needs=None))
        routes.append(
            ServiceRoute(path, agent.post, needs=None, methods=("POST",), body_bytes_max=BODY_BYTES_MAX)
        )
    limits = Limits(request_s_max=REQUEST_S_MAX, body_bytes_max=BODY_BYTES_MAX)
    return ServiceApp(Service("jolokia", routes, limits=limits))
