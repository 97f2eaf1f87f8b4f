"""Requests made from the OpenAPI description: no endpoint fails on its own, and answers are as described."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from barnabas.rest.application.service import description
from rest.serving import HTTP, Served

SCHEMA = schemathesis.openapi.from_dict(description())  # type: ignore[arg-type]
OPERATIONS = {
    f"{each.ok().method.upper()} {each.ok().path}": each.ok() for each in SCHEMA.get_all_operations()
}
TOPIC = "fuzzed"
SAMPLE = (
    "POST /v3/clusters/{cluster_id}/topics",
    "GET /v3/clusters/{cluster_id}/acls",
    "POST /v3/clusters/{cluster_id}/topics/{topic_name}/records",
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def fuzzed(proxy: Served) -> Served:
    HTTP.post(f"{proxy.cluster}/topics", json={"topic_name": TOPIC, "partitions_count": 2})
    return proxy


def try_operation(name: str, served: Served, examples: int) -> None:
    session = requests.Session()
    session.trust_env = False

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=OPERATIONS[name].as_strategy(), real=st.booleans(), existing=st.booleans())
    def run(case: Any, real: bool, existing: bool) -> None:
        if "cluster_id" in case.path_parameters and real:
            case.path_parameters["cluster_id"] = served.cluster_id
        if "topic_name" in case.path_parameters and existing and case.method != "DELETE":
            case.path_parameters["topic_name"] = TOPIC
        if name.endswith("/tail"):
            case.query = {**(case.query or {}), "limit": "0"}  # else it goes on
        if name.startswith("POST /v3/") and name.endswith("/records"):
            case.headers = {**(case.headers or {}), "content-type": "application/json"}
        response = case.call(base_url=served.url, session=session, timeout=30)
        case.validate_response(response, checks=CHECKS)

    try:
        run()
    finally:
        session.close()


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_endpoints_stands_a_few_requests(fuzzed: Served, name: str) -> None:
    try_operation(name, fuzzed, 5)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_endpoint_stands_many_requests(fuzzed: Served, name: str) -> None:
    try_operation(name, fuzzed, 60)
    assert HTTP.get(f"{fuzzed.url}/v3/clusters").status_code == 200
