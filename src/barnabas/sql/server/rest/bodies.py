"""Bodies of requests and responses in ksqlDB's form.

In: requests. Out: their texts, properties and variables as `Asked`, or ApiError 40000; JSON responses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import parse_json
from barnabas.sql.execution.json_values import dumped
from barnabas.sql.server.commands.command import texts
from barnabas.sql.server.settings.properties import plain_names
from barnabas.sql.server.statements.errors import BAD_REQUEST, bad_request
from barnabas.sql.server.statements.request import check_property
from barnabas.sql.server.statements.session import Server, Session

KSQL_JSON = "application/vnd.ksql.v1+json"
JSON = "application/json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
BODY_BYTES_MAX = 4 << 20
BODY_S_MAX = 60.0
KSQL_NAMES = ("ksql", "streamsProperties", "sessionVariables")
STREAM_NAMES = ("sql", "properties", "sessionVariables")


@dataclass(frozen=True, slots=True)
class Asked:
    text: str
    properties: Mapping[str, str]
    variables: Mapping[str, str]
    sequence_number: int | None = None

    def session(self, server: Server) -> Session:
        """ApiError for a property that no session may set."""
        for name in self.properties:
            check_property(Session(server), name)
        return Session(server, dict(self.properties), dict(self.variables))


async def asked(request: Request, names: tuple[str, str, str] = KSQL_NAMES) -> Asked:
    return asked_in(await body_of(request), names)


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object of a body. The frame bounds no bodies of streaming routes, so they are bounded here."""
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_S_MAX):
            async for chunk in request.stream():
                data += chunk
                if len(data) > BODY_BYTES_MAX:
                    raise ApiError(413, BAD_REQUEST, f"a request has at most {BODY_BYTES_MAX} bytes")
    except TimeoutError:
        raise ApiError(408, BAD_REQUEST, f"the body did not arrive within {BODY_S_MAX:g} s") from None
    return object_in(bytes(data))


def object_in(data: bytes) -> dict[str, Any]:
    try:
        found = parse_json(data)
    except ApiError as error:
        raise bad_request(error.message) from None
    if not isinstance(found, dict):
        raise bad_request("the request must be a JSON object")
    return found


def asked_in_text(text: str, names: tuple[str, str, str] = KSQL_NAMES) -> Asked:
    return asked_in(object_in(text.encode()), names)


def asked_in(body: Mapping[str, Any], names: tuple[str, str, str]) -> Asked:
    text_name, properties_name, variables_name = names
    other = "sql" if text_name == "ksql" else "ksql"
    text = body.get(text_name, body.get(other))
    if not isinstance(text, str) or not text.strip():
        raise bad_request(f'the request needs "{text_name}", a text with statements')
    properties = body.get(properties_name) or body.get("properties") or body.get("streamsProperties") or {}
    variables = body.get(variables_name) or {}
    for name, value in ((properties_name, properties), (variables_name, variables)):
        if not isinstance(value, dict):
            raise bad_request(f'"{name}" must be an object of names and values')
    number = body.get("commandSequenceNumber")
    if number is not None and not isinstance(number, int):
        raise bad_request('"commandSequenceNumber" must be a number')
    return Asked(text, plain_names(texts(properties)), texts(variables), number)


def json_response(value: Any, request: Request, status: int = 200) -> Response:
    return Response(dumped(value).encode(), status, media_type=media_type(request))


def media_type(request: Request) -> str:
    accept = request.headers.get("accept", "")
    return JSON if JSON in accept and KSQL_JSON not in accept else KSQL_JSON
