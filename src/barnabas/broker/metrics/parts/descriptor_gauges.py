"""Metrics of file descriptors: the limit and the use of each share, and refused connections.

In: the shares, the listeners. Out: callbacks registered with the metrics. Kafka has none of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.wire.server import Listener
    from barnabas.runtime.descriptors import Shares


def register(broker: Broker, listeners: Sequence[Listener], shares: Shares) -> None:
    metrics, kind = broker.metrics, ("barnabas.server", "Descriptors")
    files = broker.log_dirs.context.files
    metrics.gauge(*kind, "Limit", "Files and sockets that the process may open.", lambda: shares.limit)
    metrics.gauges(
        *kind,
        "ShareLimit",
        "The limit of descriptors of each share.",
        lambda: [
            ({"share": "clients"}, shares.clients.limit),
            ({"share": "peers"}, shares.peers.limit),
            ({"share": "files"}, shares.files),
        ],
    )
    metrics.gauges(
        *kind,
        "ShareUsed",
        "Descriptors that each share has open.",
        lambda: [
            ({"share": "clients"}, shares.clients.used),
            ({"share": "peers"}, shares.peers.used),
            ({"share": "files"}, len(files)),
        ],
    )
    metrics.counter(
        "barnabas.server",
        "Connections",
        "RefusedPerSec",
        "Connections that were closed at once because their listener has no descriptor left.",
        lambda: sum(listener.refused for listener in listeners),
    )
