"""GET /metrics: lag in the names of the exporters that a setting or the query asks for.

In: `Watches`. Out: a route. `?dialect=kminion` (several by commas or repeated) asks for other names than the
setting does, `?cluster=NAME` for one cluster. The page is made in pieces of a millisecond and sent in chunks.
Does not know: the names themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from prometheus_client import generate_latest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from barnabas import __version__
from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag_metrics import burrow, kafka_exporter, kminion, lag_exporter, opentelemetry, own
from barnabas.monitor.lag_metrics.page import Page
from barnabas.monitor.lag_service.cluster_watch import extras_of
from barnabas.monitor.lag_service.probe import Probes
from barnabas.monitor.lag_service.watches import Watches
from barnabas.services.errors import ApiError
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.routes import Need, ServiceRoute

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
KNOWN = ("burrow", "kafka_exporter", "kminion", "lag_exporter", "opentelemetry", "own")
# Both have kafka_brokers and kafka_topic_partitions with the same labels: on one page each has one family.


@dataclass(frozen=True, slots=True)
class Dialects:
    names: tuple[str, ...] = ("burrow", "own")
    kminion_prefix: str = "kminion"


class MetricsApi:
    def __init__(self, watches: Watches, dialects: Dialects, probes: Probes, metrics: ServiceMetrics) -> None:
        self._watches = watches
        self._dialects = dialects
        self._probes = probes
        self._metrics = metrics

    def routes(self) -> list[ServiceRoute]:
        return [ServiceRoute("/metrics", self._page, needs=Need.READ, is_stream=True)]

    async def _page(self, request: Request) -> Response:
        asked = request.query_params.getlist("dialect")
        names = [each for text in asked for each in text.split(",")] if asked else self._dialects.names
        for name in names:
            if name not in KNOWN:
                raise ApiError(400, 40002, f"the dialect {name!r} is none of {', '.join(KNOWN)}")
        wanted = request.query_params.get("cluster")
        if wanted is not None and wanted not in self._watches.by_name:
            raise ApiError(404, 40401, f"the cluster {wanted!r} is not watched: /v1/clusters lists them")
        clusters = [each for each in self._watches.clusters if wanted in (None, each.name)]
        page = Page()
        await self._watches.in_pieces(self._write(page, list(dict.fromkeys(names)), clusters))
        rest = b""
        if "kminion" in names:
            rest += self._probes.text()
        if "own" in names:
            rest += generate_latest(self._metrics.registry)
        return StreamingResponse(chunks(page, rest), media_type=CONTENT_TYPE)

    def _write(self, page: Page, names: Sequence[str], clusters: Sequence[ClusterLag]) -> Steps[None]:
        now_ms = self._watches.now_ms()
        watches = self._watches.by_name
        for name in names:
            match name:
                case "burrow":
                    yield from burrow.write(page, clusters, now_ms)
                case "kafka_exporter":
                    yield from kafka_exporter.write(page, clusters, now_ms)
                case "kminion":
                    prefix = self._dialects.kminion_prefix
                    yield from kminion.write(page, clusters, extras_of(watches), __version__, prefix)
                case "lag_exporter":
                    poll_ms = {each.lag.name: each.poll_ms for each in watches.values()}
                    yield from lag_exporter.write(page, clusters, poll_ms, now_ms)
                case "opentelemetry":
                    # kafka_exporter has two families of the same names and labels: they are written once.
                    if "kafka_exporter" not in names:
                        yield from opentelemetry.write(page, clusters, now_ms)
                case "own":
                    yield from own.write(page, clusters, now_ms)


async def chunks(page: Page, rest: bytes) -> AsyncIterator[bytes]:
    for chunk in page.chunks():
        yield chunk.encode()
        await asyncio.sleep(0)
    if rest:
        yield rest
