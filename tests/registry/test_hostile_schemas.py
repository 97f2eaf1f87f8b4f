"""Schemas that are huge, deep, circular or broken: the API's own code and a text, and nothing is stored."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from registry.instant import InstantRegistry

DEEP = 5_000


AVRO = {
    "empty object": "{}",
    "bare word": "nonsense",
    "unknown type": '"strnig"',
    "number": "1",
    "null": "null",
    "deep text": "[" * DEEP + "]" * DEEP,
    "deep objects": '{"type":' * DEEP + '"string"' + "}" * DEEP,
    "field twice": json.dumps({"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}] * 2}),
    "bad default": '{"type":"record","name":"A","fields":[{"name":"a","type":"int","default":"x"}]}',
    "huge default": '{"type":"record","name":"A","fields":[{"name":"a","type":"int","default":1e999}]}',
    "bad name": '{"type":"record","name":"1A","fields":[]}',
    "fixed of no size": '{"type":"fixed","name":"F","size":-1}',
    "enum of strange symbols": '{"type":"enum","name":"E","symbols":["a-b"]}',
    "union in union": '["null",["int"]]',
    "half a surrogate": '{"type":"record","name":"A","doc":"\\\\ud800","fields":"x"}',
}
JSON = {
    "bare word": "nonsense",
    "number": "1",
    "wrong type": '{"type":"strnig"}',
    "wrong keyword": '{"type":"object","properties":[]}',
    "missing reference": '{"$ref":"other.json"}',
    "broken pattern": '{"type":"string","pattern":"("}',
    "deep text": "[" * DEEP + "]" * DEEP,
}
PROTOBUF = {
    "bare word": "nonsense",
    "unclosed": 'syntax = "proto3"; message A {',
    "unknown type": 'syntax = "proto3"; message A { B b = 1; }',
    "number twice": 'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }',
    "number zero": 'syntax = "proto3"; message A { int32 a = 0; }',
    "missing import": 'syntax = "proto3"; import "nope.proto"; message A {}',
    "deep messages": 'syntax = "proto3"; ' + "message A {" * DEEP + "}" * DEEP,
    "descriptor of noise": base64.b64encode(bytes(range(256))).decode(),
    "unknown syntax": 'syntax = "proto9"; message A {}',
}
CASES = [
    (kind, name, text)
    for kind, texts in (("AVRO", AVRO), ("JSON", JSON), ("PROTOBUF", PROTOBUF))
    for name, text in texts.items()
]


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, _, text in CASES], ids=[f"{k}-{n}" for k, n, _ in CASES]
)
def test_a_broken_schema_is_refused_everywhere(kind: str, text: str) -> None:
    registry = InstantRegistry(parse=None)

    async def work() -> None:
        async with registry.client() as client:
            body = {"schema": text, "schemaType": kind}
            for path in ("/subjects/s/versions", "/compatibility/subjects/s/versions/latest"):
                response = await client.post(path, json=body)
                assert (response.status_code, response.json()["error_code"]) == (422, 42201), response.text
                assert len(response.json()["message"]) > 20
            assert registry.changes.log == []

    asyncio.run(work())


def asked(*steps: tuple[str, str, Any]) -> list[Any]:
    """Responses of a registry with the real languages, as status and JSON."""

    async def work() -> list[Any]:
        async with InstantRegistry(parse=None).client() as client:
            found = []
            for method, path, body in steps:
                response = await client.request(method, path, json=body)
                found.append((response.status_code, response.json()))
            return found

    return asyncio.run(work())


def test_schemas_that_refer_to_each_other_in_a_circle_end() -> None:
    def record(name: str, other: str) -> dict[str, Any]:
        field = {"name": "next", "type": f"n.{other}"}
        text = json.dumps({"type": "record", "name": name, "namespace": "n", "fields": [field]})
        return {"schema": text, "references": [{"name": f"n.{other}", "subject": other, "version": 1}]}

    plain = {"schema": '{"type":"record","name":"B","namespace":"n","fields":[]}'}
    found = asked(
        ("POST", "/subjects/B/versions", plain),
        ("POST", "/subjects/A/versions", record("A", "B")),
        ("PUT", "/mode?force=true", {"mode": "IMPORT"}),
        ("POST", "/subjects/B/versions", {**record("B", "A"), "id": 9, "version": 1}),
        ("GET", "/schemas/ids/9?format=resolved", None),
        ("GET", "/schemas/ids/2?format=resolved", None),
    )
    assert all(status < 500 for status, _ in found), found


def test_long_chains_of_references_are_bounded() -> None:
    steps: list[tuple[str, str, Any]] = []
    for number in range(110):
        fields = [] if number == 0 else [{"name": "inner", "type": f"R{number - 1}"}]
        body: dict[str, Any] = {
            "schema": json.dumps({"type": "record", "name": f"R{number}", "fields": fields})
        }
        if number:
            body["references"] = [{"name": f"R{number - 1}", "subject": f"r{number - 1}", "version": 1}]
        steps.append(("POST", f"/subjects/r{number}/versions", body))
    found = asked(*steps)
    statuses = [status for status, _ in found]
    assert statuses.count(200) >= 50 and {*statuses} <= {200, 422}


def test_a_wide_schema_is_registered_and_compared() -> None:
    fields = [
        {"name": f"field_{number}", "type": ["null", "string"], "default": None} for number in range(3000)
    ]
    wide = {"schema": json.dumps({"type": "record", "name": "Wide", "fields": fields})}
    fields = [*fields[:-1], {"name": "other", "type": "int"}]
    wider = {"schema": json.dumps({"type": "record", "name": "Wide", "fields": fields})}
    found = asked(("POST", "/subjects/w/versions", wide), ("POST", "/subjects/w/versions", wider))
    assert [status for status, _ in found] == [200, 409]
    assert "other" in found[1][1]["message"]


def test_patterns_that_explode_are_not_run() -> None:
    schema = {"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}}}
    newer = {**schema, "properties": {"a" * 40 + "!": {"type": "integer"}}}
    found = asked(
        ("POST", "/subjects/p/versions", {"schema": json.dumps(schema), "schemaType": "JSON"}),
        ("POST", "/subjects/p/versions", {"schema": json.dumps(newer), "schemaType": "JSON"}),
    )
    assert all(status in (200, 409, 422) for status, _ in found), found
