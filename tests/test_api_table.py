"""docs/apis.md is what the handlers declare; BARNABAS_REWRITE=1 writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

from barnabas.broker import routes
from barnabas.protocol import apis

PAGE = Path(__file__).parents[1] / "docs" / "apis.md"
HEAD = """# APIs

What a node serves, from the handlers' own declarations. Apache Kafka 4.3.1 has more; those are not announced.

| key | API | versions | listeners | the caller needs |
| --- | --- | --- | --- | --- |
"""


def table() -> str:
    routes.load_handlers()
    kinds = ("broker", "controller")
    declared = {id(endpoint): endpoint for kind in kinds for endpoint in routes.endpoints(kind)}
    served = {endpoint.key for endpoint in declared.values()}
    lines = []
    for endpoint in sorted(declared.values(), key=lambda each: (each.key, sorted(each.listeners))):
        key = endpoint.key
        needs = endpoint.needs
        what = f"{needs.operation} {needs.resource}".strip() + (f" (`{needs.names}`)" if needs.names else "")
        listeners = ", ".join(sorted(endpoint.listeners))
        versions = f"{endpoint.version_min}-{endpoint.version_max}"
        lines.append(f"| {int(key)} | {apis.APIS[key].name} | {versions} | {listeners} | {what} |")
    left_out = [
        api.name
        for api in apis.APIS.values()
        if api.broker and api.key not in served and not api.cluster_action
    ]
    return HEAD + "\n".join(lines) + "\n\nNot served yet: " + ", ".join(left_out) + ".\n"


def test_the_page_of_apis_is_what_the_handlers_declare() -> None:
    if os.environ.get("BARNABAS_REWRITE") == "1":
        PAGE.write_text(table())
    assert PAGE.read_text() == table()
