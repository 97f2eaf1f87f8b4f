"""Requests between workers: those of callers that the leader or an owner carries out, and signed ones.

In: requests, URLs of workers. Out: responses of other workers as they are. A request travels at most twice:
the parameter `forward` marks each hop.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping

import httpx
from starlette.requests import Request
from starlette.responses import Response

from barnabas.connect.herder.distributed.herder import DistributedHerder
from barnabas.connect.herder.distributed.signing import ALGORITHM, SIGNATURE, check
from barnabas.connect.herder.errors import Refused
from barnabas.services.errors import ApiError
from barnabas.services.routes import ServiceRoute

SENT_ALONG = ("content-type", "accept", "authorization", SIGNATURE, ALGORITHM)
SENT_BACK = ("content-type", "location", "www-authenticate")
TIMEOUT_S, CONNECT_TIMEOUT_S = 90.0, 10.0
HOPS = {None: "true", "true": "false"}
AWAY = (
    "Cannot complete request momentarily due to no connection to the worker {}, likely because it ended and "
    "a rebalance is expected."
)
CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"


class Messenger:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._client = httpx.AsyncClient(
            verify=tls or True,
            timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def forward(self, request: Request, url: str) -> Response:
        """Send a caller's request to another worker."""
        hop = request.query_params.get("forward")
        if hop not in HOPS:
            raise ApiError(409, 409, CONFLICT)
        raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
        target = httpx.URL(url.rstrip("/") + raw.decode("latin-1"))
        kept = [(name, value) for name, value in request.query_params.multi_items() if name != "forward"]
        headers = {name: request.headers[name] for name in SENT_ALONG if name in request.headers}
        try:
            found = await self._client.request(
                request.method,
                target,
                params=[*kept, ("forward", HOPS[hop])],
                headers=headers,
                content=await request.body(),
            )
        except (httpx.ConnectError, httpx.ConnectTimeout):  # nothing was sent: the caller may try again
            raise ApiError(409, 409, AWAY.format(url)) from None
        except httpx.HTTPError as error:
            raise ApiError(
                500, 500, f"IO Error trying to forward REST request to {url}: {error or type(error).__name__}"
            ) from error
        back = {name: found.headers[name] for name in SENT_BACK if name in found.headers}
        return Response(found.content, found.status_code, back)

    async def send(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> None:
        """Ask the leader for something; Refused if it does not do it."""
        headers = {**headers, "content-type": "application/json"}
        try:
            found = await self._client.request(method, url, content=body, headers=headers)
        except httpx.HTTPError as error:
            raise Refused(
                500, f"the leader at {url} cannot be reached: {error or type(error).__name__}"
            ) from error
        if found.status_code >= 300:
            raise Refused(found.status_code, f"the leader refused {method} {url}: {found.text[:500]}")


def internal_routes(herder: DistributedHerder, worker: Mapping[str, str]) -> tuple[ServiceRoute, ...]:
    """Endpoints for other workers. They are signed, so they need no caller's name."""
    allowed = tuple(
        each.strip() for each in worker.get("inter.worker.verification.algorithms", "HmacSHA256").split(",")
    )
    is_signed = worker.get("connect.protocol", "sessioned").lower() == "sessioned"

    async def tasks(request: Request) -> Response:
        body = await request.body()
        if is_signed:
            check(herder.state.session_key, request.headers, body, allowed)
        if not herder.is_leader:
            raise Refused(409, CONFLICT)
        found = json.loads(body)
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise ApiError(400, 400, "the body must be a list of task configurations")
        configs = [{str(key): str(value) for key, value in each.items()} for each in found]
        await herder.publish_tasks(request.path_params["name"], configs)
        return Response(status_code=200)

    async def fence(request: Request) -> Response:
        if is_signed:
            check(herder.state.session_key, request.headers, await request.body(), allowed)
        if not herder.is_leader:
            raise Refused(409, CONFLICT)
        await herder.fence(request.path_params["name"])
        return Response(status_code=200)

    return (
        ServiceRoute("/connectors/{name}/tasks", tasks, needs=None, methods=("POST",)),
        ServiceRoute("/connectors/{name}/fence", fence, needs=None, methods=("PUT",)),
    )
