"""Metrics of access control: decisions a minute, allowed and denied, and the number of ACLs.

In: the node's access control. Out: callbacks registered with its metrics, under Kafka's names. A rate is that
of the time between two looks about a minute apart. Requests that the produce path decides from memory are
not counted: they were counted when they were decided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

WINDOW_S = 60.0
LOOKS_MAX = 1_000  # that are remembered, however often somebody looks
KIND = "authorizer-metrics"


class Rate:
    """The growth of a counter in a minute, over the last minute or so."""

    def __init__(self, count: Callable[[], int], time_s: Callable[[], float]) -> None:
        self._count = count
        self._time_s = time_s
        self._looks: deque[tuple[float, int]] = deque([(time_s(), count())], maxlen=LOOKS_MAX)

    def per_minute(self) -> float:
        now, count = self._time_s(), self._count()
        looks = self._looks
        while len(looks) > 1 and looks[1][0] <= now - WINDOW_S:
            looks.popleft()
        before, counted = looks[0]
        looks.append((now, count))
        return (count - counted) * 60.0 / max(now - before, 1.0)


def register(broker: Broker) -> None:
    access = broker.access
    if access is None:
        return
    log = access.log
    rates = {
        "authorization-request-rate-per-minute": (
            "Decisions a minute.",
            Rate(lambda: log.allowed + log.denied, broker.loop.time),
        ),
        "authorization-allowed-rate-per-minute": (
            "Allowed decisions a minute.",
            Rate(lambda: log.allowed, broker.loop.time),
        ),
        "authorization-denied-rate-per-minute": (
            "Denied decisions a minute.",
            Rate(lambda: log.denied, broker.loop.time),
        ),
    }
    for name, (help, rate) in rates.items():
        broker.metrics.gauges("kafka.server", KIND, name, help, shown(rate.per_minute))
    broker.metrics.gauges(
        "kafka.server", KIND, "acls-total-count", "ACLs of the cluster.", shown(lambda: access.acl_count)
    )


def shown(value: Callable[[], float]) -> Callable[[], list[tuple[dict[str, str], float]]]:
    return lambda: [({}, value())]
