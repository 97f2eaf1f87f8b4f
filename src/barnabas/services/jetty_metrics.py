"""Metrics of requests and connections under the names of Confluent's services, which Jetty and Jersey give.

In: requests that ended, counts of connections. Out: families `PREFIX_jersey_metrics_*` and
`PREFIX_jetty_metrics_*`, as Confluent's rules for the JMX exporter call them, so that their dashboards show
data. A service has one event loop and no pool of threads: busy threads are requests that run, and the usage
of the pool is their share of the limit. Does not know: routes, HTTP.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from barnabas.metrics.growth import Growth
from barnabas.metrics.histogram import Histogram

ROTATE_S = 60.0
ERRORS_FROM = 400
MICROSECONDS = 1_000_000
PERCENTILES = {"95thPercentile": "95", "99thPercentile": "99", "999thPercentile": "99_9"}
Endpoint = tuple[str, str]  # method, template of the path


def none() -> int:
    return 0


@dataclass(slots=True)
class ConnectionCounts:
    """The listener counts `opened`, and tells how many are open."""

    opened: int = 0
    open: Callable[[], int] = none


@dataclass(slots=True)
class RequestCounts:
    requests: int = 0
    errors: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    microseconds: Histogram = field(default_factory=Histogram)

    def add(self, status: int, seconds: float, received: int, sent: int) -> None:
        self.requests += 1
        self.errors += status >= ERRORS_FROM
        self.bytes_received += received
        self.bytes_sent += sent
        self.microseconds.observe(int(seconds * MICROSECONDS))

    def growing(self) -> dict[str, float]:
        """Counts that only grow, by the names of their rates."""
        return {
            "request": self.requests,
            "response": self.requests,
            "request_error": self.errors,
            "request_byte": self.bytes_received,
            "response_byte": self.bytes_sent,
        }


class JettyMetrics(Collector):
    """`endpoints`: names of endpoints that are measured alone, as Confluent names them."""

    def __init__(
        self,
        prefix: str,
        connections: ConnectionCounts,
        running: Callable[[], float],
        endpoints: Mapping[Endpoint, str],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = prefix
        self._connections = connections
        self._running = running
        self._now_s = now_s
        self._names = endpoints
        self._counts = {name: RequestCounts() for name in ("", *endpoints.values())}
        self._growth = {name: Growth(counts.growing(), now_s()) for name, counts in self._counts.items()}
        self._connection_growth = Growth(self._connection_counts(), now_s())
        self._rotated_s = now_s()
        self.requests_max = 0

    def ended(
        self, method: str, template: str, status: int, seconds: float, received: int, sent: int
    ) -> None:
        now_s = self._now_s()
        if now_s - self._rotated_s >= ROTATE_S:
            self._rotated_s = now_s
            for each in self._counts.values():
                each.microseconds.rotate()
        self._counts[""].add(status, seconds, received, sent)
        name = self._names.get((method, template))
        if name is not None:
            self._counts[name].add(status, seconds, received, sent)

    def _connection_counts(self) -> dict[str, float]:
        opened = self._connections.opened
        return {"opened": opened, "accepted": opened, "closed": opened - self._connections.open()}

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._jetty()
        for name, counts in self._counts.items():
            yield from self._jersey(re.sub(r"\W", "_", f"{name}_" if name else ""), name, counts)

    def _jetty(self) -> Iterator[Metric]:
        running = self._running()
        usage = running / self.requests_max if self.requests_max else 0.0
        yield self._gauge("jetty", "connections_active", self._connections.open())
        yield self._gauge("jetty", "busy_thread_count", running)
        yield self._gauge("jetty", "thread_pool_usage", usage)
        yield self._gauge("jetty", "request_queue_size", 0)  # requests beyond the limit are refused
        rates = self._connection_growth.rates(self._connection_counts(), self._now_s())
        for name, rate in rates.items():
            yield self._gauge("jetty", f"connections_{name}_rate", rate)

    def _jersey(self, word: str, name: str, counts: RequestCounts) -> Iterator[Metric]:
        for event, rate in self._growth[name].rates(counts.growing(), self._now_s()).items():
            yield self._gauge("jersey", f"{word}{event}_rate", rate)
        yield self._gauge("jersey", f"{word}request_count", counts.requests)
        yield self._gauge("jersey", f"{word}request_error_count", counts.errors)
        found = counts.microseconds.snapshot(1000)  # shown in milliseconds
        yield self._gauge("jersey", f"{word}request_latency_avg", found.mean)
        yield self._gauge("jersey", f"{word}request_latency_max", found.max)
        attributes = found.attributes()
        for attribute, text in PERCENTILES.items():
            yield self._gauge("jersey", f"{word}request_latency_{text}", attributes[attribute])

    def _gauge(self, type: str, name: str, value: float) -> Metric:
        text = f"{name.replace('_', '-')} of {type}-metrics."
        return GaugeMetricFamily(f"{self._prefix}_{type}_metrics_{name}", text, value=value)
