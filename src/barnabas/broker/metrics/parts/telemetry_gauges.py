"""Metrics of the clients that push metrics (KIP-714), under Kafka's names.

In: the counts of the broker's telemetry. Out: sources registered with the metrics. Kafka shows throttles and
exports for each client; here they are those of all clients together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.totals import average_and_max, total_and_rate

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.metrics import Tags

KIND = "kafka.server", "client-metrics"


def register(broker: Broker) -> None:
    metrics, telemetry = broker.metrics, broker.client_metrics
    stats = telemetry.stats
    metrics.gauge(
        *KIND,
        "instance-count",
        "Clients that have asked for a subscription or pushed.",
        lambda: telemetry.instance_count,
    )
    counts: tuple[tuple[str, str, Callable[[], int]], ...] = (
        (
            "unknown-subscription-request",
            "Pushes for a subscription that has changed.",
            lambda: stats.unknown_subscriptions,
        ),
        ("throttle", "Requests that came too early.", lambda: stats.throttled),
        ("plugin-export", "Pushes that all receivers took.", lambda: stats.exports.count),
        ("plugin-error", "Pushes that a receiver failed on.", lambda: stats.errors),
    )
    for stem, help, count in counts:
        values = partial(single, count)
        total_and_rate(metrics, *KIND, stem, help, values, "count")
    average_and_max(
        metrics,
        *KIND,
        "plugin-export-time",
        "Time until all receivers had a push.",
        lambda: stats.exports,
    )


def single(count: Callable[[], int]) -> list[tuple[Tags, int]]:
    return [((), count())]
