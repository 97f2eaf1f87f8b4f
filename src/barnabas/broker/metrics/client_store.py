"""The newest values of metrics that clients push, of a bounded number of clients and series.

In: payloads of clients. Out: values by client and series; deltas are added up. The clients that pushed last
are kept; a client that missed several pushes is forgotten, one that ended soon after its last. May be used
from several threads. Does not know: requests, names for Prometheus.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from barnabas.broker.metrics import otlp

if TYPE_CHECKING:
    from barnabas.broker.metrics.telemetry import TelemetryClient

CLIENTS_MAX = 1_000
SERIES_MAX = 1_000  # of one client
MISSED_PUSHES = 3  # then a client is gone
LAST_VALUES_S = 120.0  # that values stay at least: each scrape should see the last ones
MS_A_SECOND = 1000

Series = tuple[str, otlp.Attributes, bool]  # the name, and whether it only grows


class ClientStore:
    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._clients: dict[str, tuple[TelemetryClient, dict[Series, float], float]] = {}  # until when

    def put(self, client: TelemetryClient, payload: bytes) -> None:
        """ValueError: the payload is malformed."""
        points = list(otlp.points(payload))
        silence_s = 0 if client.is_terminating else MISSED_PUSHES * client.push_interval_ms / MS_A_SECOND
        until_s = self._now_s() + max(silence_s, LAST_VALUES_S)
        with self._lock:
            self._forget()
            _, values, _ = self._clients.pop(client.instance_id, (client, {}, 0.0))
            self._clients[client.instance_id] = client, values, until_s
            while len(self._clients) > CLIENTS_MAX:
                self._clients.pop(next(iter(self._clients)))
            for point in points:
                series = point.name, point.attributes, point.is_monotonic
                if series in values or len(values) < SERIES_MAX:
                    values[series] = values.get(series, 0.0) + point.value if point.is_delta else point.value

    def values(self) -> list[tuple[TelemetryClient, dict[Series, float]]]:
        with self._lock:
            self._forget()
            return [(client, dict(values)) for client, values, _ in self._clients.values()]

    def _forget(self) -> None:
        now_s = self._now_s()
        for instance_id in [each for each, (_, _, until_s) in self._clients.items() if until_s < now_s]:
            del self._clients[instance_id]
