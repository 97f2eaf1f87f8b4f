"""Burrow's HTTP API v3: clusters, topics, consumers, and their status.

In: `Watches`. Out: routes with Burrow's bodies, messages and statuses. Does not know: the endpoints below
`/v3/config` and `/v3/admin`.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from barnabas.monitor.lag.statuses import is_found, status_of
from barnabas.monitor.lag.topics import UNKNOWN
from barnabas.monitor.lag_service.burrow_json import detail_json, group_json, not_found_json
from barnabas.monitor.lag_service.watches import Watches
from barnabas.services.routes import Need, ServiceRoute

HOST = socket.gethostname()
CLUSTER, GROUP = "/v3/kafka/{cluster}", "/v3/kafka/{cluster}/consumer/{consumer}"


def respond(
    request: Request, message: str, body: Mapping[str, Any] | None = None, status: int = 200
) -> JSONResponse:
    """A body with the fields that all of Burrow's have."""
    where = {"url": request.url.path, "host": HOST}
    content = {"error": False, "message": message, **(body or {}), "request": where}
    return JSONResponse(content, status)


def refusal(request: Request, message: str, status: int = 404) -> JSONResponse:
    where = {"url": request.url.path, "host": HOST}
    return JSONResponse({"error": True, "message": message, "request": where}, status)


class BurrowApi:
    def __init__(self, watches: Watches) -> None:
        self._watches = watches

    def routes(self) -> list[ServiceRoute]:
        def get(path: str, endpoint: Any, needs: Need | None = Need.READ) -> ServiceRoute:
            return ServiceRoute(path, endpoint, needs=needs)

        return [
            get("/burrow/admin", self._alive, None),
            get("/burrow/admin/ready", self._ready, None),
            get("/v3/kafka", self._clusters),
            get(f"{CLUSTER}/topic", self._topics),
            get(f"{CLUSTER}/topic/{{topic}}", self._topic),
            get(f"{CLUSTER}/topic/{{topic}}/consumers", self._consumers_of),
            get(f"{CLUSTER}/consumer", self._consumers),
            get(GROUP, self._consumer),
            get(f"{GROUP}/status", self._status),
            get(f"{GROUP}/lag", self._lag),
            ServiceRoute(GROUP, self._forget, needs=Need.ADMIN, methods=["DELETE"]),
            ServiceRoute(f"{GROUP}/topic/{{topic}}", self._forget, needs=Need.ADMIN, methods=["DELETE"]),
        ]

    async def _alive(self, request: Request) -> Response:
        return PlainTextResponse("GOOD")

    async def _ready(self, request: Request) -> Response:
        is_ready = self._watches.why_not_ready() is None
        return PlainTextResponse("READY") if is_ready else PlainTextResponse("STARTING", 503)

    async def _clusters(self, request: Request) -> Response:
        return respond(request, "cluster list returned", {"clusters": sorted(self._watches.by_name)})

    async def _topics(self, request: Request) -> Response:
        watch = self._watches.by_name.get(request.path_params["cluster"])
        if watch is None:
            return refusal(request, "cluster not found")
        topics = sorted(topic.name for topic in watch.lag.topics.values() if topic.is_known)
        return respond(request, "topic list returned", {"topics": topics})

    async def _topic(self, request: Request) -> Response:
        watch = self._watches.by_name.get(request.path_params["cluster"])
        topic = watch.lag.topics.get(request.path_params["topic"]) if watch is not None else None
        if topic is None:
            return refusal(request, "cluster or topic not found")
        ends = [each.end for each in topic.partitions if each.end != UNKNOWN]
        return respond(request, "topic offsets returned", {"offsets": ends})

    async def _consumers_of(self, request: Request) -> Response:
        watch = self._watches.by_name.get(request.path_params["cluster"])
        if watch is None:
            return refusal(request, "cluster not found")
        topic = request.path_params["topic"]
        found = sorted(each.group_id for each in watch.lag.groups.values() if topic in each.topics)
        return respond(request, "consumers of topic returned", {"consumers": found})

    async def _consumers(self, request: Request) -> Response:
        watch = self._watches.by_name.get(request.path_params["cluster"])
        if watch is None:
            return refusal(request, "cluster not found")
        return respond(request, "consumer list returned", {"consumers": sorted(watch.lag.groups)})

    async def _consumer(self, request: Request) -> Response:
        found = self._watches.group(request.path_params["cluster"], request.path_params["consumer"])
        if found is None or not is_found(*found, self._watches.now_ms()):
            return refusal(request, "cluster or consumer not found")
        return respond(request, "consumer detail returned", {"topics": detail_json(*found)})

    async def _status(self, request: Request) -> Response:
        return await self._judged(request, only_bad=True)

    async def _lag(self, request: Request) -> Response:
        return await self._judged(request, only_bad=False)

    async def _judged(self, request: Request, *, only_bad: bool) -> Response:
        cluster, group = request.path_params["cluster"], request.path_params["consumer"]
        found = self._watches.group(cluster, group)
        now_ms = self._watches.now_ms()
        message = "consumer status returned"
        if found is None or not is_found(*found, now_ms):
            return respond(request, message, {"status": not_found_json(cluster, group)}, 404)
        status = await self._watches.in_pieces(status_of(*found, now_ms))
        return respond(request, message, {"status": group_json(status, only_bad=only_bad)})

    async def _forget(self, request: Request) -> Response:
        """Forget a group, or what it committed to a topic. Its next commit brings it back."""
        watch = self._watches.by_name.get(request.path_params["cluster"])
        group, topic = request.path_params["consumer"], request.path_params.get("topic")
        if watch is not None and topic is not None:
            watch.lag.remove_commits(group, topic)
        elif watch is not None:
            watch.lag.remove_group(group)
        return respond(request, "consumer group removed")
