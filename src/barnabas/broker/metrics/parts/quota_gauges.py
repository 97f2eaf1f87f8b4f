"""Metrics of quotas: rates, tokens and throttle times of limited clients, and connection rates.

In: the broker's quotas and connection limits. Out: callbacks registered with its metrics, under Kafka's
names. Clients without a limit are not measured, as in Kafka without quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.metrics import Kind, metric_of
from barnabas.protocol import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.quotas.client_quotas import ClientQuotas, Share
    from barnabas.broker.wire.connection_limits import ConnectionLimits
    from barnabas.metrics import Tags

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
    for kind, attribute in (
        *((kind, of[0]) for kind, of in RATES.items()),
        ("ControllerMutation", "mutation"),
    ):
        metrics.gauge(
            "kafka.server",
            kind,
            "queue-size",
            "Waits of throttled clients that have not ended: their connections are not read meanwhile.",
            partial(waiting, quotas, attribute),
        )
    metrics.gauge(
        "kafka.server",
        "Request",
        "exempt-request-time",
        "Percent of a thread used by requests that have no quota: those between nodes.",
        exempt_time(broker),
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
    metrics.gauge(
        "kafka.server",
        "socket-server-metrics",
        "broker-connection-accept-rate",
        "Connections accepted a second; those of other brokers do not count where clients have a listener.",
        lambda: limits.accept_rate(quotas.now_ms()),
    )
    metrics.gauges(
        "kafka.server",
        "socket-server-metrics",
        "connection-accept-throttle-time",
        "The last wait of a listener for its connection rate, in ms; 0: it has not waited.",
        lambda: [({"listener": listener}, value) for listener, value in limits.throttle_times.items()],
    )
    metrics.gauges(
        "kafka.server",
        "socket-server-metrics",
        "ip-connection-accept-throttle-time",
        "The last wait of a connection for the rate of its address, in ms; 0: none has waited.",
        lambda: [({"listener": name}, value) for name, value in limits.address_throttle_times.items()],
    )


# Requests of nodes, which have no quota; fetches of followers are counted apart.
EXEMPT = frozenset(
    {
        ApiKey.WRITE_TXN_MARKERS, ApiKey.ALTER_PARTITION, ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.BROKER_HEARTBEAT, ApiKey.BROKER_REGISTRATION,
        ApiKey.CONTROLLER_REGISTRATION, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH_SNAPSHOT, ApiKey.UPDATE_RAFT_VOTER, ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)  # fmt: skip
EXEMPT_TIME = metric_of("kafka.server", "Request", "exempt-request-time-total", Kind.COUNTER, "Nanoseconds.")
NS_A_PERCENT = 10_000_000  # of a second


def exempt_time(broker: Broker) -> Callable[[], float]:
    """The share of time that handlers of such requests take, in percent, about the last minute."""

    def used_ns() -> int:
        return sum(
            api.handler_ns
            for (key, _, is_follower), api in broker.metrics.apis
            if is_follower or key in EXEMPT
        )

    rates = broker.metrics.registry.rates
    return lambda: rates(EXEMPT_TIME, (), used_ns())["OneMinuteRate"] / NS_A_PERCENT


def waiting(quotas: ClientQuotas, attribute: str) -> int:
    kind = getattr(quotas, attribute)
    return kind.waits.count(quotas.now_ms()) if kind is not None else 0


def rows(
    quotas: ClientQuotas, attribute: str, value: Callable[[Share[Any]], float]
) -> Callable[[], Iterator[tuple[Tags, float]]]:
    """Looks at each share when its row is read: there may be ten thousand."""

    def found() -> Iterator[tuple[Tags, float]]:
        kind = getattr(quotas, attribute)
        if kind is not None:
            for (user, client_id), share in kind.shares():
                yield (("user", user), ("client-id", client_id)), value(share)

    return found
