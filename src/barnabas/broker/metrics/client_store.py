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
CHARACTERS_MAX = 256 * 1024  # in the names and attributes of one client's series
ALL_CHARACTERS_MAX = 32 * 1024 * 1024  # of all clients: those that pushed first are forgotten
MISSED_PUSHES = 3  # then a client is gone
LAST_VALUES_S = 120.0  # that values stay at least: each scrape should see the last ones
MS_A_SECOND = 1000

Series = tuple[str, otlp.Attributes, bool]  # the name, and whether it only grows


class Values:
    """The newest values of one client."""

    __slots__ = ("by_series", "characters", "client", "until_s")

    def __init__(self) -> None:
        self.client: TelemetryClient
        self.by_series: dict[Series, float] = {}
        self.characters = 0  # in names and attributes
        self.until_s = 0.0

    def put(self, point: otlp.Point) -> None:
        """Keep a value, unless its series is a new one and there are too many."""
        series = point.name, point.attributes, point.is_monotonic
        before = self.by_series.get(series)
        if before is None:
            size = len(point.name) + sum(len(key) + len(text) for key, text in point.attributes)
            if len(self.by_series) >= SERIES_MAX or self.characters + size > CHARACTERS_MAX:
                return
            self.characters += size
        self.by_series[series] = (before or 0.0) + point.value if point.is_delta else point.value


class ClientStore:
    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._clients: dict[str, Values] = {}
        self._characters = 0  # of all clients

    def put(self, client: TelemetryClient, payload: bytes) -> None:
        """ValueError: the payload is malformed."""
        points = list(otlp.points(payload))
        silence_s = 0 if client.is_terminating else MISSED_PUSHES * client.push_interval_ms / MS_A_SECOND
        until_s = self._now_s() + max(silence_s, LAST_VALUES_S)
        with self._lock:
            self._forget()
            found = self._pop(client.instance_id) or Values()
            found.client, found.until_s = client, until_s
            for point in points:
                found.put(point)
            self._clients[client.instance_id] = found
            self._characters += found.characters
            while len(self._clients) > CLIENTS_MAX or self._characters > ALL_CHARACTERS_MAX:
                self._pop(next(iter(self._clients)))

    def values(self) -> list[tuple[TelemetryClient, dict[Series, float]]]:
        with self._lock:
            self._forget()
            return [(found.client, dict(found.by_series)) for found in self._clients.values()]

    def _pop(self, instance_id: str) -> Values | None:
        found = self._clients.pop(instance_id, None)
        if found is not None:
            self._characters -= found.characters
        return found

    def _forget(self) -> None:
        now_s = self._now_s()
        for instance_id in [each for each, found in self._clients.items() if found.until_s < now_s]:
            self._pop(instance_id)
