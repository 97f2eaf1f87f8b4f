"""Creates `Telemetry` when clients' metrics have a receiver.

In: the settings, changes of metadata. Out: `Telemetry`, created when `metric.reporters` names a receiver or
when a client sends a request for it anyway. Does not know: the metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.metrics.telemetry_stats import TelemetryStats
from barnabas.metadata.configs import ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.metrics.telemetry import Telemetry
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.settings import BrokerSettings

REPORTERS = "metric.reporters"


class LazyTelemetry:
    def __init__(self, broker: Broker, random_bytes: Callable[[int], bytes]) -> None:
        self._broker = broker
        self._random_bytes = random_bytes
        self._telemetry: Telemetry | None = None
        self.stats = TelemetryStats()
        self.is_enabled = False
        self._reporters_changed(broker.settings, broker.settings)
        broker.dynamic.on_change((REPORTERS,), self._reporters_changed)

    def telemetry(self) -> Telemetry:
        if self._telemetry is None:
            from barnabas.broker.metrics.telemetry import Telemetry

            self._telemetry = Telemetry(self._broker, self._random_bytes, self.stats)
        return self._telemetry

    @property
    def instance_count(self) -> int:
        """Clients that have asked for a subscription or pushed; the oldest are forgotten."""
        return self._telemetry.instance_count if self._telemetry is not None else 0

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if self._telemetry is None or delta.configs is None:
            return
        if any(resource.type == ResourceType.CLIENT_METRICS for resource in delta.configs.resources):
            self._telemetry.apply_subscriptions(image)

    def _reporters_changed(self, before: BrokerSettings, after: BrokerSettings) -> None:
        if self._telemetry is not None:
            self._telemetry.load_reporters()
        elif self._broker.reporting.receivers:
            self.telemetry()
        self.is_enabled = self._telemetry is not None and self._telemetry.has_receivers
