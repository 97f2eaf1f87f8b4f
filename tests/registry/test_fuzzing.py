"""Requests made up from the OpenAPI description: every answer is one that the description allows.

The registry knows the real languages of schemas. No request may be answered 500, whatever it holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import openapi
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from registry.instant import InstantRegistry
from registry.running import running

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SAMPLE = ("GET /schemas/ids/{id}", "POST /subjects/{subject}/versions")
SEED = [
    ("POST", "/subjects/s/versions", {"schema": '{"type":"record","name":"A","fields":[]}'}),
    ("POST", "/subjects/j/versions", {"schema": '{"type":"object"}', "schemaType": "JSON"}),
    ("POST", "/subjects/p/versions", {"schema": 'syntax="proto3"; message M {}', "schemaType": "PROTOBUF"}),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(lambda settings: InstantRegistry(parse=None).service) as found:
        for method, path, body in SEED:
            assert httpx.request(method, found + path, json=body).status_code == 200
        yield found


def fuzz(url: str, wanted: tuple[str, ...] | None, examples: int, modes: list[GenerationMode]) -> int:
    """Ask the operations of these labels, or all; how many requests were sent."""
    schema = openapi.from_url(f"{url}/openapi.json")
    sent = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if wanted is not None and operation.label not in wanted:
            continue
        if wanted is None and "/contexts/{context}/" in operation.label:
            continue  # the same endpoints again
        for mode in modes:

            @settings(
                max_examples=examples,
                deadline=None,
                derandomize=wanted is not None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                nonlocal sent
                sent += 1
                response = case.call(base_url=url)
                case.validate_response(response, checks=CHECKS)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the library's own
                try:
                    ask()
                except Unsatisfiable:  # nothing that an operation takes can be made wrong
                    assert mode is GenerationMode.NEGATIVE
    return sent


def test_a_sample_of_requests_is_answered_as_described(url: str) -> None:
    assert fuzz(url, SAMPLE, 5, [GenerationMode.POSITIVE]) >= 5


@pytest.mark.long
def test_all_operations_answer_as_described(url: str) -> None:
    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    assert fuzz(url, None, 25, modes) > 1000
