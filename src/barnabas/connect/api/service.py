"""The API as a service: routes for every endpoint, errors in Connect's form, requests for other workers.

In: endpoints of a worker. Out: a `Service` for the frame. A request that another worker must carry out goes
there through `forward`, at most twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.connect.api.endpoints import Endpoint, Endpoints
from barnabas.connect.api.response_headers import NAME as HEADERS
from barnabas.connect.api.response_headers import response_headers
from barnabas.connect.config.errors import ConfigError
from barnabas.connect.herder.errors import Elsewhere, Refused
from barnabas.services.app import Service
from barnabas.services.errors import ApiError
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.negotiation import accepted
from barnabas.services.routes import Need, ServiceRoute

NAME = "connect"
ADMIN = "admin.listeners"  # not given: with everything else; empty: nowhere
JSON = ("application/json",)
Forward = Callable[[Request, str], Awaitable[Response]]


async def nowhere(request: Request, url: str) -> Response:
    raise ApiError(409, 409, f"the request belongs to the worker {url}")


def service(
    endpoints: Endpoints,
    start: Callable[[], Awaitable[None]],
    stop: Callable[[], Awaitable[None]],
    forward: Forward = nowhere,
    more: tuple[ServiceRoute, ...] = (),
    metrics: ServiceMetrics | None = None,
) -> Service:
    """The service of a worker. `more` are routes between workers."""
    worker = endpoints.herder.worker
    headers = worker.get(HEADERS, "")
    found = [*routes(endpoints.table(), forward), *more]
    admin = routes(endpoints.admin_table(), forward)
    if ADMIN not in worker:
        found += admin
    beside = admin if worker.get(ADMIN, "").strip() else []
    own = metrics or ServiceMetrics(NAME)
    return Service(
        NAME,
        found,
        start,
        stop,
        error_form=error_form,
        converted=converted,
        metrics=own,
        beside=beside,
        headers=response_headers(headers) if headers.strip() else None,
    )


def routes(table: list[tuple[str, str, Endpoint]], forward: Forward) -> list[ServiceRoute]:
    found: list[ServiceRoute] = []
    methods: dict[str, list[str]] = {}
    for method, path, endpoint in table:
        needs = Need.READ if method == "GET" else Need.ADMIN if path.startswith("/admin") else Need.WRITE
        found.append(ServiceRoute(path, answering(endpoint, forward), needs=needs, methods=(method,)))
        methods.setdefault(path, []).append(method)
    for path, names in methods.items():
        allowed = ",".join([*names, *(["HEAD"] if "GET" in names else []), "OPTIONS"])
        found.append(ServiceRoute(path, options(allowed), needs=None, methods=("OPTIONS",)))
    return found


def options(allowed: str) -> Endpoint:
    async def respond(request: Request) -> Response:
        return Response(headers={"allow": allowed})

    return respond


def answering(endpoint: Endpoint, forward: Forward) -> Endpoint:
    async def respond(request: Request) -> Response:
        try:
            accepted(request.headers.get("accept"), JSON)
            try:
                return await endpoint(request)
            except Elsewhere as elsewhere:
                return await forward(request, elsewhere.url)
        except Exception as error:
            refused = error if isinstance(error, ApiError) else converted(error)
            if refused is None:
                raise
            raise refused from error

    return respond


def converted(error: Exception) -> ApiError | None:
    if isinstance(error, Refused):
        return ApiError(error.status, error.status, error.message)
    if isinstance(error, ConfigError):
        return ApiError(500, 500, error.message)
    return None


def error_form(error: ApiError) -> dict[str, Any]:
    """Connect's body of errors; the frame's texts are cut to those that clients know."""
    message = error.message
    for code in (404, 405, 406, 415):
        if error.status == code and message.startswith(f"HTTP {code}"):
            message = message.partition(":")[0]
    return {"error_code": error.code, "message": message}
