"""Formats by a schema registry: records of several versions in one column, and records written with one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from barnabas.client.core.topology import TopicPartition
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.decoding import Decoding
from barnabas.spark.formats.formats import (
    CannotDecode,
    Codec,
    Format,
    decode_column,
    encode_column,
    format_of,
)
from barnabas.spark.options import source_options
from registry_stub import Registry, registry

V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "number", "type": "long", "aliases": ["id"]},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "country", "type": "string", "default": "CH"},
    ],
}


@pytest.fixture
def there() -> Iterator[Registry]:
    with registry() as found:
        yield found


def declared(there: Registry, name: str = "avro", **options: str) -> Format:
    given = {"value.format": name, "schema.registry.url": there.url, "subscribe": "orders"}
    named = {option.replace("__", "."): value for option, value in options.items()}
    found = format_of({**given, **named}, "value")
    assert found is not None
    return found


def codec(there: Registry, name: str = "avro", **options: str) -> Codec:
    return declared(there, name, **options).codec()


def avro(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + schema_id.to_bytes(4, "big") + out.getvalue()


def test_records_of_several_versions_become_one_column(there: Registry) -> None:
    old, new = there.add("orders-value", V1), there.add("orders-value", V2)
    found = codec(there)
    assert found.ddl == "struct<`number`: bigint, `note`: string, `country`: string>"
    written = [avro(old, V1, {"id": 1}), avro(new, V2, {"number": 2, "note": "n", "country": "DE"})]
    kind = pa.struct([("number", pa.int64()), ("note", pa.string()), ("country", pa.string())])
    column, errors = decode_column(found, pa.array([*written, None], pa.binary()), kind)
    assert errors is None
    assert column.to_pylist() == [
        {"number": 1, "note": None, "country": "CH"},
        {"number": 2, "note": "n", "country": "DE"},
        None,
    ]


def test_a_schema_is_fetched_once_per_id(there: Registry) -> None:
    old, _ = there.add("orders-value", V1), there.add("orders-value", V2)
    found = codec(there)
    there.asked.clear()
    for number in range(50):
        assert found.decode(avro(old, V1, {"id": number}))["number"] == number
    assert there.asked == [f"/schemas/ids/{old}"]
    assert declared(there).codec() is found  # the same in every batch of a process


def test_a_version_is_fixed_when_the_query_starts(there: Registry) -> None:
    there.add("orders-value", V1)
    latest = declared(there)
    there.add("orders-value", V2)
    assert latest.registered is not None and latest.registered.version == 1
    assert latest.codec().ddl == "struct<`id`: bigint>"
    assert declared(there).registered != latest.registered
    assert declared(there, value__schema__version="1") == latest
    assert (
        declared(there, value__subject="orders-value", subscribe="a,b").registered
        == declared(there).registered
    )


def test_broken_records_are_errors_of_their_rows(there: Registry) -> None:
    number = there.add("orders-value", V1)
    json_id = there.add("other-value", {"type": "object"}, "JSON")
    good = avro(number, V1, {"id": 1})
    broken = [
        b"",
        b"\0\0",
        b"\5abcdef",
        good[:-1],
        good + b"x",
        avro(99, V1, {"id": 1}),
        avro(json_id, V1, {"id": 1}),
    ]
    kind = pa.struct([("id", pa.int64())])
    column, errors = decode_column(codec(there), pa.array([good, *broken], pa.binary()), kind)
    assert column.to_pylist() == [{"id": 1}, *[None] * len(broken)]
    assert errors is not None and errors[0] is None
    for error, words in zip(
        errors[1:],
        (
            "empty",
            "too few for a schema id",
            "begins with byte 5",
            "EOFError",
            "left over",
            "no schema with id 99",
            "JSON",
        ),
        strict=True,
    ):
        assert error is not None and words in error


def test_an_unknown_id_is_asked_for_once_and_a_registry_that_is_down_ends_the_query(there: Registry) -> None:
    there.add("orders-value", V1)
    found = codec(there, schema__registry__max__retries="0")
    there.asked.clear()
    for _ in range(20):
        with pytest.raises(ValueError, match="no schema with id 77"):
            found.decode(avro(77, V1, {"id": 1}))
    assert there.asked == ["/schemas/ids/77"]
    there.is_broken = True
    with pytest.raises(CannotDecode, match="did not give the schema with id 78"):
        decode_column(
            found, pa.array([avro(78, V1, {"id": 1})], pa.binary()), pa.struct([("id", pa.int64())])
        )


def test_a_schema_of_no_use_is_asked_for_once(there: Registry) -> None:
    there.add("orders-value", V1)
    broken = there.add("other-value", "no schema at all")
    found = codec(there)
    there.asked.clear()
    for _ in range(5):
        with pytest.raises(ValueError, match=r"no schema|JSON"):
            found.decode(avro(broken, V1, {"id": 1}))
    assert there.asked == [f"/schemas/ids/{broken}"]


def test_headers_may_name_schemas(there: Registry) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    number = there.add("orders-value", V1)
    given = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", "columns": "value"}
    by_header = {
        "value.format": "avro",
        "value.schema.id.location": "header",
        "schema.registry.url": there.url,
    }
    options = source_options({**given, **by_header}, streaming=False)
    schema = StructType([StructField("value", StructType([StructField("id", LongType())]))])
    decoding = Decoding(options, schema)
    assert decoding.raw_columns == ("value", "offset", "headers")
    whole = avro(number, V1, {"id": 4})
    headers = pa.array(
        [[("other", b"x"), ("__value_schema_id", whole[:5])], [], None],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    values = pa.array([whole[5:], whole, None], pa.binary())
    batch = pa.RecordBatch.from_arrays([values, pa.array([0, 1, 2]), headers], ["value", "offset", "headers"])
    found = decoding.apply(batch, TopicPartition("orders", 0))
    assert found.to_pydict() == {"value": [{"id": 4}, {"id": 4}, None], "value_error": [None, None, None]}


def test_records_are_written_with_the_registered_schema(there: Registry) -> None:
    there.add("orders-value", V1)
    number = there.add("orders-value", V2)
    found = codec(there)
    rows = [{"number": 7, "note": None, "country": "FR"}, None]
    kind = pa.struct([("number", pa.int64()), ("note", pa.string()), ("country", pa.string())])
    written = encode_column(found, pa.array(rows, kind)).to_pylist()
    assert written == [avro(number, V2, rows[0]), None]


def test_maps_and_lists_are_written_and_read_again(there: Registry) -> None:
    fields = [
        {"name": "m", "type": {"type": "map", "values": "int"}},
        {"name": "l", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
    ]
    there.add("orders-value", {"type": "record", "name": "R", "fields": fields})
    found = codec(there)
    kind = pa.struct(
        [("m", pa.map_(pa.string(), pa.int32())), ("l", pa.list_(pa.map_(pa.string(), pa.string())))]
    )
    given = pa.array([{"m": [("a", 1)], "l": [[("x", "y")], []]}], kind)
    column, errors = decode_column(found, encode_column(found, given), kind)
    assert errors is None and column == given


def test_references_are_resolved(there: Registry) -> None:
    there.add(
        "address",
        {"type": "record", "name": "Address", "namespace": "a", "fields": [{"name": "zip", "type": "int"}]},
    )
    schema = {
        "type": "record",
        "name": "Customer",
        "fields": [{"name": "home", "type": "a.Address"}, {"name": "work", "type": ["null", "a.Address"]}],
    }
    reference = {"name": "a.Address", "subject": "address", "version": 1}
    number = there.add("orders-value", schema, references=[reference])
    found = codec(there)
    assert found.ddl == "struct<`home`: struct<`zip`: int>, `work`: struct<`zip`: int>>"
    data = b"\0" + number.to_bytes(4, "big") + b"\x02\x02\x04"
    assert found.decode(data) == {"home": {"zip": 1}, "work": {"zip": 2}}


PROTO1 = (
    'syntax = "proto3"; package p; message M { int32 a = 1; Inner i = 2; message Inner { string s = 1; } }'
)
PROTO2 = (
    'syntax = "proto3"; package p; import "google/protobuf/timestamp.proto"; message Other { }'
    " message M { int64 a = 1; Inner i = 2; repeated string tags = 3; google.protobuf.Timestamp at = 4;"
    " message Inner { string s = 1; int32 n = 2; } }"
)


def test_protobuf_messages_of_several_versions(there: Registry) -> None:
    old = there.add("orders-value", PROTO1, "PROTOBUF")
    new = there.add("orders-value", PROTO2, "PROTOBUF")
    found = codec(there, "protobuf", value__message="p.M")
    assert found.ddl == (
        "struct<`a`: bigint, `i`: struct<`s`: string, `n`: int>, `tags`: array<string>, `at`: timestamp>"
    )
    payload = b"\x08\x05\x12\x03\x0a\x01x"  # a = 5, i.s = "x"
    value = {"a": 5, "i": {"s": "x", "n": 0}, "tags": [], "at": None}
    assert found.decode(b"\0" + old.to_bytes(4, "big") + b"\0" + payload) == value
    assert found.decode(b"\0" + new.to_bytes(4, "big") + b"\x02\x02" + payload) == value
    assert found.encode(value) == b"\0" + new.to_bytes(4, "big") + b"\x02\x02" + payload
    with pytest.raises(ValueError, match=r"the record is a message p\.M\.Inner, not p\.M"):
        found.decode(b"\0" + old.to_bytes(4, "big") + b"\x04\x00\x00" + payload)


def test_json_schemas_give_columns(there: Registry) -> None:
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "integer"},
            "price": {"type": ["number", "null"]},
            "at": {"type": "string", "format": "date-time"},
            "tags": {"type": "array", "items": {"$ref": "#/definitions/tag"}},
            "place": {"oneOf": [{"type": "null"}, {"$ref": "place.json"}]},
            "any": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "more": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
        "definitions": {"tag": {"type": "string"}},
    }
    there.add("place", {"type": "object", "properties": {"x": {"type": "number"}}}, "JSON")
    reference = {"name": "place.json", "subject": "place", "version": 1}
    number = there.add("orders-value", schema, "JSON", [reference])
    found = codec(there, "registry")
    assert found.ddl == (
        "struct<`id`: bigint, `price`: double, `at`: timestamp, `tags`: array<string>,"
        " `place`: struct<`x`: double>, `any`: string, `more`: map<string, boolean>>"
    )
    prefix = b"\0" + number.to_bytes(4, "big")
    value = found.decode(prefix + b'{"id": 1, "tags": ["a"], "place": {"x": 1.5}, "any": 5, "extra": 0}')
    assert (
        value["id"] == 1 and value["tags"] == ["a"] and value["place"] == {"x": 1.5} and value["any"] == "5"
    )
    assert value["price"] is None
    written = found.encode({"id": 1, "price": None, "tags": ["a"], "place": {"x": 2.0}})
    assert written[:5] == prefix and json.loads(written[5:]) == {"id": 1, "tags": ["a"], "place": {"x": 2.0}}
    with pytest.raises(ValueError, match="is not of type 'integer'"):
        found.encode({"id": "x"})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"value.schema.id.location": "footer"}, "it may be prefix or header"),
        (
            {"value.subject": "x", "value.format": "string"},
            "value.subject needs the option schema.registry.url",
        ),
        ({"value.subject": "missing"}, "value.subject names missing, version latest, which cannot be had"),
        ({"value.schema.version": "9"}, "version 9, which cannot be had"),
        ({"value.schema.version": "new"}, "value.schema.version is 'new', it may be latest or a number"),
        ({"value.format": "protobuf"}, "is protobuf, and orders-value has schemas of AVRO"),
        ({"subscribe": "a,b"}, "value.subject is missing"),
        ({"schema.registry.nonsense": "1"}, "unknown properties of a registry's client: nonsense"),
        ({"value.subject": "union-value"}, "a union of several types has no column type"),
    ],
)
def test_mistakes_show_before_the_query_starts(
    there: Registry, options: dict[str, str], problem: str
) -> None:
    there.add("orders-value", V1)
    there.add("union-value", ["int", "string"])
    given = {"value.format": "avro", "schema.registry.url": there.url, "subscribe": "orders"}
    with pytest.raises(OptionError, match=problem):
        format_of({**given, **options}, "value")


def test_passwords_are_sent_and_not_shown(there: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    there.add("orders-value", V1)
    monkeypatch.setenv("REGISTRY_LOGIN", "ada:secret")
    found = declared(there, **{"schema.registry.basic.auth.user.info": "${env:REGISTRY_LOGIN}"})
    assert there.authorizations == {"Basic YWRhOnNlY3JldA=="}
    assert "REGISTRY_LOGIN" not in repr(found) and "secret" not in repr(found)
