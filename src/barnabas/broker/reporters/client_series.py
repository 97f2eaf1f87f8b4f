"""Metrics that clients pushed (KIP-714), as samples for reporters.

In: payloads of clients, from the loop. Out: samples with the newest values. A thread parses the payloads; the
bytes that wait for it are bounded, and what exceeds the bound is dropped. Does not know: requests,
subscriptions.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from barnabas.broker.metrics.client_store import ClientStore
from barnabas.broker.reporters.courier import Courier
from barnabas.metrics.samples import Kind, Metric, Sample, Tags

if TYPE_CHECKING:
    from barnabas.broker.metrics.telemetry import TelemetryClient

log = logging.getLogger("barnabas.reporters")
PAYLOADS_MAX = 1_024
BYTES_MAX = 32 * 1024 * 1024
HELP = "A metric that clients pushed."


class ClientSeries:
    """A receiver of clients' metrics."""

    def __init__(self) -> None:
        self._courier = Courier("client-metrics", queue_max=PAYLOADS_MAX)
        self._store = ClientStore()
        self._lock = threading.Lock()
        self._bytes_waiting = 0

    def export_metrics(self, client: TelemetryClient, payload: bytes) -> None:
        with self._lock:
            if self._bytes_waiting + len(payload) > BYTES_MAX:
                return
            self._bytes_waiting += len(payload)
        if not self._courier.send(lambda: self._parse(client, payload)):
            self._parsed(payload)

    def _parse(self, client: TelemetryClient, payload: bytes) -> None:
        try:
            self._store.put(client, payload)
        except ValueError as error:
            log.warning("metrics of the client %s cannot be read: %s", client.client_id, error)
        finally:
            self._parsed(payload)

    def _parsed(self, payload: bytes) -> None:
        with self._lock:
            self._bytes_waiting -= len(payload)

    def samples(self) -> list[Sample]:
        """Called in a reporter's thread."""
        metrics: dict[tuple[str, bool], Metric] = {}
        samples = []
        for client, values in self._store.values():
            own = tags_of(client)
            for (name, attributes, is_counter), value in values.items():
                metric = metrics.get((name, is_counter))
                if metric is None:
                    kind = Kind.COUNTER if is_counter else Kind.GAUGE
                    metric = metrics[name, is_counter] = Metric(name, "", "", "", kind, HELP)
                samples.append(Sample(metric, (*own, *attributes), value))
        return samples

    def close(self) -> None:
        self._courier.close(None, 0.0)


def tags_of(client: TelemetryClient) -> Tags:
    return (
        ("client_id", client.client_id),
        ("client_instance_id", client.instance_id),
        ("client_software_name", client.software_name),
    )
