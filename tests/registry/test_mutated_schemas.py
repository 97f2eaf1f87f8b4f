"""Schemas with a few characters changed: each is refused with 42201, or registered and found again."""

from __future__ import annotations

import asyncio
import random

import pytest

from registry.instant import InstantRegistry

AVRO = (
    '{"type":"record","name":"A","namespace":"n","doc":"d","aliases":["B"],"fields":['
    '{"name":"x","type":["null","string"],"default":null,"order":"ignore"},'
    '{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"],"default":"A"}},'
    '{"name":"m","type":{"type":"map","values":{"type":"array","items":"long"}}},'
    '{"name":"f","type":{"type":"fixed","name":"F","size":16,"logicalType":"decimal","precision":4}},'
    '{"name":"r","type":["null","n.A"]},{"name":"b","type":"bytes","default":"\\u00ff"}]}'
)
JSON = (
    '{"$schema":"http://json-schema.org/draft-07/schema#","title":"T","type":"object",'
    '"definitions":{"a":{"type":["string","null"],"minLength":1,"pattern":"^a+$"}},'
    '"properties":{"x":{"$ref":"#/definitions/a"},"z":{"enum":[1,"a",null]},"w":{"not":{"const":1}},'
    '"y":{"oneOf":[{"type":"integer","minimum":0},{"type":"array","items":{"$ref":"#"}}]}},'
    '"required":["x"],"additionalProperties":false,"patternProperties":{"^p":{"multipleOf":2}}}'
)
PROTO3 = (
    'syntax = "proto3"; package p; import "google/protobuf/timestamp.proto"; option java_package = "x";'
    "message M { map<string,int32> m = 2; string a = 1 [deprecated = true]; oneof o { int32 c = 5; } E e = 6;"
    "google.protobuf.Timestamp t = 7; message N { int32 z = 1; } reserved 10 to 12; }"
    "enum E { A = 0; B = 1; } service S { rpc G(M) returns (stream M); }"
)
PROTO2 = (
    'syntax = "proto2"; message A { required int32 a = 1 [default = 3]; extensions 100 to 200;'
    "optional group G = 2 { optional string s = 1; } } extend A { optional int32 b = 100; }"
)
SCHEMAS = [("AVRO", AVRO), ("JSON", JSON), ("PROTOBUF", PROTO3), ("PROTOBUF", PROTO2)]
PIECES = [
    *'"{}[],:; \\=.*/<>',
    *("null", "true", "1", "-1", "1e400", '""', '"type"', '"record"', '"$ref"', '"#"', "anyOf", "\\u0000"),
    *(
        "é",
        "message",
        "repeated",
        "optional",
        "999999999999",
        "oneof",
        "import",
        "//",
        "/*",
        "map<",
        "extend",
    ),
]


def mutated(text: str, rng: random.Random) -> str:
    for _ in range(rng.randrange(1, 4)):
        start = rng.randrange(len(text) + 1)
        end = start + rng.randrange(12)
        other = rng.randrange(len(text) + 1)
        piece = rng.choice(["", rng.choice(PIECES), text[other : other + rng.randrange(60)]])
        text = text[:start] + piece + text[end:]
    return text


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.long)])
def test_schemas_with_a_few_characters_changed(count: int) -> None:
    rng = random.Random(count)

    async def work() -> tuple[int, int]:
        registered = refused = 0
        async with InstantRegistry(parse=None).client() as client:
            for _ in range(count):
                kind, text = rng.choice(SCHEMAS)
                body = {"schema": mutated(text, rng), "schemaType": kind}
                normalize = rng.choice(["true", "false"])
                answer = await client.post(
                    f"/subjects/{kind}/versions?force=true&normalize={normalize}", json=body
                )
                if answer.status_code == 422:
                    assert answer.json()["error_code"] == 42201, (body, answer.text)
                    refused += 1
                    continue
                assert answer.status_code == 200, (body, answer.text)
                made = answer.json()
                registered += 1
                stored = {"schema": made["schema"], "schemaType": kind}
                again = (await client.post(f"/subjects/{kind}", json=stored)).json()
                assert again.get("id") == made["id"], (body, made, again)
                for form in ("resolved", "serialized", "ignore_extensions"):
                    shown = await client.get(f"/schemas/ids/{made['id']}?format={form}")
                    assert shown.status_code == 200, (body, form, shown.text)
        return registered, refused

    registered, refused = asyncio.run(work())
    assert registered > 0 and refused > count // 2
