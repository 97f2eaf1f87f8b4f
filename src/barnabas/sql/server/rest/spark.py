"""POST /spark: a statement in plain Spark SQL, over streams, tables and whatever else the session knows.

The response has the first rows. It is no part of ksqlDB's API.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from starlette.requests import Request
from starlette.responses import Response

from barnabas.services.errors import ApiError
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.json_values import json_row
from barnabas.sql.execution.port import PullResult
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.server.rest.bodies import body_of, json_response
from barnabas.sql.server.statements.changing import check_writable
from barnabas.sql.server.statements.errors import NOT_FOUND, bad_request, refused
from barnabas.sql.server.statements.session import Server

ROWS_MAX = 10_000
TURNED_OFF = "this server takes no statements in Spark SQL: barnabas.sql.spark.enabled is false"


@runtime_checkable
class RunsSpark(Protocol):
    """An engine with a session of Spark."""

    async def spark_sql(self, text: str, metastore: Metastore, *, limit: int | None = None) -> PullResult: ...


class SparkEndpoint:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def run(self, request: Request) -> Response:
        text = (await body_of(request)).get("sql")
        if not isinstance(text, str) or not text.strip():
            raise bad_request('the request needs "sql", a text with one statement')
        engine: Any = self._server.engine
        if not self._server.settings.takes_spark or not isinstance(engine, RunsSpark):
            raise ApiError(404, NOT_FOUND, TURNED_OFF)
        check_writable(self._server)
        text = text.strip().rstrip(";")
        try:
            found = await engine.spark_sql(text, self._server.metastore, limit=ROWS_MAX + 1)
        except SqlError as error:
            raise refused(error, text) from None
        rows = found.rows[:ROWS_MAX]
        body = {
            "columnNames": [each.name for each in found.schema],
            "columnTypes": [str(each.kind) for each in found.schema],
            "rows": [json_row(each, found.schema) for each in rows],
            "isCut": len(found.rows) > len(rows),
        }
        return json_response(body, request)
