"""What a node shows of itself: the sources of its metrics, their endpoint, and the ticks of their rates.

In: a node's broker and listeners, when they have started. Out: a registry that outlets walk, and `GET
/metrics` where a port is set. Rates of meters need a tick every five seconds; a simulation has none, and
looks nothing up. Does not know: what the sources look up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts import (
    access_gauges,
    cleaner_gauges,
    controller_gauges,
    descriptor_gauges,
    gauges,
    group_gauges,
    quorum_gauges,
    quota_gauges,
    share_gauges,
    share_state_gauges,
    transaction_gauges,
)
from barnabas.metrics.rates import TICK_S

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.wire.listening import Listening
    from barnabas.broker.wire.server import Listener
    from barnabas.runtime.descriptors import Shares


class Observing:
    def __init__(self, broker: Broker, listening: Listening, shares: Shares) -> None:
        self._broker = broker
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        listeners: Sequence[Listener] = listening.listeners
        gauges.register(broker, listeners)
        descriptor_gauges.register(broker, listeners, shares)
        quota_gauges.register(broker, listening.limits)
        quorum_gauges.register(broker)
        access_gauges.register(broker)
        controller_gauges.register(broker)
        if broker.settings.is_broker:
            for each in (group_gauges, cleaner_gauges, transaction_gauges, share_gauges, share_state_gauges):
                each.register(broker)

    async def serve(self) -> None:
        """Serve the endpoint if a port is set. OSError: the address cannot be bound."""
        settings = self._broker.settings
        port: int = settings["barnabas.metrics.port"]
        if port < 0:
            return
        from barnabas.broker.metrics import applications
        from barnabas.broker.metrics.endpoint import PageOptions, serve_metrics

        options = PageOptions(settings["barnabas.metrics.dialect"], settings["barnabas.metrics.partitions"])
        host: str = settings["barnabas.metrics.host"]
        metrics, pieces = self._broker.metrics, self._broker.pieces
        beside = applications.of_broker(self._broker)
        try:
            self._server = await serve_metrics(metrics, host, port, pieces, options, beside)
        except OSError as error:
            error.strerror = f"cannot serve metrics on {host}:{port}: {error.strerror}"
            raise

    def start_ticks(self) -> None:
        """Keep rates and percentiles up to date from now on."""
        self._timer = self._broker.loop.call_later(TICK_S, self._tick)
        self._broker.reporting.start()

    def _tick(self) -> None:
        self._timer = self._broker.loop.call_later(TICK_S, self._tick)
        self._broker.pieces.begin(self._broker.metrics.tick())

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not None:
            self._server.close()
