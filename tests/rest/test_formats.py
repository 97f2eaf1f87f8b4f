"""Embedded data: every format both ways; schemas by id, text, version and latest."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.rest.sources import MemorySource

from barnabas.rest.formats import json_text
from barnabas.rest.formats.codecs import PLAIN
from barnabas.rest.formats.embedded import Formats, SchemaChoice
from barnabas.rest.formats.errors import (
    DataMismatch,
    RegistryFailure,
    SchemaMissing,
    SchemaNotFound,
    SchemaRefused,
)
from barnabas.rest.formats.kept import Kept
from barnabas.rest.formats.names import DataFormat, SubjectNameStrategy
from barnabas.rest.formats.source import NoRegistry
from barnabas.schemas.model import Reference, ResolvedReference, SchemaType

AVRO, JSONSCHEMA = DataFormat.AVRO, DataFormat.JSONSCHEMA
TEXT = json.dumps({"type": "record", "name": "x.R", "fields": [{"name": "a", "type": "int"}]})
OTHER = json.dumps({"type": "record", "name": "x.S", "fields": [{"name": "b", "type": "string"}]})
OBJECT = json.dumps({"type": "object", "title": "Thing", "properties": {"a": {"type": "integer"}}})


@pytest.fixture
def source() -> MemorySource:
    return MemorySource()


@pytest.fixture
def formats(source: MemorySource) -> Formats:
    return Formats(source)


def encode(formats: Formats, choice: SchemaChoice, *data: Any) -> list[bytes | None]:
    async def run() -> list[bytes | None]:
        encoder = await formats.encoder("t", choice, is_key=False)
        return [encoder.encode(each) for each in data]

    return asyncio.run(run())


def decode(formats: Formats, name: DataFormat, *payloads: bytes | None) -> list[Any]:
    async def run() -> list[Any]:
        assert await formats.prepare(name, payloads) == {}
        return [formats.decode(name, each) for each in payloads]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "data", "payload"),
    [
        (DataFormat.BINARY, "AAH/", b"\x00\x01\xff"),
        (DataFormat.BINARY, "", b""),
        (DataFormat.JSON, {"a": [1, 1.5, None, "ž"]}, '{"a":[1,1.5,null,"ž"]}'.encode()),
        (DataFormat.JSON, 10**30, b"1" + b"0" * 30),
        (DataFormat.STRING, "ž", "ž".encode()),
    ],
    ids=str,
)
def test_plain_formats(formats: Formats, name: DataFormat, data: Any, payload: bytes) -> None:
    assert encode(formats, SchemaChoice(name), data, None) == [payload, None]
    assert decode(formats, name, payload, None) == [data, None]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (DataFormat.BINARY, "AAH"),
        (DataFormat.BINARY, "A-H_"),
        (DataFormat.BINARY, "AAH/ "),
        (DataFormat.BINARY, "ž"),
        (DataFormat.BINARY, 7),
        (DataFormat.BINARY, {}),
        (DataFormat.STRING, 7),
        (DataFormat.STRING, "\ud800"),
        (DataFormat.JSON, "\ud800"),
    ],
    ids=repr,
)
def test_plain_data_that_do_not_fit(formats: Formats, name: DataFormat, data: Any) -> None:
    with pytest.raises(DataMismatch):
        encode(formats, SchemaChoice(name), data)


@pytest.mark.parametrize("text", [b"NaN", b"[1e999]", b"\xff", b"[" * 100_000, b"1" * 5_000, b"", b"{}x"])
def test_json_that_others_cannot_read_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_text.loads(text)
    with pytest.raises(DataMismatch):
        PLAIN[DataFormat.JSON].decode(text)


def test_a_schema_is_found_by_id_version_latest_and_text(formats: Formats, source: MemorySource) -> None:
    first = source.put("t-value", SchemaType.AVRO, TEXT)
    second = source.put("t-value", SchemaType.AVRO, OTHER)
    source.put("mine", SchemaType.AVRO, TEXT)
    one, two = {"a": 1}, {"b": "x"}
    by_id = encode(formats, SchemaChoice(schema_id=first.schema_id), one)
    assert by_id == [b"\x00\x00\x00\x00\x01\x02"]
    assert encode(formats, SchemaChoice(version=1), one) == by_id
    assert encode(formats, SchemaChoice(AVRO, text=TEXT), one) == by_id
    assert encode(formats, SchemaChoice(subject="mine"), one) == by_id
    assert encode(formats, SchemaChoice(), two) == [b"\x00\x00\x00\x00\x02\x02x"]
    assert encode(formats, SchemaChoice(AVRO), two) == [b"\x00\x00\x00\x00\x02\x02x"]
    assert second.schema_id == 2


def test_the_encoder_tells_format_subject_and_schema(formats: Formats, source: MemorySource) -> None:
    async def run() -> None:
        encoder = await formats.encoder("t", SchemaChoice(AVRO, text=TEXT), is_key=True)
        assert (encoder.format, encoder.subject) == (AVRO, "t-key")
        assert encoder.schema is not None
        assert (encoder.schema.schema_id, encoder.schema.version) == (1, 1)
        plain = await formats.encoder("t", SchemaChoice(DataFormat.JSON), is_key=True)
        assert (plain.subject, plain.schema) == (None, None)

    asyncio.run(run())


def test_subjects_follow_the_strategy(formats: Formats, source: MemorySource) -> None:
    for strategy in (SubjectNameStrategy.RECORD_NAME, SubjectNameStrategy.TOPIC_RECORD_NAME):
        encode(formats, SchemaChoice(AVRO, text=TEXT, strategy=strategy), {"a": 1})
    encode(formats, SchemaChoice(JSONSCHEMA, text=OBJECT, strategy=SubjectNameStrategy.RECORD_NAME), {})
    assert list(source.subjects) == ["x.R", "t-x.R", "Thing"]
    with pytest.raises(SchemaMissing, match="RECORD_NAME"):
        encode(formats, SchemaChoice(AVRO, strategy=SubjectNameStrategy.RECORD_NAME), {"a": 1})


@pytest.mark.parametrize(
    ("choice", "error"),
    [
        (SchemaChoice(schema_id=9), SchemaNotFound),
        (SchemaChoice(schema_id=-1), SchemaNotFound),
        (SchemaChoice(version=3), SchemaNotFound),
        (SchemaChoice(subject="nobody"), SchemaNotFound),
        (SchemaChoice(text=TEXT), SchemaMissing),
        (SchemaChoice(DataFormat.PROTOBUF, schema_id=1), SchemaRefused),
        (SchemaChoice(AVRO, text="{"), SchemaRefused),
        (SchemaChoice(JSONSCHEMA, text='{"type": "strin"}'), SchemaRefused),
    ],
    ids=str,
)
def test_schemas_that_are_not_there(
    formats: Formats, source: MemorySource, choice: SchemaChoice, error: type[Exception]
) -> None:
    source.put("t-value", SchemaType.AVRO, TEXT)
    with pytest.raises(error):
        encode(formats, choice, {"a": 1})


def test_without_a_registry_plain_formats_work_and_others_say_why() -> None:
    formats = Formats(NoRegistry())
    assert encode(formats, SchemaChoice(DataFormat.JSON), 1) == [b"1"]
    for choice in (
        SchemaChoice(AVRO, text=TEXT),
        SchemaChoice(schema_id=1),
        SchemaChoice(version=1),
        SchemaChoice(),
    ):
        with pytest.raises(RegistryFailure, match=r"schema\.registry\.url"):
            encode(formats, choice, {"a": 1})


def test_the_registry_is_asked_once_for_many_records(formats: Formats, source: MemorySource) -> None:
    async def run() -> None:
        for _ in range(5):
            encoder = await formats.encoder("t", SchemaChoice(AVRO, text=TEXT), is_key=False)
            payload = encoder.encode({"a": 1})
            await formats.prepare(AVRO, [payload])
            assert formats.decode(AVRO, payload) == {"a": 1}

    asyncio.run(run())
    assert source.questions == ["register t-value", "id 1"]


def test_json_schema_checks_data(formats: Formats, source: MemorySource) -> None:
    choice = SchemaChoice(JSONSCHEMA, text=OBJECT)
    payloads = encode(formats, choice, {"a": 1})
    assert payloads == [b'\x00\x00\x00\x00\x01{"a":1}']
    assert decode(formats, JSONSCHEMA, *payloads) == [{"a": 1}]
    with pytest.raises(DataMismatch, match=r'#/a: "x" is not of type "integer"'):
        encode(formats, choice, {"a": "x"})


def test_json_schema_knows_its_references_and_downloads_nothing(
    formats: Formats, source: MemorySource
) -> None:
    reference = ResolvedReference(Reference("other.json", "other", 1), '{"type": "integer"}')
    known = source.put("t-value", SchemaType.JSON, '{"$ref": "other.json"}', (reference,))
    assert encode(formats, SchemaChoice(schema_id=known.schema_id), 1) == [b"\x00\x00\x00\x00\x011"]
    with pytest.raises(SchemaRefused, match="example"):
        encode(formats, SchemaChoice(JSONSCHEMA, text='{"$ref": "http://example.com/a.json"}'), 1)


def test_a_pattern_that_explodes_elsewhere_is_checked_at_once(formats: Formats) -> None:
    for pattern in ("^(a+)+$", "^(?=a)(a|aa)+$"):
        choice = SchemaChoice(JSONSCHEMA, text=json.dumps({"type": "string", "pattern": pattern}))
        with pytest.raises(DataMismatch):
            encode(formats, choice, "a" * 60 + "b")


@pytest.mark.parametrize("payload", [b"", b"\x00\x00\x00\x01", b"\x01\x00\x00\x00\x01\x02", b"hello world"])
def test_payloads_without_a_schema_are_refused(formats: Formats, payload: bytes) -> None:
    with pytest.raises(DataMismatch):
        decode(formats, AVRO, payload)


def test_ids_that_nobody_knows_are_told_and_not_asked_for_again(
    formats: Formats, source: MemorySource
) -> None:
    payload = b"\x00\x00\x00\x00\x07\x02"

    async def run() -> None:
        for _ in range(3):
            problems = await formats.prepare(AVRO, [payload, payload])
            assert list(problems) == [7]
            assert isinstance(problems[7], SchemaNotFound)
        with pytest.raises(DataMismatch, match="schema 7 is not known"):
            formats.decode(AVRO, payload)

    asyncio.run(run())
    assert source.questions == ["id 7"]


def test_a_record_of_another_type_is_refused(formats: Formats, source: MemorySource) -> None:
    source.put("t-value", SchemaType.JSON, OBJECT)
    with pytest.raises(DataMismatch, match="of type JSON"):
        decode(formats, AVRO, b'\x00\x00\x00\x00\x01{"a":1}')


def test_results_are_made_once_and_dropped_when_there_are_too_many() -> None:
    made: list[int] = []

    async def make(key: int) -> int:
        made.append(key)
        await asyncio.sleep(0)
        return key

    async def run() -> None:
        kept: Kept[int, int] = Kept(2)
        await asyncio.gather(*(kept.get(1, lambda: make(1)) for _ in range(3)))
        assert made == [1]
        assert kept.ready(1) == 1
        for key in (2, 3):
            await kept.get(key, lambda key=key: make(key))  # type: ignore[misc]
        assert kept.ready(1) is None
        first = asyncio.ensure_future(kept.get(9, lambda: make(9)))
        second = asyncio.ensure_future(kept.get(9, lambda: make(9)))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 9

    asyncio.run(run())
