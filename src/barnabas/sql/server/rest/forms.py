"""Forms in which rows of a SELECT go to readers. Pure.

`/query`: a JSON array with one object a line. `/query-stream`: one JSON value a line, or one JSON array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from barnabas.sql.execution.json_values import dumped, json_row
from barnabas.sql.execution.port import Row
from barnabas.sql.metastore.schemas import Schema
from barnabas.sql.server.rest.bodies import DELIMITED, JSON, KSQL_JSON


class Form(Protocol):
    media_type: str

    def header(self, query_id: str, schema: Schema) -> str: ...

    def row(self, row: Row, schema: Schema) -> str: ...

    def error(self, error: dict[str, Any]) -> str: ...

    def end(self, message: str) -> str: ...


class Streamed:
    """`[{"header":…},` then `{"row":…},` lines, then a final message and `]`."""

    media_type = KSQL_JSON

    def __init__(self) -> None:
        self._is_first = True

    def header(self, query_id: str, schema: Schema) -> str:
        return "[" + self._line({"header": {"queryId": query_id, "schema": str(schema)}})

    def row(self, row: Row, schema: Schema) -> str:
        columns = {"columns": json_row(row.values, schema)}
        return self._line({"row": {**columns, "tombstone": True} if row.is_tombstone else columns})

    def error(self, error: dict[str, Any]) -> str:
        return self._line({"errorMessage": error}) + "]\n"

    def end(self, message: str) -> str:
        return (self._line({"finalMessage": message}) if message else "") + "]\n"

    def _line(self, value: dict[str, Any]) -> str:
        separator, self._is_first = "" if self._is_first else ",\n", False
        return separator + dumped(value)


class Delimited:
    """A line with the header, then a line for each row."""

    media_type = DELIMITED

    def header(self, query_id: str, schema: Schema) -> str:
        return dumped(described(query_id, schema)) + "\n"

    def row(self, row: Row, schema: Schema) -> str:
        return dumped(json_row(row.values, schema)) + "\n"

    def error(self, error: dict[str, Any]) -> str:
        return dumped(error) + "\n"

    def end(self, message: str) -> str:
        return ""


class OneArray:
    """A JSON array: the header, then the rows."""

    media_type = JSON

    def header(self, query_id: str, schema: Schema) -> str:
        return "[" + dumped(described(query_id, schema))

    def row(self, row: Row, schema: Schema) -> str:
        return ",\n" + dumped(json_row(row.values, schema))

    def error(self, error: dict[str, Any]) -> str:
        return ",\n" + dumped(error) + "]"

    def end(self, message: str) -> str:
        return "]"


def described(query_id: str, schema: Schema) -> dict[str, Any]:
    return {
        "queryId": query_id,
        "columnNames": [each.name for each in schema],
        "columnTypes": [str(each.kind) for each in schema],
    }


def stream_form(accept: Sequence[str] | str) -> Form | None:
    """The form of /query-stream that a reader asks for; None if there is none."""
    for kind in accept.split(",") if isinstance(accept, str) else accept:
        match kind.partition(";")[0].strip():
            case "" | "*/*" | "application/*" | "application/vnd.ksqlapi.delimited.v1":
                return Delimited()
            case "application/json":
                return OneArray()
            case "application/vnd.ksql.v1+json":
                return Streamed()
    return None
