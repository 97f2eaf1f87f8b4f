"""The lag service as a service of the frame: its routes, its clusters, its probes.

In: `WatchSettings` for each cluster. Out: a `Service`. Does not know: settings' names, sockets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.routing import BaseRoute

from barnabas.monitor.lag_service.burrow_api import BurrowApi
from barnabas.monitor.lag_service.burrow_config_api import BurrowConfigApi, burrow_error
from barnabas.monitor.lag_service.cluster_watch import WatchSettings
from barnabas.monitor.lag_service.lag_api import LagApi
from barnabas.monitor.lag_service.metrics_api import Dialects, MetricsApi
from barnabas.monitor.lag_service.probe import Probes, ProbeSettings
from barnabas.monitor.lag_service.watches import Watches
from barnabas.services.app import Service
from barnabas.services.errors import ApiError, error_body
from barnabas.services.metrics import ServiceMetrics

NAME = "lag"
OWN_CODES = 40_000  # errors of our own API have codes from here on


@dataclass(frozen=True, slots=True)
class LagOptions:
    dialects: Dialects = field(default_factory=Dialects)
    probe: ProbeSettings | None = None


def lag_service(settings: Sequence[WatchSettings], options: LagOptions | None = None) -> Service:
    options = options or LagOptions()
    watches = Watches(settings)
    probes = Probes(settings, options.probe, options.dialects.kminion_prefix)
    metrics = ServiceMetrics(NAME)
    routes: list[BaseRoute] = [
        *BurrowApi(watches).routes(),
        *BurrowConfigApi(watches).routes(),
        *LagApi(watches).routes(),
        *MetricsApi(watches, options.dialects, probes, metrics).routes(),
    ]

    async def start() -> None:
        await watches.start()
        probes.start()

    async def stop() -> None:
        await probes.stop()
        await watches.stop()

    return Service(
        NAME,
        routes,
        start=start,
        stop=stop,
        why_not_ready=watches.why_not_ready,
        error_form=error_form,
        metrics=metrics,
    )


def error_form(error: ApiError) -> object:
    return error_body(error) if error.code >= OWN_CODES else burrow_error(error)
