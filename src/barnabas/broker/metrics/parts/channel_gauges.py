"""Metrics of connections between nodes, by purpose, under the names of Kafka's channels; of requests that are
forwarded to the controller.

In: the traffic of the node's connections to others. Out: sources registered with the metrics. A node that is
the active controller calls it without a connection: its channels to the controller count nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.totals import NS_PER_MS, average_and_max, total_and_rate
from barnabas.metrics.histogram import percentiles
from barnabas.quorum import lanes

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.metrics import Metrics
    from barnabas.broker.quorum.channel_traffic import ChannelTraffic
    from barnabas.metrics import Tags

SERVER = "kafka.server"
RAFT = "raft-channel-metrics", (lanes.VOTES, lanes.METADATA, lanes.VOTERS)
# Kafka tags these with the broker's id.
OF_CONTROLLERS: dict[str, tuple[str, ...]] = {"registration-metrics": (lanes.REGISTRATION,)}
OF_BROKERS: dict[str, tuple[str, ...]] = {
    "alter-partition-metrics": (lanes.IN_SYNC,),
    "directory-assignments-metrics": (lanes.DIRECTORIES,),
    "forwarding-metrics": (lanes.FORWARDED, lanes.OTHERS),
    "heartbeat-metrics": (lanes.HEARTBEATS,),
}
BETWEEN_BROKERS = {
    "AddPartitionsManager-channel-metrics": (lanes.VERIFICATION,),
    "NetworkPartitionMetadataClient-channel-metrics": (lanes.END_OFFSETS,),
    "Persister-channel-metrics": (lanes.SHARE_STATE,),
    "txn-marker-channel-metrics": (lanes.MARKERS,),
}
Count = Callable[["ChannelTraffic"], int]
TOTALS: tuple[tuple[str, str, Count], ...] = (
    ("connection-creation", "Connections made.", lambda each: each.made),
    ("connection-close", "Connections closed.", lambda each: each.closed),
    ("incoming-byte", "Bytes received.", lambda each: each.bytes_received),
    ("outgoing-byte", "Bytes sent.", lambda each: each.bytes_sent),
    ("network-io", "Requests sent and responses received.", lambda each: each.requests + each.responses),
    ("request", "Requests sent.", lambda each: each.requests),
    ("response", "Responses received.", lambda each: each.responses),
    ("successful-authentication", "Logins with SASL that succeeded.", lambda each: each.logins),
    ("failed-authentication", "Logins that failed.", lambda each: each.logins_failed),
    ("successful-reauthentication", "Sessions that were renewed.", lambda each: each.renewals.count),
    ("failed-reauthentication", "Sessions whose renewal failed.", lambda each: each.renewals_failed),
)


def register(broker: Broker) -> None:
    metrics, settings, seat = broker.metrics, broker.settings, broker.controller.traffic
    channel(metrics, RAFT[0], [seat(lane) for lane in RAFT[1]])
    tags: Tags = (("BrokerId", str(broker.node_id)),)
    if settings.is_controller:
        for kind, lanes in OF_CONTROLLERS.items():
            channel(metrics, kind, [seat(lane) for lane in lanes], tags)
    if settings.is_broker:
        for kind, lanes in OF_BROKERS.items():
            channel(metrics, kind, [seat(lane) for lane in lanes], tags)
        for kind, lanes in BETWEEN_BROKERS.items():
            channel(metrics, kind, [broker.others.traffic(lane) for lane in lanes])
        forwarding(broker)


def channel(metrics: Metrics, kind: str, parts: Sequence[ChannelTraffic], tags: Tags = ()) -> None:
    """The metrics of one channel; its traffic may have parts."""

    def total(count: Count) -> list[tuple[Tags, int]]:
        return [(tags, sum(map(count, parts)))]

    def gauge(name: str, help: str, count: Count) -> None:
        metrics.gauges(SERVER, kind, name, help, partial(total, count))

    gauge("connection-count", "Connections that are open now.", lambda each: each.connections)
    for stem, help, count in TOTALS:
        total_and_rate(metrics, SERVER, kind, stem, help, partial(total, count))
    gauge(
        "successful-authentication-no-reauth-total",
        "Logins whose session has no end.",
        lambda each: each.sessions_without_end,
    )
    first, *others = parts
    for other in others:  # they count in the same histograms
        other.request_bytes, other.renewals = first.request_bytes, first.renewals
    average_and_max(
        metrics,
        SERVER,
        kind,
        "request-size",
        "Bytes of a request.",
        lambda: first.request_bytes,
        tags=tags,
        unit=1,
    )
    average_and_max(
        metrics,
        SERVER,
        kind,
        "reauthentication-latency",
        "Time to renew a session.",
        lambda: first.renewals,
        tags=tags,
    )


def forwarding(broker: Broker) -> None:
    metrics, found = broker.metrics, broker.controller.forwarding
    kind = SERVER, "ForwardingManager"
    metrics.gauge(
        *kind,
        "QueueLength",
        "Requests that wait until an active controller is known.",
        lambda: found.waiting,
    )
    for name, help, histogram in (
        ("QueueTimeMs", "Time until a client's request was sent to the controller, in ms.", found.queued),
        ("RemoteTimeMs", "Time until the controller's response came, in ms.", found.remote),
    ):
        metrics.adopt(histogram)
        for word, share in (("p99", 0.99), ("p999", 0.999)):
            metrics.gauge(
                *kind,
                f"{name}.{word}",
                help,
                lambda histogram=histogram, share=share: (  # type: ignore[misc]
                    percentiles(histogram.recent, [share])[0] / NS_PER_MS
                ),
            )
