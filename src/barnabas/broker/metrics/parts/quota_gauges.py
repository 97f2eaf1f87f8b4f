"""Metrics of quotas: rates, tokens and throttle times of limited clients, and connection rates.

In: the broker's quotas and connection limits. Out: callbacks registered with its metrics, under Kafka's
names. Clients without a limit are not measured, as in Kafka without quotas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.quotas.client_quotas import ClientQuotas, Share
    from barnabas.broker.wire.connection_limits import ConnectionLimits

# Kafka's type, the attribute of our quotas, the name of the measure.
RATES = {
    "Produce": ("produce", "byte-rate", "Bytes a second of a producer with a quota."),
    "Fetch": ("fetch", "byte-rate", "Bytes a second of a consumer with a quota."),
    "Request": ("request", "request-time", "Percent of a thread used by a client with a quota."),
}


def register(broker: Broker, limits: ConnectionLimits) -> None:
    metrics, quotas = broker.metrics, broker.quotas

    def rate(share: Share[Any]) -> float:
        return float(share.meter.rate.rate(quotas.now_ms()))

    def tokens(share: Share[Any]) -> float:
        return float(share.meter.refill(share.bound, quotas.now_ms()))

    def average_wait(share: Share[Any]) -> float:
        return share.throttles.mean(quotas.now_ms())

    for kind, (attribute, name, help) in RATES.items():
        metrics.gauges("kafka.server", kind, name, help, rows(quotas, attribute, rate))
        metrics.gauges(
            "kafka.server",
            kind,
            "throttle-time",
            "Average wait of a throttled client in the last minute, in ms.",
            rows(quotas, attribute, average_wait),
        )
    metrics.gauges(
        "kafka.server",
        "ControllerMutation",
        "tokens",
        "Partitions that a client with a quota may make or remove now.",
        rows(quotas, "mutation", tokens),
    )
    metrics.gauges(
        "kafka.server",
        "ControllerMutation",
        "throttle-time",
        "Average wait of a throttled client in the last minute, in ms.",
        rows(quotas, "mutation", average_wait),
    )
    metrics.gauges(
        "kafka.server",
        "socket-server-metrics",
        "connection-accept-rate",
        "Connections accepted a second.",
        lambda: [
            ({"listener": listener}, value)
            for listener, value in limits.accept_rates(quotas.now_ms()).items()
        ],
    )
    metrics.gauges(
        "kafka.server",
        "socket-server-metrics",
        "connection-accept-throttle-time",
        "The last wait of a listener for its connection rate, in ms.",
        lambda: [({"listener": listener}, value) for listener, value in limits.throttle_times.items()],
    )


def rows(
    quotas: ClientQuotas, attribute: str, value: Callable[[Share[Any]], float]
) -> Callable[[], list[tuple[dict[str, str], float]]]:
    def found() -> list[tuple[dict[str, str], float]]:
        kind = getattr(quotas, attribute)
        if kind is None:
            return []
        return [
            ({"user": user, "client_id": client_id}, value(share))
            for (user, client_id), share in kind.shares()
        ]

    return found
