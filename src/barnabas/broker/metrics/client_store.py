"""The newest values of metrics that clients push, of a bounded number of clients and series.

In: payloads of clients. Out: values by client and series; deltas are added up. The clients that pushed last
are kept. May be used from several threads. Does not know: requests, names for Prometheus.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from barnabas.broker.metrics import otlp

if TYPE_CHECKING:
    from barnabas.broker.metrics.telemetry import TelemetryClient

CLIENTS_MAX = 1_000
SERIES_MAX = 1_000  # of one client

Series = tuple[str, otlp.Attributes, bool]  # the name, and whether it only grows


class ClientStore:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, tuple[TelemetryClient, dict[Series, float]]] = {}

    def put(self, client: TelemetryClient, payload: bytes) -> None:
        """ValueError: the payload is malformed."""
        points = list(otlp.points(payload))
        with self._lock:
            _, values = self._clients.pop(client.instance_id, (client, {}))
            self._clients[client.instance_id] = client, values
            while len(self._clients) > CLIENTS_MAX:
                self._clients.pop(next(iter(self._clients)))
            for point in points:
                series = point.name, point.attributes, point.is_monotonic
                if series in values or len(values) < SERIES_MAX:
                    values[series] = values.get(series, 0.0) + point.value if point.is_delta else point.value

    def values(self) -> list[tuple[TelemetryClient, dict[Series, float]]]:
        with self._lock:
            return [(client, dict(values)) for client, values in self._clients.values()]
