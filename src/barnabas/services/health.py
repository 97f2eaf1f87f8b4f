"""Routes that every service has: its health, and its metrics.

GET /health, /health/live   200 while the process responds
GET /health/ready           200 if the service can work, else 503 with the reason
GET /metrics                for Prometheus
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas.services.metrics import CONTENT_TYPE, ServiceMetrics
from barnabas.services.routes import Need, ServiceRoute

Readiness = Callable[[], str | None]


def health_routes(name: str, why_not_ready: Readiness, metrics: ServiceMetrics) -> list[ServiceRoute]:
    async def live(request: Request) -> Response:
        return JSONResponse({"status": "up", "service": name})

    async def ready(request: Request) -> Response:
        reason = why_not_ready()
        if reason is None:
            return JSONResponse({"status": "ready", "service": name})
        return JSONResponse(
            {"status": "not ready", "service": name, "reason": reason}, 503, headers={"retry-after": "1"}
        )

    async def measured(request: Request) -> Response:
        return Response(metrics.text(request.query_params), headers={"content-type": CONTENT_TYPE})

    return [
        ServiceRoute("/health", live, needs=None),
        ServiceRoute("/health/live", live, needs=None),
        ServiceRoute("/health/ready", ready, needs=None),
        ServiceRoute("/metrics", measured, needs=Need.READ),
    ]
