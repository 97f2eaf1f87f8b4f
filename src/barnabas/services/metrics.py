"""Metrics of a service, for Prometheus.

In: requests that ended. Out: the text of `/metrics`. Labels are bounded: templates of routes, known methods,
statuses. A service puts metrics of its own into `registry`. Does not know: HTTP's bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from barnabas.services.jetty_metrics import ConnectionCounts, Endpoint, JettyMetrics

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})
BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
CONTENT_TYPE = CONTENT_TYPE_LATEST
NO_QUERY: Mapping[str, str] = MappingProxyType({})


class ServiceMetrics:
    def __init__(
        self, service: str, jetty: str = "", endpoints: Mapping[Endpoint, str] = MappingProxyType({})
    ) -> None:
        """`jetty`: the prefix of the names that Confluent's service of this kind has; `endpoints`: which of
        its endpoints are measured alone, under which names."""
        self.registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        labels = ("service", "route", "method")
        self._service = service
        self._requests = Counter(
            "barnabas_http_requests", "Requests that ended.", (*labels, "status"), registry=registry
        )
        self._seconds = Histogram(
            "barnabas_http_request_seconds", "Time of requests.", labels, buckets=BUCKETS_S, registry=registry
        )
        self._received = Counter(
            "barnabas_http_received_bytes", "Bytes of bodies.", ("service",), registry=registry
        )
        self._sent = Counter(
            "barnabas_http_sent_bytes", "Bytes of responses.", ("service",), registry=registry
        )
        self._bytes = self._received.labels(service), self._sent.labels(service)
        self._active = Gauge(
            "barnabas_http_requests_active", "Requests now.", ("service",), registry=registry
        )
        self.active = self._active.labels(service)
        self.connections = ConnectionCounts()
        open_ones = Gauge("barnabas_http_connections", "Open connections.", ("service",), registry=registry)
        open_ones.labels(service).set_function(lambda: self.connections.open())
        self.jetty: JettyMetrics | None = None
        if jetty:
            self.jetty = JettyMetrics(jetty, self.connections, self.running, endpoints)
            registry.register(self.jetty)
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def running(self) -> float:
        """How many requests run now."""
        (sample, *_) = next(iter(self._active.collect())).samples
        return sample.value

    def ended(
        self, template: str, method: str, status: int, seconds: float, received: int, sent: int
    ) -> None:
        key = (template, method, status)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._children(*key)
        found[0].inc()
        found[1].observe(seconds)
        if received:
            self._bytes[0].inc(received)
        if sent:
            self._bytes[1].inc(sent)
        if self.jetty is not None:
            self.jetty.ended(method, template, status, seconds, received, sent)

    def _children(self, template: str, method: str, status: int) -> tuple[Counter, Histogram]:
        return (
            self._requests.labels(self._service, template, method, str(status)),
            self._seconds.labels(self._service, template, method),
        )

    def text(self, query: Mapping[str, str] = NO_QUERY) -> bytes:
        """The page. `query`: parameters of the URL, for services that have several."""
        return generate_latest(self.registry)
