"""Metrics of the clients of a worker: its own, and those of its tasks.

In: what clients have sent and received. Out: beans of Kafka's clients: connections, bytes, requests. Rates
are those of the last half minute, between scrapes. Does not know: names of metrics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from barnabas.client.core.traffic import Traffic
from barnabas.connect.api.metric_names import CONNECT, Bean
from barnabas.metrics.growth import Growth

TYPES = {  # by kind of client
    "worker": (CONNECT, "connect-metrics"),
    "consumer": ("kafka.consumer", "consumer-metrics"),
    "producer": ("kafka.producer", "producer-metrics"),
    "admin": ("kafka.admin.client", "admin-client-metrics"),
}
COUNTS: dict[str, Callable[[Traffic], float]] = {
    "connection-creation": lambda each: each.connections_made,
    "incoming-byte": lambda each: each.bytes_received,
    "outgoing-byte": lambda each: each.bytes_sent,
    "request": lambda each: each.requests,
    "response": lambda each: each.responses,
    "network-io": lambda each: each.requests + each.responses,
    "failed-authentication": lambda each: each.logins_failed,
}
LOGINS = "successful-authentication"


@dataclass(frozen=True, slots=True)
class Client:
    """`logs_in`: whether each connection begins with a login."""

    kind: str
    client_id: str
    traffic: Traffic
    logs_in: bool = False

    def counts(self) -> dict[str, float]:
        found = {name: float(count(self.traffic)) for name, count in COUNTS.items()}
        return found | {LOGINS: float(self.traffic.connections_made) if self.logs_in else 0.0}


class ClientMetrics:
    def __init__(
        self, clients: Callable[[], list[Client]], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._clients = clients
        self._now_s = now_s
        self._growth: dict[tuple[str, str], Growth] = {}

    def beans(self) -> Iterator[Bean]:
        clients = {(each.kind, each.client_id): each for each in self._clients()}
        now_s = self._now_s()
        self._growth = {key: each for key, each in self._growth.items() if key in clients}
        for key, each in clients.items():
            domain, type = TYPES[each.kind]
            labels = {"client-id": each.client_id}
            counts = each.counts()
            growth = self._growth.setdefault(key, Growth(counts, now_s))
            yield Bean(type, "connection-count", [(labels, each.traffic.connections)], domain)
            for name, rate in growth.rates(counts, now_s).items():
                yield Bean(type, f"{name}-total", [(labels, counts[name])], domain)
                yield Bean(type, f"{name}-rate", [(labels, rate)], domain)
