"""The routes are those of Confluent's API v3, and the OpenAPI description is true of them."""

from __future__ import annotations

import re
from typing import Any

import httpx
import jsonschema
import pytest

from barnabas.rest.application.service import description
from barnabas.rest.v3.api import PARTS
from barnabas.services.routes import Need
from rest.serving import HTTP, Served
from rest.v3.endpoints import ENDPOINTS

DOCUMENT: Any = description()


def test_every_endpoint_of_the_api_has_a_route_and_no_other_has() -> None:
    declared = [(each.method, each.path) for part in PARTS for each in part.declared]
    assert len(declared) == len(set(declared))
    assert set(declared) == ENDPOINTS


def test_producing_needs_the_right_to_write_and_other_changes_that_of_an_administrator() -> None:
    for part in PARTS:
        for operation in part.declared:
            if operation.method == "GET":
                assert operation.needs is Need.READ
            else:
                is_produce = "/records" in operation.path
                assert operation.needs is (Need.WRITE if is_produce else Need.ADMIN), operation.path


def test_every_endpoint_of_v2_is_described() -> None:
    described = {
        (method.upper(), path)
        for path, methods in DOCUMENT["paths"].items()
        for method, each in methods.items()
        if each["tags"][0].startswith("v2")
    }
    assert ("POST", "/topics/{topic}") in described
    assert ("GET", "/consumers/{group}/instances/{instance}/records") in described
    assert len(described) == 22


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = {value["$ref"]} if "$ref" in value else set()
        return found.union(*(references(each) for each in value.values()))
    return set().union(*(references(each) for each in value)) if isinstance(value, list) else set()


def test_the_description_refers_to_schemas_that_exist() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert references(DOCUMENT) <= {f"#/components/schemas/{name}" for name in schemas}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    ids = [each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()]
    assert len(ids) == len(set(ids))


def test_every_error_that_is_declared_has_a_status_and_a_code() -> None:
    for part in PARTS:
        for operation in part.declared:
            for failure in operation.errors:
                assert 400 <= failure.status < 600
                assert str(failure.code).startswith(str(failure.status)), (operation.path, failure)


def conforms(response: httpx.Response, path: str, method: str = "get") -> None:
    described = DOCUMENT["paths"][path][method]["responses"][str(response.status_code)]
    schema = described["content"]["application/json"]["schema"]
    jsonschema.validate(response.json(), {**schema, "components": DOCUMENT["components"]})


LISTS = ["", "/brokers", "/broker-configs", "/topics", "/topics/-/configs", "/consumer-groups", "/acls"]


@pytest.mark.parametrize("path", [*LISTS, "/brokers/-/configs", "/topics/-/partitions/-/reassignment"])
def test_answers_are_as_described(proxy: Served, topic: str, path: str) -> None:
    conforms(HTTP.get(proxy.cluster + path), "/v3/clusters/{cluster_id}" + path)


def test_answers_about_a_topic_are_as_described(proxy: Served, topic: str) -> None:
    root = "/v3/clusters/{cluster_id}/topics/{topic_name}"
    for path, values in (
        ("", {}),
        ("/configs", {}),
        ("/configs/{name}", {"name": "retention.ms"}),
        ("/partitions", {}),
        ("/partitions/{partition_id}", {"partition_id": 0}),
        ("/partitions/{partition_id}/offset", {"partition_id": 0}),
        ("/partitions/{partition_id}/replicas", {"partition_id": 0}),
    ):
        filled = path.format(**values)
        conforms(HTTP.get(f"{proxy.cluster}/topics/{topic}{filled}"), root + path)
    record = {"value": {"type": "JSON", "data": 1}}
    url = f"{proxy.cluster}/topics/{topic}/records"
    conforms(HTTP.post(url, json=record), f"{root}/records", "post")
    batch = {"entries": [{"id": "1", **record}, {"id": "2", "partition_id": 99}]}
    conforms(HTTP.post(f"{url}:batch", json=batch), f"{root}/records:batch", "post")


def test_the_page_and_the_document_are_served(proxy: Served) -> None:
    assert HTTP.get(f"{proxy.url}/openapi.json").json() == DOCUMENT
    page = HTTP.get(f"{proxy.url}/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert re.search(r"<script>.*openapi\.json", page.text, re.DOTALL)
