"""Endpoints declared once give routes and an OpenAPI document."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas.services.openapi import Failure, Operations, Parameter, document, nullable, object_of
from barnabas.services.openapi_page import page
from barnabas.services.routes import Need

THINGS = Operations("things", {"number": "integer"})


@THINGS.declare(
    "GET",
    "/things/{name}/{number:int}",
    "Describe a thing",
    query=(Parameter("deep", "boolean", "with its parts"),),
    responses={200: "Thing"},
    errors=(Failure(404, 40401, "no such thing"), Failure(404, 40402, "no such number")),
)
async def get_thing(request: Request) -> Response:
    return JSONResponse({"name": request.path_params["name"]})


@THINGS.declare("POST", "/things", "Make a thing", request=["Thing"], responses={204: None})
async def make_thing(request: Request) -> Response:
    return Response(status_code=204)


def test_a_declared_endpoint_is_a_route_with_its_right() -> None:
    first, second = THINGS.routes()
    assert (first.path, first.needs, first.endpoint) == (
        "/things/{name}/{number:int}",
        Need.READ,
        get_thing,
    )
    assert second.needs is Need.WRITE
    assert second.methods == {"POST"}


def test_endpoints_can_be_bound_to_what_they_serve() -> None:
    seen = []

    def bind(endpoint: object):  # type: ignore[no-untyped-def]
        seen.append(endpoint)
        return make_thing

    assert [route.endpoint for route in THINGS.routes(bind)] == [make_thing, make_thing]
    assert seen == [get_thing, make_thing]


def test_the_document_describes_parameters_bodies_and_errors() -> None:
    schemas = {"Thing": object_of({"name": "string"}, {"colour": nullable("string")}, closed=True)}
    found = document("Things", "1", [THINGS], schemas)
    get = found["paths"]["/things/{name}/{number}"]["get"]
    assert [(each["name"], each["in"], each["required"]) for each in get["parameters"]] == [
        ("name", "path", True),
        ("number", "path", True),
        ("deep", "query", False),
    ]
    assert get["responses"]["404"]["description"] == "40401: no such thing; 40402: no such number"
    assert get["responses"]["200"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Thing"
    }
    body = found["paths"]["/things"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}
    thing = found["components"]["schemas"]["Thing"]
    assert thing["required"] == ["name"]
    assert thing["properties"]["colour"]["type"] == ["string", "null"]


def test_the_page_loads_nothing_from_other_hosts() -> None:
    text = page("Things <1>")
    assert "Things &lt;1&gt;" in text
    assert "http://" not in text
    assert "https://" not in text
    assert 'fetch("openapi.json")' in text
