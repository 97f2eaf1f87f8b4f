"""The SQL server as a service: a node, the API over it, and what operators see.

In: settings of the service. Out: a `Service` for the frame. Does not know: sockets, callers.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from prometheus_client import Gauge
from starlette.requests import Request
from starlette.responses import Response

from barnabas.services.app import Service
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.routes import AnyRoute, Need, ServiceRoute, ServiceWebSocketRoute
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.sql.execution.port import Engine
from barnabas.sql.functions.user import load_entry_points, load_folder
from barnabas.sql.server.node import SqlNode
from barnabas.sql.server.other_nodes import STATUSES, status_json
from barnabas.sql.server.query_metrics import QueryCollector
from barnabas.sql.server.rest.bodies import DELIMITED, JSON, KSQL_JSON, json_response
from barnabas.sql.server.rest.facts import FactEndpoints
from barnabas.sql.server.rest.inserts import InsertEndpoint
from barnabas.sql.server.rest.queries import QueryEndpoints
from barnabas.sql.server.rest.spark import SparkEndpoint
from barnabas.sql.server.rest.statements import StatementEndpoints
from barnabas.sql.server.settings.server_settings import ServerSettings, server_settings
from barnabas.sql.server.statements.changing import not_ready
from barnabas.sql.server.statements.errors import converted, error_json

NAME = "sql"
log = logging.getLogger("barnabas.sql")
POST = ("POST",)
Endpoint = Callable[[Request], Awaitable[Response]]
MakeEngine = Callable[[ServiceSettings, ServerSettings], Engine]


def service(settings: ServiceSettings) -> Service:
    from barnabas.sql.server.engines import spark_engine

    return service_with(settings, spark_engine)


def load_functions(settings: ServiceSettings) -> None:
    """Import the user's functions: those of installed packages and those of the folder."""
    if not settings["ksql.udfs.enabled"]:
        return
    problems = load_entry_points()
    folder = Path(settings["ksql.extension.dir"])
    if folder.is_dir():
        problems += load_folder(folder)
    for problem in problems:
        log.warning("functions of the user could not be imported: %s", problem)


def service_with(settings: ServiceSettings, make_engine: MakeEngine) -> Service:
    """The service over another engine."""
    own = server_settings(settings)
    load_functions(settings)
    node = SqlNode(own, lambda: make_engine(settings, own))
    made = Service(
        NAME,
        (),
        node.start,
        node.stop,
        node.why_not_ready,
        media_types=(KSQL_JSON, JSON, DELIMITED),
        error_form=error_json,
        converted=converted,
        metrics=metrics(node),
    )
    made.routes = routes(node, made)
    return made


def routes(node: SqlNode, made: Service) -> list[AnyRoute]:
    statements = StatementEndpoints(node)
    queries = QueryEndpoints(node, statements, made.stopping)
    facts = FactEndpoints(node, node.why_not_ready, lambda: node.leader, lambda: node.urls)
    inserts = InsertEndpoint(node)
    spark = SparkEndpoint(node)

    def ready(endpoint: Endpoint) -> Endpoint:
        async def respond(request: Request) -> Response:
            reason = node.why_not_ready()
            if reason is not None:
                raise not_ready(reason)
            return await endpoint(request)

        return respond

    async def query_statuses(request: Request) -> Response:
        return json_response([status_json(each) for each in node.engine.statuses()], request)

    def post(path: str, endpoint: Endpoint, need: Need, *, is_stream: bool = False) -> ServiceRoute:
        return ServiceRoute(path, ready(endpoint), needs=need, methods=POST, is_stream=is_stream)

    return [
        post("/ksql", statements.run, Need.WRITE),
        post("/spark", spark.run, Need.WRITE, is_stream=True),
        post("/ksql/terminate", statements.terminate, Need.ADMIN),
        post("/query", queries.query, Need.READ, is_stream=True),
        post("/query-stream", queries.query_stream, Need.READ, is_stream=True),
        post("/inserts-stream", inserts.insert, Need.WRITE, is_stream=True),
        post("/close-query", queries.close_query, Need.READ),
        ServiceWebSocketRoute("/ws/query", queries.web_socket, needs=Need.READ),
        ServiceRoute("/status", statements.statuses, needs=Need.READ),
        ServiceRoute("/status/{entity}/{name}/{action}", statements.status, needs=Need.READ),
        ServiceRoute("/", facts.info, needs=Need.READ),
        ServiceRoute("/info", facts.info, needs=Need.READ),
        ServiceRoute("/healthcheck", facts.health, needs=None),
        ServiceRoute("/clusterStatus", facts.cluster_status, needs=Need.READ),
        ServiceRoute("/v1/metadata", facts.metadata, needs=Need.READ),
        ServiceRoute("/v1/metadata/id", facts.metadata_id, needs=Need.READ),
        ServiceRoute("/is_valid_property/{name}", facts.is_valid_property, needs=Need.READ),
        ServiceRoute(STATUSES, query_statuses, needs=Need.READ),
    ]


def metrics(node: SqlNode) -> ServiceMetrics:
    found = ServiceMetrics(NAME)

    def gauge(name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(f"barnabas_sql_{name}", text, registry=found.registry).set_function(value)

    gauge("leading", "1 if this node runs the persistent queries.", lambda: float(node.runner.is_leading))
    gauge("sources", "Streams and tables.", lambda: float(len(node.metastore.sources)))
    gauge("persistent_queries", "Persistent queries.", lambda: float(len(node.metastore.queries)))
    gauge("push_queries", "Push queries that are open here.", lambda: float(len(node.selects.open)))
    found.registry.register(
        QueryCollector(lambda: node.engine.measured_statuses() if node.runner.is_leading else ())
    )
    gauge("commands", "Commands that are carried out.", lambda: float(node.runner.statuses.handled))
    return found
