"""Other nodes, asked over HTTP: the one that runs the queries, and whether each is there.

In: URLs. Out: statuses of queries, the nodes that answer. Does not know: who leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from barnabas.security.clients.client_security import client_tls
from barnabas.sql.execution.port import QueryError, QueryState, QueryStatus
from barnabas.sql.server.settings.server_settings import ServerSettings

STATUSES = "/barnabas/queries"
HEALTH = "/healthcheck"
TIMEOUT_S = 10.0
ANSWER_S = 2.0  # for a node that is asked whether it is there


class NodeUnreachable(Exception):
    """The node does not answer, or says something else."""


class OtherNodes:
    def __init__(self, settings: ServerSettings) -> None:
        user, _, password = (settings.node_user or "").partition(":")
        self._client = httpx.AsyncClient(
            timeout=TIMEOUT_S,
            trust_env=False,
            auth=(user, password) if user else None,
            verify=client_tls(settings.node_tls) if settings.url.startswith("https") else True,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def answering(self, urls: Sequence[str]) -> list[str]:
        """Choose the nodes that answer now."""

        async def answers(url: str) -> bool:
            try:
                await self._client.get(f"{url}{HEALTH}", timeout=ANSWER_S)
            except httpx.HTTPError:
                return False
            return True

        found = await asyncio.gather(*map(answers, urls))
        return [url for url, is_there in zip(urls, found, strict=True) if is_there]

    async def statuses(self, url: str) -> dict[str, QueryStatus]:
        try:
            response = await self._client.get(f"{url}{STATUSES}")
            response.raise_for_status()
            return {each["query_id"]: status_of(each) for each in response.json()}
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            why = str(error) or type(error).__name__
            raise NodeUnreachable(f"the node {url}, which runs the queries, does not answer: {why}") from None


def status_json(status: QueryStatus) -> dict[str, Any]:
    return {
        "query_id": status.query_id,
        "state": str(status.state),
        "application_id": status.application_id,
        "errors": [[each.timestamp_ms, each.kind, each.message] for each in status.errors],
        "records": status.records,
        "outputs": status.outputs,
        "dropped": dict(status.dropped),
        "lag": status.lag,
    }


def status_of(body: Mapping[str, Any]) -> QueryStatus:
    return QueryStatus(
        body["query_id"],
        QueryState(body["state"]),
        body["application_id"],
        tuple(QueryError(*each) for each in body["errors"]),
        body["records"],
        body["outputs"],
        body["dropped"],
        body["lag"],
    )
