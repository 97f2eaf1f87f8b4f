"""The audit as a service over HTTP.

GET /            the last report as a page
GET /report      the same as JSON; ?topic=, ?from=TIER&to=TIER compares two tiers
GET /alarms      alarms that hold now, as JSON
GET /alarms/stream  changes of alarms as JSON lines, for as long as the caller listens
GET /metrics     for Prometheus

In: settings of the service `audit`. Out: a `Service` of the frame. Does not know: sockets, callers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from barnabas.audit.core.report import alarm, make_report
from barnabas.audit.report.auditor import Auditor
from barnabas.audit.report.metrics import AuditCollector
from barnabas.audit.report.page import page
from barnabas.audit.report.rules_file import read_rules
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.security.clients.client_security import client_security
from barnabas.services.app import Service
from barnabas.services.errors import ApiError
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.routes import Need, ServiceRoute
from barnabas.services.settings.client_properties import plain_client
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings import SettingsError

NAME = "audit"
PAGE_REFRESH_S = 60


def service(settings: ServiceSettings) -> Service:
    properties = plain_client(settings)
    try:
        bootstrap = parse_bootstrap(properties["bootstrap.servers"])
        rules = read_rules(settings["rules.file"]) if settings["rules.file"] else None
    except (ValueError, OSError) as error:
        raise SettingsError(str(error)) from None
    cluster = Cluster(bootstrap, client_id="barnabas-audit", security=client_security(properties))
    auditor = Auditor(cluster, settings["audit.topic"], rules, history_ms=settings["history.ms"])
    return AuditService(auditor, settings["report.interval.ms"] / 1000).service()


class AuditService:
    def __init__(self, auditor: Auditor, interval_s: float) -> None:
        self._auditor = auditor
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None
        self._service: Service | None = None

    def service(self) -> Service:
        metrics = ServiceMetrics(NAME)
        metrics.registry.register(AuditCollector(self._auditor))
        routes = [
            ServiceRoute("/", self._page, needs=Need.READ),
            ServiceRoute("/report", self._report, needs=Need.READ),
            ServiceRoute("/alarms", self._alarms, needs=Need.READ),
            ServiceRoute("/alarms/stream", self._stream, needs=Need.READ, is_stream=True),
        ]
        self._service = Service(NAME, routes, self._start, self._stop, self._why_not_ready, metrics=metrics)
        return self._service

    async def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._auditor.run(self._interval_s))

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._auditor.close()
        await self._auditor.cluster.close()

    def _why_not_ready(self) -> str | None:
        return self._auditor.why_not_ready(self._interval_s)

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(page(self._auditor.last, PAGE_REFRESH_S))

    async def _report(self, request: Request) -> Response:
        last = self._auditor.last
        if last is None:
            raise ApiError(503, 50301, "the first report is being made: ask again in a moment")
        topic = request.query_params.get("topic")
        first, second = (request.query_params.get(name) for name in ("from", "to"))
        if (first is None) != (second is None):
            raise ApiError(400, 40001, "from and to are two tiers to compare: give both or none")
        if topic is not None or first is not None:
            between = None if first is None or second is None else (first, second)
            last = make_report(
                self._auditor.ledger, self._auditor.rules, last.time_ms, topic=topic, between=between
            )
        return JSONResponse(last.to_json())

    async def _alarms(self, request: Request) -> Response:
        last = self._auditor.last
        return JSONResponse({"alarms": [alarm(row) for row in last.alarms] if last is not None else []})

    async def _stream(self, request: Request) -> Response:
        assert self._service is not None
        return StreamingResponse(self._changes(self._service.stopping), media_type="application/x-ndjson")

    async def _changes(self, stopping: asyncio.Event) -> AsyncIterator[str]:
        changes = self._auditor.alarms()
        stop = asyncio.ensure_future(stopping.wait())
        try:
            while True:
                coming = asyncio.ensure_future(anext(changes))
                await asyncio.wait((coming, stop), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await coming
                    return
                change = coming.result()
                body = {**alarm(change.row), "is_over": change.is_over, "revision": change.revision}
                yield json.dumps(body) + "\n"
        finally:
            stop.cancel()
            await changes.aclose()  # type: ignore[attr-defined]
