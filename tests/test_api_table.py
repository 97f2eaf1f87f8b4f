"""docs/apis.md is what the handlers declare; BARNABAS_REWRITE=1 writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.broker.api import routes
from barnabas.broker.api.needs import VERSION_MAX, Need, Where
from barnabas.broker.handlers.loading import load_handlers
from barnabas.protocol import apis
from barnabas.security.acls.vocabulary import word

PAGE = Path(__file__).parents[1] / "docs" / "apis.md"
HEAD = """# APIs

The APIs that a node serves, from the handlers' own declarations: every API of Apache Kafka 4.3.1.

| key | API | versions | listeners | handler | the caller needs |
| --- | --- | --- | --- | --- | --- |
"""


def text(need: Need) -> str:
    """One right: what it is, where the names are, where a refusal shows."""
    said = f"{word(need.operation)} {word(need.resource)}"
    if need.instead is not None:
        operation, resource = need.instead.value
        said += f" or {word(operation)} {word(resource)}"
    if need.names and need.where is Where.ITEM:
        said += f", each (`{need.names.rstrip('.')}`)"
    if need.where is Where.LEFT_OUT:
        said += ", others left out"
    if need.version_min:
        said += f", since {need.version_min}"
    if need.version_max < VERSION_MAX:
        said += f", up to {need.version_max}"
    return said if need.listeners == "broker controller" else f"{said}, {need.listeners} listeners"


def table() -> str:
    load_handlers()
    kinds = ("broker", "controller")
    declared = {id(endpoint): endpoint for kind in kinds for endpoint in routes.endpoints(kind)}
    lines = []
    for endpoint in sorted(declared.values(), key=lambda each: (each.key, sorted(each.listeners))):
        key = endpoint.key
        what = "; ".join(dict.fromkeys(text(need) for need in endpoint.needs)) or "nothing"
        listeners = ", ".join(sorted(endpoint.listeners))
        versions = f"{endpoint.version_min}-{endpoint.version_max}"
        module = endpoint.handler.__module__.rpartition(".")[2]
        lines.append(
            f"| {int(key)} | {apis.APIS[key].name} | {versions} | {listeners} | `{module}` | {what} |"
        )
    return HEAD + "\n".join(lines) + "\n"


def test_the_page_of_apis_is_what_the_handlers_declare() -> None:
    if os.environ.get("BARNABAS_REWRITE") == "1":
        PAGE.write_text(table())
    assert PAGE.read_text() == table()


@pytest.mark.parametrize("kind", ["broker", "controller"])
def test_every_api_of_apache_kafka_is_served(kind: str) -> None:
    load_handlers()
    served = {endpoint.key for endpoint in routes.endpoints(kind)}
    assert [api.name for api in apis.APIS.values() if getattr(api, kind) and api.key not in served] == []
