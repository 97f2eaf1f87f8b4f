"""Metrics that clients push, on the broker's own page: a receiver to name in `metric.reporters`
(`barnabas.broker.metrics.client_metrics:ClientMetrics`).

In: payloads of clients. Out: one gauge for each client and metric with the newest value. Does not know: how
values are kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from barnabas.broker.metrics.client_store import ClientStore

if TYPE_CHECKING:
    from barnabas.broker.metrics import Metrics
    from barnabas.broker.metrics.otlp import Attributes
    from barnabas.broker.metrics.telemetry import TelemetryClient


class ClientMetrics:
    may_run_in_thread = True  # reading a payload takes up to a tenth of a second

    def __init__(self) -> None:
        self._store = ClientStore()

    def attach(self, metrics: Metrics) -> None:
        metrics.gauges(
            "barnabas", "client-metrics", "value", "Metrics that clients pushed (KIP-714).", self.rows
        )

    def export_metrics(self, client: TelemetryClient, payload: bytes) -> None:
        self._store.put(client, payload)

    def rows(self) -> list[tuple[dict[str, str], float]]:
        """Each set of labels once: two values of a client may differ only in what no label tells."""
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for client, values in self._store.values():
            for (name, attributes, _), value in values.items():
                labels = {
                    **labels_of(attributes),
                    "metric": name,
                    "client_id": client.client_id,
                    "client_instance_id": client.instance_id,
                    "client_software_name": client.software_name,
                }
                found[tuple(sorted(labels.items()))] = value
        return [(dict(labels), value) for labels, value in found.items()]


def labels_of(attributes: Attributes) -> dict[str, str]:
    """Attributes under names that Prometheus takes: it refuses a page with a wrong one, or with one twice."""
    found: dict[str, str] = {}
    for name, text in attributes:
        plain = re.sub(r"[^a-z0-9]", "_", name.lower()).lstrip("_")
        if not plain[:1].isalpha():
            plain = f"attribute_{plain}"
        found.setdefault(plain, text)
    return found
