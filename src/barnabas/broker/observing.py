"""Metrics of a node: the sources of its metrics, their endpoint, and the ticks of their rates.

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
    channel_gauges,
    cleaner_gauges,
    controller_gauges,
    descriptor_gauges,
    gauges,
    group_gauges,
    metadata_gauges,
    process_gauges,
    quorum_gauges,
    quota_gauges,
    replication_gauges,
    share_gauges,
    share_state_gauges,
    socket_gauges,
    telemetry_gauges,
    transaction_gauges,
)
from barnabas.broker.metrics.parts.space_gauges import SpaceGauges
from barnabas.broker.produce.tick import SAMPLED
from barnabas.metrics.rates import TICK_S

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.replicas.following import Following
    from barnabas.broker.wire.listening import Listening
    from barnabas.broker.wire.server import Listener
    from barnabas.runtime.descriptors import Shares


BUSY_SENDS = 2_000  # between two ticks
ALWAYS, NEVER = 0, (1 << 62) - 1  # masks: what is counted up is measured if it has none of these bits


class Observing:
    def __init__(
        self, broker: Broker, listening: Listening, shares: Shares, following: Following | None
    ) -> None:
        self._broker = broker
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tick_of_requests = listening.listeners[0].tick if listening.listeners else None
        self._sends = 0  # as of the last tick
        listeners: Sequence[Listener] = listening.listeners
        gauges.register(broker)
        process_gauges.register(broker)
        socket_gauges.register(broker, listeners)
        metadata_gauges.register(broker)
        descriptor_gauges.register(broker, listeners, shares)
        self._space = SpaceGauges(broker, listeners)
        quota_gauges.register(broker, listening.limits)
        quorum_gauges.register(broker)
        channel_gauges.register(broker)
        access_gauges.register(broker)
        controller_gauges.register(broker)
        if broker.settings.is_broker:
            for each in (
                group_gauges,
                cleaner_gauges,
                transaction_gauges,
                share_gauges,
                share_state_gauges,
                telemetry_gauges,
            ):
                each.register(broker)
        if following is not None:
            replication_gauges.register(broker, following)

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
        self._choose_samples()
        self._space.look()
        self._timer = self._broker.loop.call_later(TICK_S, self._tick)
        self._broker.reporting.start()

    def _tick(self) -> None:
        self._timer = self._broker.loop.call_later(TICK_S, self._tick)
        self._choose_samples()
        self._space.look()
        self._broker.pieces.begin(self._broker.metrics.tick())

    def _choose_samples(self) -> None:
        """Measure every send and size of a quiet broker, and one of 16 of a busy one."""
        tick = self._tick_of_requests
        if tick is None:
            return
        sends, self._sends = tick.sends - self._sends, tick.sends
        if not self._broker.metrics.measures_requests:
            tick.sampled = NEVER
        else:
            tick.sampled = SAMPLED if sends > BUSY_SENDS else ALWAYS

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not None:
            self._server.close()
