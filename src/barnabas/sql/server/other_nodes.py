"""The node that runs the queries, asked by the others over HTTP.

In: the URL of that node. Out: rows of pull queries, statuses of queries. Rows keep the values of JSON, which
responses need anyway. Does not know: who leads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import httpx

from barnabas.security.clients.client_security import client_tls
from barnabas.services.errors import ApiError
from barnabas.sql.execution.port import PullResult, QueryError, QueryState, QueryStatus
from barnabas.sql.metastore.schemas import Schema
from barnabas.sql.server.settings.server_settings import ServerSettings
from barnabas.sql.server.statements.errors import SERVER_ERROR, StatementRefused

FORWARDED = "x-barnabas-forwarded"  # a request that must not be forwarded again
STATUSES = "/barnabas/queries"
TIMEOUT_S = 30.0


class OtherNodes:
    def __init__(self, settings: ServerSettings) -> None:
        user, _, password = (settings.node_user or "").partition(":")
        self._client = httpx.AsyncClient(
            timeout=TIMEOUT_S,
            trust_env=False,
            auth=(user, password) if user else None,
            verify=client_tls(settings.node_tls) if settings.url.startswith("https") else True,
            headers={FORWARDED: "true"},
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def pull(self, url: str, text: str, properties: Mapping[str, str], schema: Schema) -> PullResult:
        body = {"sql": text, "properties": dict(properties)}
        response = await self._ask("POST", f"{url}/query-stream", body)
        lines = [json.loads(line, parse_float=Decimal) for line in response.text.splitlines() if line]
        return PullResult(schema, [line for line in lines[1:] if isinstance(line, list)])

    async def statuses(self, url: str) -> dict[str, QueryStatus]:
        response = await self._ask("GET", f"{url}{STATUSES}")
        return {each["query_id"]: status_of(each) for each in response.json()}

    async def _ask(self, method: str, url: str, body: object = None) -> httpx.Response:
        try:
            response = await self._client.request(method, url, json=body)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise ApiError(
                503, SERVER_ERROR, f"the node {url} that runs the queries cannot be reached: {why}"
            ) from None
        if response.status_code >= 400:
            raise refusal(response)
        return response


def refusal(response: httpx.Response) -> ApiError:
    try:
        body = response.json()
        message, code = str(body["message"]), int(body["error_code"])
    except (ValueError, KeyError, TypeError):
        return ApiError(503, SERVER_ERROR, f"the node that runs the queries answers {response.status_code}")
    if body.get("@type") == "statement_error":
        return StatementRefused(
            message, body.get("statementText", ""), code=code, status=response.status_code
        )
    return ApiError(response.status_code, code, message)


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
