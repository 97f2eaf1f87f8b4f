"""Counts of the connections of a cluster's client: bytes, requests, logins.

In: connections, open or lost. Out: `Traffic`, as Kafka's clients count it. Numbers may be a moment old when
another thread reads them. Does not know: rates, names of metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client.core.connection import ConnectionCore


@dataclass(slots=True)
class Traffic:
    connections: int = 0  # that are open now
    connections_made: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    requests: int = 0
    responses: int = 0
    logins_failed: int = 0

    def add(self, connection: ConnectionCore) -> None:
        self.connections += connection.is_open
        self.connections_made += 1
        self.bytes_sent += connection.bytes_sent
        self.bytes_received += connection.bytes_received
        self.requests += connection.requests_sent
        self.responses += connection.requests_sent - connection.responses_awaited

    def plus(self, connections: Iterable[ConnectionCore]) -> Traffic:
        """This traffic with that of more connections."""
        found = replace(self)
        for each in connections:
            found.add(each)
        return found

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.connections + other.connections,
            self.connections_made + other.connections_made,
            self.bytes_sent + other.bytes_sent,
            self.bytes_received + other.bytes_received,
            self.requests + other.requests,
            self.responses + other.responses,
            self.logins_failed + other.logins_failed,
        )
