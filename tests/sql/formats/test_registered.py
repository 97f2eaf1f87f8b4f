"""Formats with a registry: Confluent's clients read what we write, and write what we read."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterator
from decimal import Decimal as Number
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.connect.convert.registered.protobuf import message_class
from barnabas.plans.serdes import RegistryAway
from barnabas.schemas.protobuf.parsing import parse
from barnabas.sql.errors import SqlError
from barnabas.sql.formats.codecs import row_codec
from barnabas.sql.formats.contract import BadBytes, RowCodec
from barnabas.sql.formats.definitions import definition
from barnabas.sql.formats.inference import columns_of_subject
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.metastore.schemas import Column, Format
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Map,
    Struct,
)
from schemas.served import instant_registry

COLUMNS = (
    Column("I", INTEGER),
    Column("L", BIGINT),
    Column("D", DOUBLE),
    Column("S", STRING),
    Column("B", BOOLEAN),
    Column("Y", BYTES),
    Column("N", Decimal(6, 2)),
    Column("DA", DATE),
    Column("TI", TIME),
    Column("TS", TIMESTAMP),
    Column("A", Array(BIGINT)),
    Column("M", Map(STRING, INTEGER)),
    Column("R", Struct((("X", INTEGER), ("IN", Struct((("Z", STRING),)))))),
)
ROW: dict[str, Any] = {
    "I": 1,
    "L": 2**40,
    "D": 1.5,
    "S": "text",
    "B": True,
    "Y": b"\0\1",
    "N": Number("12.30"),
    "DA": dt.date(2024, 2, 29),
    "TI": dt.time(1, 2, 3, 4000),
    "TS": dt.datetime(2024, 2, 29, 1, 2, 3, 4000),
    "A": [1, 2],
    "M": {"a": 1},
    "R": {"X": 7, "IN": {"Z": "deep"}},
}
NULLS: dict[str, Any] = dict.fromkeys(ROW)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with instant_registry() as found:
        yield found


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as found:
        yield found


@pytest.fixture
def place(url: str) -> RegistryPlace:
    return RegistryPlace((("url", url),))


def codec(
    place: RegistryPlace, form: Format, topic: str, columns: Any = COLUMNS, key: bool = False
) -> RowCodec:
    return row_codec(form, columns, is_key=key, topic=topic, registry=place)


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR"])
@pytest.mark.parametrize("row", [ROW, NULLS])
def test_rows_come_back(place: RegistryPlace, name: str, row: dict[str, Any]) -> None:
    rows = codec(place, Format(name), f"back-{name}")
    assert rows.from_bytes(rows.to_bytes(row) or b"") == row


@pytest.mark.parametrize(
    ("nullable", "nulls"),
    [
        ("", {"I": 0, "L": 0, "D": 0.0, "S": "", "B": False, "Y": b"", "A": [], "M": {}}),
        ("OPTIONAL", {"A": [], "M": {}}),
        ("WRAPPER", {"A": [], "M": {}}),
    ],
)
def test_protobuf_has_no_nulls_of_scalars_unless_asked(
    place: RegistryPlace, nullable: str, nulls: dict[str, Any]
) -> None:
    form = Format("PROTOBUF", {"nullable_representation": nullable} if nullable else {})
    rows = codec(place, form, f"nulls-{nullable}")
    assert rows.from_bytes(rows.to_bytes(ROW) or b"") == ROW
    assert rows.from_bytes(rows.to_bytes(NULLS) or b"") == {**NULLS, **nulls}


def test_confluents_avro_deserializer_reads_rows_and_its_serializer_writes_the_same_bytes(
    client: SchemaRegistryClient, place: RegistryPlace
) -> None:
    rows = codec(place, Format("AVRO"), "theirs")
    data = rows.to_bytes(ROW)
    context = SerializationContext("theirs", MessageField.VALUE)
    read = AvroDeserializer(client)(data, context)
    assert read["S"] == "text" and read["N"] == Number("12.30") and read["M"] == [{"key": "a", "value": 1}]
    text = client.get_latest_version("theirs-value").schema.schema_str
    written = AvroSerializer(client, text)(read, SerializationContext("theirs-2", MessageField.VALUE))
    assert written[5:] == (data or b"")[5:]


def test_the_avro_schema_has_ksqldbs_names(place: RegistryPlace) -> None:
    made = json.loads(definition(Format("AVRO"), COLUMNS, is_key=False).text)
    assert (made["namespace"], made["name"]) == ("io.confluent.ksql.avro_schemas", "KsqlDataSourceSchema")
    fields = {each["name"]: each for each in made["fields"]}
    assert fields["I"] == {"name": "I", "type": ["null", "int"], "default": None}
    entry = fields["M"]["type"][1]["items"]
    assert (entry["name"], entry["connect.internal.type"]) == ("KsqlDataSourceSchema_M", "MapEntry")
    assert fields["R"]["type"][1]["name"] == "KsqlDataSourceSchema_R"
    named = Format("AVRO", {"full_schema_name": "org.shop.Order"})
    assert json.loads(definition(named, COLUMNS[:1], is_key=False).text)["namespace"] == "org.shop"


def test_confluents_json_serializer_writes_the_same_bytes(
    client: SchemaRegistryClient, place: RegistryPlace
) -> None:
    columns = [Column("A", INTEGER), Column("B", STRING), Column("C", Array(DOUBLE))]
    row = {"A": 1, "B": None, "C": [1.5, None]}
    data = codec(place, Format("JSON_SR"), "json", columns).to_bytes(row)
    text = client.get_latest_version("json-value").schema.schema_str
    theirs = JSONSerializer(text, client, conf={"auto.register.schemas": False})
    written = theirs(row, SerializationContext("json", MessageField.VALUE))
    assert (data or b"")[:5] == written[:5]
    assert json.loads((data or b"")[5:]) == json.loads(written[5:]) == row


def test_confluents_protobuf_serializer_writes_the_same_bytes(
    client: SchemaRegistryClient, place: RegistryPlace
) -> None:
    columns = [Column("A", INTEGER), Column("B", STRING)]
    form = Format("PROTOBUF")
    rows = codec(place, form, "proto", columns)
    data = rows.to_bytes({"A": 5, "B": "x"})
    kind = message_class(parse(definition(form, columns, is_key=False).text, ()), (0,))
    theirs = ProtobufSerializer(kind, client, conf={"use.deprecated.format": False})
    written = theirs(kind(A=5, B="x"), SerializationContext("proto-theirs", MessageField.VALUE))
    assert (data or b"")[5:] == written[5:]
    assert codec(place, form, "proto-theirs", columns).from_bytes(written) == {"A": 5, "B": "x"}


def test_a_key_is_bare_and_a_record_of_others_is_read_too(
    client: SchemaRegistryClient, place: RegistryPlace
) -> None:
    keys = codec(place, Format("AVRO"), "keys", [Column("ID", INTEGER)], key=True)
    data = keys.to_bytes({"ID": 10}) or b""
    assert fastavro.schemaless_reader(io.BytesIO(data[5:]), ["null", "int"], None) == 10
    record = '{"type":"record","name":"K","fields":[{"name":"id","type":"int"}]}'
    theirs = AvroSerializer(client, record)({"id": 4}, SerializationContext("other", MessageField.KEY))
    others = codec(place, Format("AVRO"), "other", [Column("ID", INTEGER)], key=True)
    assert others.from_bytes(theirs) == {"ID": 4}


def test_columns_come_from_a_subject(place: RegistryPlace) -> None:
    codec(place, Format("AVRO"), "inferred").to_bytes(ROW)
    assert columns_of_subject(Format("AVRO"), "inferred", place, is_key=False) == COLUMNS
    codec(place, Format("AVRO"), "inferred", [Column("ID", BIGINT)], key=True).to_bytes({"ID": 1})
    (found,) = columns_of_subject(Format("AVRO"), "inferred", place, is_key=True)
    assert (found.name, found.kind) == ("ROWKEY", BIGINT)
    with pytest.raises(SqlError, match="unknown-value"):
        columns_of_subject(Format("AVRO"), "unknown", place, is_key=False)
    with pytest.raises(SqlError, match="AVRO"):
        columns_of_subject(Format("JSON_SR"), "inferred", place, is_key=False)


def test_a_pinned_schema_is_written_by_its_own_field_names(
    client: SchemaRegistryClient, place: RegistryPlace
) -> None:
    record = {
        "type": "record",
        "name": "Pinned",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "age", "type": "long"},
            {"name": "city", "type": ["null", "string"], "default": None},
        ],
    }
    from confluent_kafka.schema_registry import Schema

    number = client.register_schema("pinned-value", Schema(json.dumps(record), "AVRO"))
    form = Format("AVRO", {"schema_id": str(number)})
    columns = [Column("AGE", INTEGER), Column("NAME", STRING)]
    data = codec(place, form, "pinned", columns).to_bytes({"AGE": 3, "NAME": "x"}) or b""
    assert data[:5] == b"\0" + number.to_bytes(4, "big")
    read = AvroDeserializer(client)(data, SerializationContext("pinned", MessageField.VALUE))
    assert read == {"name": "x", "age": 3, "city": None}


def test_bytes_of_others_are_refused_and_a_registry_that_is_away_is_told_apart(place: RegistryPlace) -> None:
    rows = codec(place, Format("AVRO"), "bad")
    for data in (b"", b"{}", b"\0\0\0\xff\xff\0", b"\1" * 20):
        with pytest.raises(BadBytes):
            rows.from_bytes(data)
    nowhere = RegistryPlace((("max.retries", "0"), ("timeout", "1"), ("url", "http://127.0.0.1:9")))
    with pytest.raises(RegistryAway):
        codec(nowhere, Format("AVRO"), "bad").from_bytes(b"\0\0\0\0\1\0")
    with pytest.raises(SqlError, match=r"ksql\.schema\.registry\.url"):
        codec(RegistryPlace(), Format("AVRO"), "bad").to_bytes(ROW)
