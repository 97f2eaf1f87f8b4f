"""The REST proxy as a service of the frame: its routes, errors, description and pages.

In: a `Proxy`. Out: a `Service`. Does not know: settings' names, sockets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from barnabas.rest.application.v2_routes import v2_routes
from barnabas.rest.kafka_errors import converted
from barnabas.rest.proxy import Proxy
from barnabas.rest.tail import api as tail
from barnabas.rest.v2 import description as v2
from barnabas.rest.v2.consumers.instances import ConsumerSettings, Instances
from barnabas.rest.v3 import api as v3
from barnabas.rest.v3.schemas import SCHEMAS
from barnabas.services.app import Service
from barnabas.services.limits import Limits
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.openapi import document
from barnabas.services.openapi_page import page
from barnabas.services.routes import Need, ServiceRoute

NAME = "rest"
TITLE = "REST Proxy"
# Endpoints that are measured alone, by the names of Confluent's proxy.
MEASURED = {
    ("GET", "/brokers"): "brokers.list+v2",
    ("GET", "/topics"): "topics.list+v2",
    ("GET", "/topics/{topic}"): "topic.get+v2",
    ("POST", "/topics/{topic}"): "topic.produce+v2",
    ("POST", "/topics/{topic}/partitions/{partition}"): "partition.produce+v2",
    ("GET", "/topics/{topic}/partitions"): "partitions.list+v2",
    ("GET", "/topics/{topic}/partitions/{partition}"): "partition.get+v2",
}
ABOUT = "Confluent's REST APIs v2 and v3 for Apache Kafka's protocol, and live tails of topics."


@dataclass(frozen=True, slots=True)
class RestOptions:
    consumers: ConsumerSettings = field(default_factory=ConsumerSettings)
    serves_v2: bool = True  # api.v2.enable
    serves_v3: bool = True  # api.v3.enable


def rest_service(proxy: Proxy, limits: Limits | None = None, options: RestOptions | None = None) -> Service:
    options = options or RestOptions()
    instances = Instances(options.consumers)
    routes: list[BaseRoute] = [*tail.routes(proxy), *description_routes(options)]
    if options.serves_v3:
        routes += v3.routes(proxy)
    if options.serves_v2:
        routes += v2_routes(proxy, proxy.formats, instances)

    async def stop() -> None:
        proxy.stopping.set()
        await instances.close()
        await proxy.stop()

    return Service(
        NAME,
        routes,
        start=proxy.start,
        stop=stop,
        converted=converted,
        limits=limits or Limits(),
        metrics=ServiceMetrics(NAME, "kafka_rest", MEASURED),
        stopping=proxy.stopping,
    )


def description(options: RestOptions | None = None) -> dict[str, object]:
    """The OpenAPI document of the APIs that are served."""
    options = options or RestOptions()
    parts = [*(v3.PARTS if options.serves_v3 else ()), *(v2.PARTS if options.serves_v2 else ()), tail.TAIL]
    return document(TITLE, "3", parts, {**v2.SCHEMAS, **SCHEMAS}, description=ABOUT)


def description_routes(options: RestOptions) -> Sequence[ServiceRoute]:
    text = json.dumps(description(options)).encode()
    html = page(TITLE)

    async def openapi(request: Request) -> Response:
        return Response(text, media_type="application/json")

    async def docs(request: Request) -> Response:
        return HTMLResponse(html)

    return (
        ServiceRoute("/openapi.json", openapi, needs=Need.READ),
        ServiceRoute("/docs", docs, needs=Need.READ),
    )
