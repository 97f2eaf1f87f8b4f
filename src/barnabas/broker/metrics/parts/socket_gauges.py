"""Metrics of connections: by listener, by the client's software, by cipher, by client id and user; queues.

In: the listeners. Out: sources registered with the metrics. Kafka has network and request handler threads;
here one event loop has both tasks, and is the only network processor. What is idle is the loop's thread: the
time that it uses no processor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.totals import NS_PER_MS, average_and_max, total_and_rate
from barnabas.broker.wire.login_counts import LoginCounts
from barnabas.broker.wire.measuring import CLIENTS_MAX, Traffic, by_software
from barnabas.metrics import Kind, Metric, Tags, metric_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.wire.server import Listener

SOCKETS = "kafka.server", "socket-server-metrics"
SERVER = "kafka.network", "SocketServer"
CHANNEL = "kafka.network", "RequestChannel"
POOL = "kafka.server", "KafkaRequestHandlerPool"
CLIENTS = "barnabas.server", "Clients"
NS_A_SECOND = 1_000_000_000
ONLY_LOOP = ("networkProcessor", "0")


def register(broker: Broker, listeners: Sequence[Listener]) -> None:
    idle = IdleTime()
    connections(broker, listeners)
    traffic(broker, listeners)
    logins(broker, listeners)
    queues(broker, listeners)
    clients(broker, listeners)
    metrics = broker.metrics
    metrics.gauge(
        *SERVER, "NetworkProcessorAvgIdlePercent", "Share of time that the loop is idle.", idle.share
    )
    metrics.gauges(
        "kafka.network",
        "Processor",
        "IdlePercent",
        "Share of time that the loop is idle.",
        lambda: [((ONLY_LOOP,), idle.share())],
    )
    metrics.counter(
        *POOL,
        "RequestHandlerAvgIdlePercent",
        "Nanoseconds that the loop was idle; its rates are shares of the time.",
        idle.total_ns,
        rate_unit="NANOSECONDS",
    )
    kind = "BrokerRequestHandlerAvgIdlePercent" if broker.settings.is_broker else None
    for name in (kind, "ControllerRequestHandlerAvgIdlePercent" if broker.settings.is_controller else None):
        if name is not None:
            text = "The same, for this role of the node."
            metrics.counter(*POOL, name, text, idle.total_ns, rate_unit="NANOSECONDS")


class IdleTime:
    """Since the loop's start, and since about the last look. Ask it in the loop's thread only."""

    def __init__(self) -> None:
        self._started_ns = self._looked_ns = perf_counter_ns()
        self._used_ns = self._used_before_ns = thread_time_ns()
        self._share = 1.0

    def total_ns(self) -> int:
        return max(perf_counter_ns() - self._started_ns - (thread_time_ns() - self._used_ns), 0)

    def share(self) -> float:
        now_ns, used_ns = perf_counter_ns(), thread_time_ns()
        passed_ns = now_ns - self._looked_ns
        if passed_ns >= 1_000_000_000:
            self._share = min(max(1 - (used_ns - self._used_before_ns) / passed_ns, 0.0), 1.0)
            self._looked_ns, self._used_before_ns = now_ns, used_ns
        return self._share


def tags_of(listener: Listener) -> Tags:
    return ("listener", listener.name), ONLY_LOOP


def connections(broker: Broker, listeners: Sequence[Listener]) -> None:
    metrics = broker.metrics
    metrics.gauges(
        *SOCKETS,
        "connection-count",
        "Connections that are open now.",
        lambda: [(tags_of(each), len(each.channels)) for each in listeners],
    )

    def software() -> Iterator[tuple[Tags, int]]:
        for listener in list(listeners):
            for (name, version), count in by_software(list(listener.channels)):
                yield (
                    (("clientSoftwareName", name), ("clientSoftwareVersion", version), *tags_of(listener)),
                    count,
                )

    def ciphers() -> Iterator[tuple[Tags, int]]:
        for listener in list(listeners):
            if listener.tls is None:
                continue
            found = Counter(
                cipher
                for each in listener.channels
                if (cipher := each.transport.get_extra_info("cipher")) is not None
            )
            for (cipher, protocol, *_), count in sorted(found.items())[:CLIENTS_MAX]:
                yield (("cipher", cipher), ("protocol", protocol), *tags_of(listener)), count

    metrics.gauges(
        *SOCKETS,
        "connections",
        "Connections by the software of the client.",
        software,
        tag_names=("clientSoftwareName",),
    )
    metrics.gauges(
        *SOCKETS, "connections", "Connections by cipher and version of TLS.", ciphers, tag_names=("cipher",)
    )


def traffic(broker: Broker, listeners: Sequence[Listener]) -> None:
    def each(look: Callable[[Listener], int]) -> Callable[[], list[tuple[Tags, int]]]:
        return lambda: [(tags_of(listener), look(listener)) for listener in listeners]

    def total(look: Callable[[Traffic], int]) -> Callable[[], list[tuple[Tags, int]]]:
        return each(lambda listener: look(listener.traffic.total(listener.channels)))

    for stem, help, values in (
        ("connection-creation", "Connections accepted.", each(lambda listener: listener.traffic.creations)),
        ("connection-close", "Connections closed.", each(lambda listener: listener.traffic.closes)),
        ("incoming-byte", "Bytes received.", total(lambda found: found.bytes_in)),
        ("outgoing-byte", "Bytes sent.", total(lambda found: found.bytes_out)),
        ("network-io", "Requests received and responses sent.", total(lambda found: 2 * found.requests)),
        ("request", "Requests received.", total(lambda found: found.requests)),
        ("response", "Requests responded to.", total(lambda found: found.requests)),
    ):
        total_and_rate(broker.metrics, *SOCKETS, stem, help, values)
    response_sizes(broker, listeners)


def response_sizes(broker: Broker, listeners: Sequence[Listener]) -> None:
    """Kafka counts what a node sends as `request-size`, also where it sends responses."""
    registry = broker.metrics.registry
    size = metric_of(*SOCKETS, "outgoing-byte-total", Kind.COUNTER, "Bytes sent.")
    number = metric_of(*SOCKETS, "response-total", Kind.COUNTER, "Responses.")

    def means() -> Iterator[tuple[Tags, float]]:
        for listener in listeners:
            tags, found = tags_of(listener), listener.traffic.total(listener.channels)
            sent = registry.rates(size, tags, found.bytes_out)["OneMinuteRate"]
            responses = registry.rates(number, tags, found.requests)["OneMinuteRate"]
            yield tags, sent / responses if responses else 0.0

    text = "Bytes of a response, the mean of about the last minute."
    broker.metrics.gauges(*SOCKETS, "request-size-avg", text, means)


LOGINS = {
    "successful-authentication": (
        "Logins that succeeded; without SASL, TLS handshakes.",
        "succeeded",
        "total",
    ),
    "failed-authentication": ("Logins and TLS handshakes that failed.", "failed", "total"),
    "failed-reauthentication": ("Logins that should renew a session and failed.", "renewals_failed", "total"),
    "expired-connections-killed": ("Connections closed because their session was over.", "expired", "count"),
}


def logins(broker: Broker, listeners: Sequence[Listener]) -> None:
    def count(listener: Listener, attribute: str) -> int:
        sasl = listener.sasl.logins if listener.sasl is not None else None
        parts = [each for each in (sasl, listener.tls) if each is not None]
        return sum(getattr(each, attribute, 0) for each in parts)

    for stem, (help, attribute, ending) in LOGINS.items():
        total_and_rate(
            broker.metrics,
            *SOCKETS,
            stem,
            help,
            lambda attribute=attribute: [(tags_of(each), count(each, attribute)) for each in listeners],  # type: ignore[misc]
            ending,
        )
    nothing = LoginCounts()
    renewals(
        broker,
        [(tags_of(each), nothing if each.sasl is None else each.sasl.logins) for each in listeners],
    )
    broker.metrics.gauge(
        *SERVER,
        "ExpiredConnectionsKilledCount",
        "Connections closed because their session was over.",
        lambda: sum(count(each, "expired") for each in listeners),
    )


def renewals(broker: Broker, listeners: Sequence[tuple[Tags, LoginCounts]]) -> None:
    """Sessions that clients renew; on listeners with SASL."""
    metrics = broker.metrics
    total_and_rate(
        metrics,
        *SOCKETS,
        "successful-reauthentication",
        "Sessions that were renewed.",
        lambda: [(tags, logins.renewals.count) for tags, logins in listeners],
    )
    metrics.gauges(
        *SOCKETS,
        "successful-authentication-no-reauth-total",
        "Logins of clients from before Kafka 2.2, which cannot renew a session.",
        lambda: [(tags, logins.without_renewal) for tags, logins in listeners],
    )
    for tags, logins in listeners:
        average_and_max(
            metrics,
            *SOCKETS,
            "reauthentication-latency",
            "Time to renew a session.",
            lambda logins=logins: logins.renewals,  # type: ignore[misc]
            tags=tags,
        )


def queues(broker: Broker, listeners: Sequence[Listener]) -> None:
    metrics = broker.metrics

    metrics.gauge(
        *CHANNEL,
        "RequestQueueSize",
        "Connections with a request that is being handled.",
        lambda: sum(channel.is_busy for each in listeners for channel in each.channels),
    )
    metrics.gauges(
        *CHANNEL,
        "ResponseQueueSize",
        "Responses that wait for followers, or for clients that read.",
        lambda: [((), sum(waiting_responses(each) for each in listeners))],
    )
    if listeners:
        metrics.adopt(listeners[0].tick.writes)
        metrics.show_histograms(
            "barnabas.log",
            "Disk",
            "WriteTimeMs",
            "Time to write the records of a tick, sampled.",
            lambda: [((), listeners[0].tick.writes)],
            NS_PER_MS,
        )
    arena = listeners[0].tick.arena if listeners else None
    metrics.gauge(
        *SERVER,
        "MemoryPoolUsed",
        "Bytes of large requests that are being received or handled.",
        lambda: arena.bytes_large if arena is not None else 0,
    )
    metrics.gauge(
        *SERVER,
        "MemoryPoolAvailable",
        "Bytes that large requests may use beside (queued.max.request.bytes); a very large number: no limit.",
        lambda: arena.bytes_left if arena is not None else 0,
    )
    if arena is not None:
        depleted = DepletedTime()
        arena.on_starving = depleted.starving
        metrics.counter(
            *SOCKETS,
            "MemoryPoolDepletedTimeTotal",
            "Nanoseconds in which large requests waited for memory (queued.max.request.bytes).",
            depleted.total_ns,
        )
        time = metric_of(*SOCKETS, "MemoryPoolDepletedTime", Kind.COUNTER, "The same.")
        rates = metrics.registry.rates
        metrics.gauge(
            *SOCKETS,
            "MemoryPoolAvgDepletedPercent",
            "The share of time in which they waited, about the last minute.",
            lambda: rates(time, (), depleted.total_ns())["OneMinuteRate"] / NS_A_SECOND,
        )
    metrics.registry.add(
        acceptor_metric(),
        lambda: [((("listener", each.name),), each.blocked_ns()) for each in listeners],
    )


class DepletedTime:
    """How long requests have waited for memory."""

    def __init__(self) -> None:
        self._ns = 0
        self._since_ns: int | None = None

    def starving(self, is_starving: bool) -> None:
        now_ns = perf_counter_ns()
        if is_starving:
            self._since_ns = now_ns
        elif self._since_ns is not None:
            self._ns += now_ns - self._since_ns
            self._since_ns = None

    def total_ns(self) -> int:
        return self._ns + (perf_counter_ns() - self._since_ns if self._since_ns is not None else 0)


def acceptor_metric() -> Metric:
    return metric_of(
        "kafka.network",
        "Acceptor",
        "AcceptorBlockedPercent",
        Kind.COUNTER,
        "Nanoseconds that a listener accepted nothing, because of a limit; its rates are shares of the time.",
        rate_unit="NANOSECONDS",
    )


def waiting_responses(listener: Listener) -> int:
    return sum(len(each.response_queue) + each.outbox.queued_parts for each in listener.channels)


def clients(broker: Broker, listeners: Sequence[Listener]) -> None:
    """Kafka has these only for clients with a quota."""

    def rows() -> Iterator[tuple[Tags, Traffic]]:
        found: dict[tuple[str, str], Traffic] = {}
        for listener in listeners:
            for client, used in listener.traffic.by_client(list(listener.channels)).items():
                found.setdefault(client, Traffic()).add(used)
        for (client_id, user), used in found.items():
            yield (("clientId", client_id), ("user", user)), used

    broker.metrics.table(
        [
            (metric_of(*CLIENTS, name, Kind.COUNTER, help), look)
            for name, help, look in (
                ("RequestsPerSec", "Requests by client id and user.", lambda used: used.requests),
                ("BytesInPerSec", "Bytes received, by client id and user.", lambda used: used.bytes_in),
                ("BytesOutPerSec", "Bytes sent, by client id and user.", lambda used: used.bytes_out),
            )
        ],
        rows,
    )
