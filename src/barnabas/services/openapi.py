"""Endpoints declared once: the routes of a service, and their description as OpenAPI 3.1.

In: endpoints with a declaration beside each. Out: routes for the frame, the document for `/openapi.json`.
Does not know: what endpoints do. Schemas are plain JSON Schema; a name stands for a component, a list of one
stands for an array of it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from barnabas.services.routes import Need, ServiceRoute

Schema = str | list[Any] | dict[str, Any] | None
Endpoint = Callable[[Any], Awaitable[Any]]  # of a request, or of what `bind` makes of one
Serve = Callable[[Request], Awaitable[Response]]
E = TypeVar("E", bound=Endpoint)

OPENAPI_VERSION = "3.1.0"
JSON = ("application/json",)
ERROR = "Error"
PRIMITIVES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1},
    "long": {"type": "integer", "format": "int64", "minimum": -(2**63), "maximum": 2**63 - 1},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "any": {},
}
ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"error_code": {"type": "integer"}, "message": {"type": ["string", "null"]}},
    "required": ["error_code", "message"],
}


class Parameter(NamedTuple):
    """A parameter of the query, or of a header."""

    name: str
    schema: Schema = "string"
    text: str = ""
    required: bool = False
    place: str = "query"


class Failure(NamedTuple):
    """An error that an endpoint may answer. `code` is the API's own."""

    status: int
    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `request` is the schema of the body; None: there is no body."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    responses: Mapping[int, Schema]
    needs: Need | None
    query: Sequence[Parameter] = ()
    request: Schema = None
    request_required: bool = True
    errors: Sequence[Failure] = ()
    request_types: Sequence[str] = JSON
    response_types: Sequence[str] = JSON
    is_stream: bool = False
    body_bytes_max: int | None = None
    tag: str = ""
    id: str = ""

    def route(self, bind: Callable[[Endpoint], Serve] | None = None) -> ServiceRoute:
        return ServiceRoute(
            self.path,
            self.endpoint if bind is None else bind(self.endpoint),
            needs=self.needs,
            methods=(self.method,),
            is_stream=self.is_stream,
            body_bytes_max=self.body_bytes_max,
        )


@dataclass(slots=True)
class Operations:
    """The endpoints of one part of an API, in the order of their declarations.

    `declare` is a decorator: the endpoint stays a plain function. `path_types` are the schemas of parameters
    in paths that are no strings. `writes` is the right that methods other than GET need, unless they say it.
    """

    tag: str
    path_types: Mapping[str, Schema] = field(default_factory=dict)
    declared: list[Operation] = field(default_factory=list)
    writes: Need = Need.WRITE

    def declare(self, method: str, path: str, summary: str, **details: Any) -> Callable[[E], E]:
        """Declare an endpoint. `details` are fields of `Operation`."""

        def note(endpoint: E) -> E:
            details.setdefault("needs", Need.READ if method in ("GET", "HEAD") else self.writes)
            details.setdefault("id", getattr(endpoint, "__name__", ""))
            operation = Operation(method, path, endpoint, summary, tag=self.tag, **details)
            self.declared.append(operation)
            return endpoint

        return note

    def routes(self, bind: Callable[[Endpoint], Serve] | None = None) -> list[ServiceRoute]:
        """The routes. `bind` makes a function of a request out of an endpoint that takes something else."""
        return [operation.route(bind) for operation in self.declared]


def schema_of(schema: Schema) -> dict[str, Any]:
    """JSON Schema of a name, of a list of one, or of a dictionary whose values may be names too."""
    if isinstance(schema, str):
        return (
            dict(PRIMITIVES[schema]) if schema in PRIMITIVES else {"$ref": f"#/components/schemas/{schema}"}
        )
    if isinstance(schema, list):
        return {"type": "array", "items": schema_of(schema[0])}
    return dict(schema or {})


def object_of(
    required: Mapping[str, Schema] | None = None,
    optional: Mapping[str, Schema] | None = None,
    *,
    closed: bool = False,
) -> dict[str, Any]:
    """The schema of an object. `closed`: other fields are refused."""
    fields = {**(required or {}), **(optional or {})}
    found: dict[str, Any] = {
        "type": "object",
        "properties": {name: schema_of(each) for name, each in fields.items()},
    }
    if required:
        found["required"] = list(required)
    if closed:
        found["additionalProperties"] = False
    return found


def nullable(schema: Schema) -> dict[str, Any]:
    found = schema_of(schema)
    kind = found.get("type")
    return (
        {**found, "type": [kind, "null"]} if isinstance(kind, str) else {"anyOf": [found, {"type": "null"}]}
    )


def one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def document(
    title: str,
    version: str,
    parts: Iterable[Operations],
    schemas: Mapping[str, Mapping[str, Any]],
    *,
    description: str = "",
) -> dict[str, Any]:
    """The description of all declared endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    tags = []
    for part in parts:
        if part.tag not in tags:
            tags.append(part.tag)
        for operation in part.declared:
            path = re.sub(r":\w+}", "}", operation.path)
            paths.setdefault(path, {})[operation.method.lower()] = described(operation, path, part.path_types)
    return {
        "openapi": OPENAPI_VERSION,
        "info": {"title": title, "version": version, "description": description},
        "tags": [{"name": tag} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": {ERROR: ERROR_SCHEMA, **schemas},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{}, {"basic": []}, {"bearer": []}],
    }


def described(operation: Operation, path: str, path_types: Mapping[str, Schema]) -> dict[str, Any]:
    responses = {
        str(status): response_of(HTTPStatus(status).phrase, schema, operation.response_types)
        for status, schema in operation.responses.items()
    }
    error_types = [kind for kind in operation.response_types if kind.endswith("json")] or JSON
    by_status: dict[int, list[Failure]] = {}
    for failure in operation.errors:
        by_status.setdefault(failure.status, []).append(failure)
    for status, failures in by_status.items():
        text = "; ".join(f"{each.code}: {each.text}" for each in failures)
        responses[str(status)] = response_of(text, ERROR, error_types)
    responses["default"] = response_of("any other error", ERROR, error_types)
    found: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": operation.id,
        "tags": [operation.tag],
        "parameters": [
            *(
                parameter_of(Parameter(name, path_types.get(name, "string"), "", True, "path"))
                for name in re.findall(r"{(\w+)}", path)
            ),
            *map(parameter_of, operation.query),
        ],
        "responses": responses,
    }
    if operation.request is not None:
        content = {kind: {"schema": schema_of(operation.request)} for kind in operation.request_types}
        found["requestBody"] = {"required": operation.request_required, "content": content}
    return found


def parameter_of(parameter: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "schema": schema_of(parameter.schema),
    }
    if parameter.text:
        found["description"] = parameter.text
    return found


def response_of(text: str, schema: Schema, kinds: Sequence[str]) -> dict[str, Any]:
    if schema is None:
        return {"description": text}
    return {"description": text, "content": {kind: {"schema": schema_of(schema)} for kind in kinds}}
