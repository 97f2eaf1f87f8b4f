"""Metrics that clients push, on the broker's own page: a receiver to name in `metric.reporters`
(`barnabas.broker.metrics.client_metrics:ClientMetrics`).

In: payloads of clients. Out: one gauge for each client and metric with the newest value; deltas are added up.
A bounded number of clients is kept: those that pushed last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics import otlp

if TYPE_CHECKING:
    from barnabas.broker.metrics import Metrics
    from barnabas.broker.metrics.telemetry import TelemetryClient

CLIENTS_MAX = 1_000
SERIES_MAX = 1_000  # of one client

Series = tuple[str, otlp.Attributes]


class ClientMetrics:
    def __init__(self) -> None:
        self._clients: dict[str, tuple[TelemetryClient, dict[Series, float]]] = {}

    def attach(self, metrics: Metrics) -> None:
        metrics.gauges(
            "barnabas", "client-metrics", "value", "Metrics that clients pushed (KIP-714).", self.rows
        )

    def export_metrics(self, client: TelemetryClient, payload: bytes) -> None:
        _, values = self._clients.pop(client.instance_id, (client, {}))
        self._clients[client.instance_id] = client, values
        while len(self._clients) > CLIENTS_MAX:
            self._clients.pop(next(iter(self._clients)))
        for point in otlp.points(payload):
            series = point.name, point.attributes
            if series not in values and len(values) >= SERIES_MAX:
                continue
            values[series] = values.get(series, 0.0) + point.value if point.is_delta else point.value

    def rows(self) -> list[tuple[dict[str, str], float]]:
        return [
            (
                {
                    **{name.replace("-", "_").replace(".", "_"): text for name, text in attributes},
                    "metric": name,
                    "client_id": client.client_id,
                    "client_instance_id": client.instance_id,
                    "client_software_name": client.software_name,
                },
                value,
            )
            for client, values in self._clients.values()
            for (name, attributes), value in values.items()
        ]
