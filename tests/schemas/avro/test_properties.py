"""Properties of Avro schemas: what is declared compatible is read, and texts stay the same."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import fastavro
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from barnabas.schemas.avro.parsing import AvroSchema, parse
from barnabas.schemas.model import CompatibilityPolicy

QUICK = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
FIELDS = ("a", "b", "c")
DEFAULTS: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2,
    "float": 1.5,
    "double": 2.5,
    "bytes": "b",
    "string": "s",
}


@some.composite
def types(draw: some.DrawFn, depth: int = 2, place: str = "R") -> Any:
    kinds = [*DEFAULTS, "enum", "fixed"] + (["array", "map", "record", "union"] if depth else [])
    kind = draw(some.sampled_from(kinds))
    match kind:
        case "enum":
            symbols = draw(some.lists(some.sampled_from("ABC"), min_size=1, unique=True))
            default = {"default": symbols[0]} if draw(some.booleans()) else {}
            return {"type": "enum", "name": f"{place}_E", "symbols": symbols, **default}
        case "fixed":
            return {"type": "fixed", "name": f"{place}_F", "size": draw(some.integers(1, 2))}
        case "array":
            return {"type": "array", "items": draw(types(depth - 1, f"{place}_i"))}
        case "map":
            return {"type": "map", "values": draw(types(depth - 1, f"{place}_v"))}
        case "record":
            return draw(records(depth, place))
        case "union":
            simple = draw(some.lists(some.sampled_from([*DEFAULTS]), min_size=1, max_size=3, unique=True))
            return simple + ([draw(records(depth, place))] if draw(some.booleans()) else [])
    return kind


@some.composite
def records(draw: some.DrawFn, depth: int = 2, place: str = "R") -> Any:
    fields = []
    for name in draw(some.lists(some.sampled_from(FIELDS), unique=True)):
        kind = draw(types(depth - 1, f"{place}_{name}")) if depth else draw(some.sampled_from([*DEFAULTS]))
        field: dict[str, Any] = {"name": name, "type": kind}
        if isinstance(kind, str) and draw(some.booleans()):
            field["default"] = DEFAULTS[kind]
        fields.append(field)
    record: dict[str, Any] = {"type": "record", "name": f"{place}_R", "fields": fields}
    for attribute in draw(some.lists(some.sampled_from(["z", "doc", "x"]), unique=True)):
        record[attribute] = draw(some.text('aé\n"\x01', max_size=3))
    return record


@some.composite
def data(draw: some.DrawFn, kind: Any) -> Any:
    match kind:
        case list():
            return draw(data(draw(some.sampled_from(kind))))
        case {"type": "record"}:
            return {field["name"]: draw(data(field["type"])) for field in kind["fields"]}
        case {"type": "enum"}:
            return draw(some.sampled_from(kind["symbols"]))
        case {"type": "fixed"}:
            return draw(some.binary(min_size=kind["size"], max_size=kind["size"]))
        case {"type": "array"}:
            return draw(some.lists(data(kind["items"]), max_size=2))
        case {"type": "map"}:
            return draw(some.dictionaries(some.text("ab", max_size=2), data(kind["values"]), max_size=2))
    return draw(
        {
            "null": some.none(),
            "boolean": some.booleans(),
            "int": some.integers(-(2**31), 2**31 - 1),
            "long": some.integers(-(2**63), 2**63 - 1),
            "float": some.floats(width=32, allow_nan=False),
            "double": some.floats(allow_nan=False),
            "bytes": some.text("ab", max_size=3).map(str.encode),  # read as a string, they must be UTF-8
            "string": some.text("aé", max_size=3),
        }[kind]
    )


@some.composite
def mutated(draw: some.DrawFn, schema: Any) -> Any:
    """A schema near another one, so that compatible pairs are common."""
    if isinstance(schema, dict) and schema["type"] == "record":
        fields = [
            {**field, "type": draw(mutated(field["type"])), **draw(some.sampled_from([{}, renamed(field)]))}
            for field in schema["fields"]
            if draw(some.integers(0, 4))
        ]
        for field in fields:
            if not (isinstance(field["type"], str) and "default" in field):
                field.pop("default", None)
            else:
                field["default"] = DEFAULTS[field["type"]]
        if draw(some.booleans()):
            fields.append({"name": "d", "type": "string", "default": "new"})
        return {**schema, "fields": fields}
    if isinstance(schema, str):
        wider = {"int": "long", "long": "double", "float": "double", "string": "bytes", "bytes": "string"}
        return wider.get(schema, schema) if draw(some.booleans()) else schema
    if isinstance(schema, dict) and schema["type"] == "array":
        return {**schema, "items": draw(mutated(schema["items"]))}
    return schema


def renamed(field: dict[str, Any]) -> dict[str, Any]:
    return {"name": f"new_{field['name']}", "aliases": [field["name"]]}


def compatible(reader: AvroSchema, writer: AvroSchema) -> bool:
    return not reader.incompatibilities(writer, CompatibilityPolicy.STRICT)


@QUICK
@given(some.data())
def test_a_reader_that_is_declared_compatible_reads_what_the_writer_wrote(draw: some.DataObject) -> None:
    written = draw.draw(records())
    read = draw.draw(mutated(written))
    writer, reader = parse(json.dumps(written), strict=True), parse(json.dumps(read), strict=True)
    value = draw.draw(data(written))
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(writer.canonical)), value)
    buffer.seek(0)

    if compatible(reader, writer):
        found = fastavro.schemaless_reader(
            buffer,
            fastavro.parse_schema(json.loads(writer.canonical)),
            fastavro.parse_schema(json.loads(reader.canonical)),
        )
        assert set(found) == {field["name"] for field in read["fields"]}


@QUICK
@given(some.data())
def test_every_schema_reads_itself_and_the_relation_ignores_documentation(draw: some.DataObject) -> None:
    schema = draw.draw(records())
    parsed = parse(json.dumps(schema), strict=True)

    assert compatible(parsed, parsed)
    assert compatible(parse(json.dumps({**schema, "doc": "other", "q": 1})), parsed)


@QUICK
@given(types())
def test_the_canonical_text_is_stable_and_means_the_same(schema: Any) -> None:
    text = json.dumps(schema)
    parsed = parse(text, strict=True)

    assert parse(parsed.canonical, strict=True) == parsed
    assert parse(parsed.canonical).canonical == parsed.canonical
    normal = parsed.normalized()
    assert normal.normalized() == normal
    assert parse(normal.canonical).normalized() == normal
    assert json.loads(parsed.canonical) == schema or '"namespace"' in text
    assert compatible(parsed, parse(normal.canonical)) and compatible(parse(normal.canonical), parsed)


@QUICK
@given(types())
def test_fastavro_and_avro_understand_the_canonical_text(schema: Any) -> None:
    canonical = parse(json.dumps(schema)).canonical

    same = fastavro.schema.to_parsing_canonical_form(schema)
    assert fastavro.schema.to_parsing_canonical_form(json.loads(canonical)) == same


@QUICK
@given(some.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_value(number: float) -> None:
    text = parse(f'{{"type":"int","x":{number!r}}}').canonical

    [found] = [json.loads(text)["x"]]
    assert found == number and math.copysign(1, found) == math.copysign(1, number)


@QUICK
@given(some.text('[]{}":,/*\\ntypeamrcodfilsu 1-.', max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    from barnabas.schemas.model import InvalidSchema

    try:
        parse(text, strict=True)
    except InvalidSchema as error:
        assert str(error)
