"""Declarations, api keys and error codes against the facts of Apache Kafka 4.3.1 in `facts.json`.

There a field is one line: path, type, versions, then what else its schema says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ErrorCode, Struct
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.message import default_of
from barnabas.protocol.schema import Versions

from .declarations import BY_NAME

FACTS = json.loads((Path(__file__).parent / "facts.json").read_text())

Described = tuple[str, str, list[int], list[int], int | None, bool, Any]
"""Path, type, versions with the field, versions where it may be null, tag, ignorable, default."""


def test_exactly_the_messages_of_the_facts_are_declared() -> None:
    assert BY_NAME.keys() == FACTS["messages"].keys()


@pytest.mark.parametrize("name", FACTS["messages"])
def test_declarations_equal_the_facts_of_apache_kafka(name: str) -> None:
    cls, fact = BY_NAME[name], FACTS["messages"][name]
    assert cls.schema.key == fact.get("key")
    assert cls.schema.versions == Versions(fact["versions"])
    valid = list(Versions(fact["versions"]))
    assert [v in cls.schema.flexible for v in valid] == [v in Versions(fact["flexible"]) for v in valid]
    assert list(declared(cls, valid)) == [from_fact(line, valid) for line in fact["fields"]]


def test_the_api_keys_are_those_of_the_facts() -> None:
    assert [[key.value, key.name] for key in ApiKey] == [fact[:2] for fact in FACTS["apis"]]


def test_the_apis_in_use_have_the_versions_and_listeners_of_the_facts() -> None:
    ours = {
        api.key.value: (
            api.versions,
            [name for name, serves in (("broker", api.broker), ("controller", api.controller)) if serves],
            api.forwardable,
            api.cluster_action,
        )
        for api in APIS.values()
    }
    facts = {
        key: (Versions(versions), listeners.split(", "), "forwardable" in flags, "cluster action" in flags)
        for key, _, versions, listeners, *flags in FACTS["apis"]
        if listeners
    }
    key = ApiKey.INIT_PRODUCER_ID
    facts[key] = (Versions("0-5"), *facts[key][1:])  # its newest version is unstable and not announced
    assert ours == facts


def test_the_error_codes_are_those_of_the_facts() -> None:
    ours = [
        [
            code.value,
            code.name,
            *(["retriable"] if code.retriable else []),
            *(["refresh metadata"] if code.needs_metadata_refresh else []),
        ]
        for code in ErrorCode
    ]
    assert ours == FACTS["errors"]


def declared(cls: type[Struct], valid: list[int], path: str = "") -> Iterator[Described]:
    for field in cls.schema.fields:
        base = field.struct.__name__ if field.struct else field.type.lower()
        present = [v for v in valid if v in field.versions]
        yield (
            path + field.name,
            ("[]" if field.is_array else "") + base,
            present,
            [v for v in present if v in field.nullable],
            field.tag,
            field.ignorable and present != valid,
            struct_or(default_of(field)),
        )
        if field.struct:
            yield from declared(field.struct, valid, f"{path}{field.name}.")


def struct_or(default: Any) -> Any:
    return "a struct" if isinstance(default, Struct) else default


def from_fact(line: str, valid: list[int]) -> Described:
    path, kind, versions, *rest = line.split(" ", 3)
    options = dict(option.partition(":")[::2] for option in " ".join(rest).split())
    present = [v for v in valid if v in Versions(versions)]
    nullable = Versions(options.get("nullable", "none"))
    return (
        ".".join(snake(part) for part in path.split(".")),
        kind,
        present,
        [v for v in present if v in nullable],
        int(options["tag"]) if "tag" in options else None,
        "ignorable" in options and present != valid,
        fact_default(kind, options.get("default")),
    )


def fact_default(kind: str, text: str | None) -> Any:
    if text == "null" or kind == "records":
        return None
    if kind.startswith("[]"):
        return []
    if kind[0].isupper():
        return "a struct"
    if kind == "bool":
        return text == "true"
    if kind == "float64":
        return float(text or 0)
    zeros: dict[str, Any] = {"string": "", "bytes": b"", "uuid": bytes(16)}
    return zeros[kind] if kind in zeros else int(text or "0", 0)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("KRaft", "Kraft")).lower()
