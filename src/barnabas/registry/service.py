"""The Schema Registry as a service: a node, the API over it, and what operators see.

In: settings of the service. Out: a `Service` for the frame. It starts when the topic is read, and takes part
in elections from then on. Does not know: sockets, callers.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from prometheus_client import Gauge

from barnabas.registry.api.application import routes
from barnabas.registry.api.media_types import RESPONSE_TYPES
from barnabas.registry.api.registry import ApiSettings, RegistryApi
from barnabas.registry.api.response_bodies import classic_error
from barnabas.registry.counts import PREFIX, SchemaCounts
from barnabas.registry.node import RegistryNode
from barnabas.registry.state.deciding import Decider, Rules
from barnabas.services.app import Service
from barnabas.services.errors import error_body
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.settings.service_settings import ServiceSettings

NAME = "registry"


def service(settings: ServiceSettings) -> Service:
    node = RegistryNode(settings)
    decider = Decider(node.state, rules=Rules(settings["mode.mutability"]))
    api = RegistryApi(decider, node.changes, api_settings(settings))

    async def start() -> None:
        await node.start()
        api.settings.cluster_id = node.kafka_cluster_id

    async def stop() -> None:
        await node.stop()
        api.close()

    return Service(
        NAME,
        routes(api),
        start,
        stop,
        node.why_not_ready,
        media_types=api.settings.media_types,
        metrics=metrics(node),
        error_form=classic_error if api.settings.is_classic else error_body,
    )


def api_settings(settings: ServiceSettings) -> ApiSettings:
    def limits(kind: str) -> tuple[int, int]:
        return settings[f"{kind}.search.default.limit"], settings[f"{kind}.search.max.limit"]

    first = settings["response.mediatype.default"]
    others = tuple(each for each in RESPONSE_TYPES if each != first)
    return ApiSettings(
        is_classic=settings["barnabas.responses.classic"],
        schema_limit=limits("schema"),
        subject_limit=limits("subject"),
        version_limit=limits("subject.version"),
        group_id=settings["schema.registry.group.id"],
        version=own_version(),
        schema_bytes_max=settings["barnabas.schema.bytes.max"],
        media_types=(first, *others) if first in RESPONSE_TYPES else RESPONSE_TYPES,
    )


def own_version() -> str:
    try:
        return version("barnabas")
    except PackageNotFoundError:
        return ""


def metrics(node: RegistryNode) -> ServiceMetrics:
    found = ServiceMetrics(NAME, PREFIX)
    found.registry.register(SchemaCounts(node))
    primary = Gauge("barnabas_registry_primary", "1 if this node is the primary.", registry=found.registry)
    primary.set_function(lambda: float(node.seat.is_primary))
    offset = Gauge(
        "barnabas_registry_log_offset", "Offset behind the last record applied.", registry=found.registry
    )
    offset.set_function(lambda: float(node.next_offset))
    return found
