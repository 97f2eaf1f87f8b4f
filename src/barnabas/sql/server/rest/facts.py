"""GET endpoints about the server: /info, /healthcheck, /clusterStatus, /v1/metadata, /is_valid_property."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.sql.execution.port import QueryStores
from barnabas.sql.server.rest.bodies import json_response
from barnabas.sql.server.settings.properties import is_known
from barnabas.sql.server.statements.errors import bad_request
from barnabas.sql.server.statements.session import Server

VERSION = "8.0.0"  # of ksqlDB, whose API this is: clients compare it

log = logging.getLogger("barnabas.sql")


class FactEndpoints:
    def __init__(
        self,
        server: Server,
        why_not_ready: Callable[[], str | None],
        leader: Callable[[], str],
        nodes: Callable[[], Sequence[str]],
    ) -> None:
        self._server = server
        self._why_not_ready = why_not_ready
        self._leader = leader
        self._nodes = nodes

    async def info(self, request: Request) -> Response:
        is_running = not self._server.runner.is_terminated
        found = {
            "version": VERSION,
            "kafkaClusterId": self._cluster_id,
            "ksqlServiceId": self._server.settings.service_id,
            "serverStatus": "RUNNING" if is_running else "TERMINATED",
        }
        return json_response({"KsqlServerInfo": found}, request)

    @property
    def _cluster_id(self) -> str:
        return self._server.cluster.topology.cluster_id or ""

    async def health(self, request: Request) -> Response:
        reason = self._why_not_ready()
        kafka = bool(self._server.cluster.topology.nodes)
        details = {
            "metastore": {"isHealthy": reason is None},
            "kafka": {"isHealthy": kafka},
            "commandRunner": {"isHealthy": reason is None},
        }
        is_healthy = reason is None and kafka
        state = "READY" if reason is None else "NOT_READY"
        if self._server.runner.is_terminated:
            state = "TERMINATED"
        found = {"isHealthy": is_healthy, "details": details, "serverState": state}
        return json_response(found, request, 200 if is_healthy else 503)

    async def cluster_status(self, request: Request) -> Response:
        """All nodes of the election, with whether each answers now. Queries are those of the elected one."""
        now_ms = int(time.time() * 1000)
        active = sorted(self._server.metastore.queries)
        stores = await self._stores()
        found: dict[str, Any] = {}
        own = self._server.settings.url
        urls = [each for each in dict.fromkeys([own, self._leader(), *self._nodes()]) if each]
        others = [each for each in urls if each != own]
        answering = {own, *await self._server.answering(others)}
        for url in urls:
            runs = url == self._leader()
            found[urlsplit(url).netloc or url] = {
                "hostAlive": url in answering,
                "lastStatusUpdateMs": now_ms,
                "activeStandbyPerQuery": {
                    each: active_json(stores.get(each)) for each in (active if runs else [])
                },
                "hostStoreLags": {
                    "stateStoreLags": lags_json(stores.values()) if runs else {},
                    "updateTimeMs": now_ms,
                },
            }
        return json_response({"clusterStatus": found}, request)

    async def _stores(self) -> dict[str, QueryStores]:
        try:
            return {each.query_id: each for each in await self._server.engine.stores()}
        except (KafkaError, ClientError) as error:
            log.warning(
                "/clusterStatus has no stores, because brokers do not tell of their topics: %s", error
            )
            return {}

    async def metadata(self, request: Request) -> Response:
        return json_response({"scope": {"path": [], "clusters": self._clusters}, "id": ""}, request)

    async def metadata_id(self, request: Request) -> Response:
        return json_response({"id": "", "scope": {"path": [], "clusters": self._clusters}}, request)

    @property
    def _clusters(self) -> dict[str, str]:
        return {"kafka-cluster": self._cluster_id, "ksql-cluster": self._server.settings.service_id}

    async def is_valid_property(self, request: Request) -> Response:
        name = request.path_params["name"]
        if not is_known(name, self._server.settings.shown):
            raise bad_request(f"Unknown property: {name}")
        return json_response(True, request)


def active_json(stores: QueryStores | None) -> dict[str, Any]:
    """The part of a query that a node has. There are no standby copies: state is in topics."""
    places = () if stores is None else stores.partitions
    return {
        "activeStores": [] if stores is None else list(stores.ends),
        "activePartitions": [{"topic": topic, "partition": number} for topic, number in places],
        "standByStores": [],
        "standByPartitions": [],
    }


def lags_json(stores: Iterable[QueryStores]) -> dict[str, Any]:
    """The place of each store in its changelog. The node that runs a query has it up to the end."""
    return {
        f"{each.application_id}#{store}": {
            "lagByPartition": {
                str(number): {"currentOffsetPosition": end, "endOffsetPosition": end, "offsetLag": 0}
                for number, end in ends.items()
            }
        }
        for each in stores
        for store, ends in each.ends.items()
    }
