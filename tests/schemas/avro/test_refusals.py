"""Texts that are no Avro schemas are refused with the place and the reason."""

from __future__ import annotations

import json

import pytest

from barnabas.schemas.avro.building import NESTING_MAX
from barnabas.schemas.avro.json_text import TEXT_MAX
from barnabas.schemas.avro.parsing import parse
from barnabas.schemas.model import InvalidSchema, Reference, ResolvedReference


def one_field(kind: str, **more: object) -> str:
    fields = [{"name": "ok", "type": "int"}, {"name": "f", "type": json.loads(kind), **more}]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


REFUSED = {
    "no JSON": ("{", "no JSON: line 1 column 2"),
    "nothing": ("", "no JSON"),
    "a bare word": ("string", "no JSON"),
    "more than one value": ('"int" "string"', "no JSON"),
    "a comment without end": ('"int" /* ', "no JSON"),
    "not a number of JSON": ('{"type":"int","x":NaN}', "NaN is no JSON number"),
    "a number with too many digits": ('{"type":"int","x":' + "1" * 5000 + "}", "too long"),
    "half a surrogate pair": ('{"type":"int","x":"\\ud800"}', "surrogate"),
    "half a surrogate pair in a key": ('{"type":"int","\\ud800":1}', "surrogate"),
    "a number as a type": ("7", "7 is no type"),
    "null as a type": ("null", "null is no type"),
    "no type": ('{"name":"x"}', 'No type: {"name":"x"}'),
    "an object as a type": ('{"type":{"type":"int"}}', "No type"),
    "an unknown type": ('"strin"', 'Undefined name: "strin"'),
    "an unknown type of a field": (one_field('"Foo"'), r'Undefined name: "Foo".*\(at /fields/1/type\)'),
    "an unknown type in a union": (one_field('["null","Foo"]'), r"at /fields/1/type/1"),
    "no name": ('{"type":"record","fields":[]}', "No name in schema"),
    "an empty name": ('{"type":"record","name":"","fields":[]}', "Illegal name"),
    "a name with a dash": ('{"type":"record","name":"a-b","fields":[]}', 'Illegal name "a-b"'),
    "a name that starts with a digit": ('{"type":"record","name":"1a","fields":[]}', "Illegal name"),
    "a letter of another language": ('{"type":"record","name":"é","fields":[]}', "Illegal name"),
    "a wrong namespace": ('{"type":"record","name":"R","namespace":"a..b","fields":[]}', "Illegal name"),
    "a type named like a primitive": ('{"type":"record","name":"int","fields":[]}', "named after primitives"),
    "no fields": ('{"type":"record","name":"R"}', "Record has no fields"),
    "fields that are no list": ('{"type":"record","name":"R","fields":{}}', "Record has no fields"),
    "a field that is no object": ('{"type":"record","name":"R","fields":[1]}', r"No field name.*/fields/0"),
    "a field without a type": ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "No field type"),
    "a field twice": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        r"Duplicate field a in R \(at /fields/1\)",
    ),
    "a field with a wrong name": (
        '{"type":"record","name":"R","fields":[{"name":"a.b","type":"int"}]}',
        r'Illegal name "a.b".*/fields/0',
    ),
    "a wrong order": (one_field('"int"', order="up"), r'"up" is none of.*/fields/1/order'),
    "aliases that are no list": (one_field('"int"', aliases="a"), "aliases not an array"),
    "an alias that is no text": (one_field('"int"', aliases=[1]), "alias not a string"),
    "a name twice": (
        one_field('[{"type":"enum","name":"E","symbols":[]},{"type":"fixed","name":"E","size":1}]'),
        r"Can't redefine: E \(at /fields/1/type/1\)",
    ),
    "a union in a union": ('["int",["null"]]', r"a union holds a union \(at /1\)"),
    "a branch twice": ('["int","string",{"type":"int"}]', r"Duplicate in union: int \(at /2\)"),
    "two arrays in a union": (
        '[{"type":"array","items":"int"},{"type":"array","items":"string"}]',
        "Duplicate in union: array",
    ),
    "an array without items": ('{"type":"array"}', "Array has no items"),
    "a map without values": ('{"type":"map"}', "Map has no values"),
    "an enum without symbols": ('{"type":"enum","name":"E"}', "Enum has no symbols"),
    "a symbol twice": ('{"type":"enum","name":"E","symbols":["A","A"]}', r"Duplicate.*A.*/symbols/1"),
    "a symbol that is no text": ('{"type":"enum","name":"E","symbols":[1]}', r"is no text.*/symbols/0"),
    "a symbol with a space": ('{"type":"enum","name":"E","symbols":["A B"]}', r"Illegal.*/symbols/0"),
    "a default that is no symbol": (
        '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
        "The Enum Default: B is not in",
    ),
    "no size": ('{"type":"fixed","name":"F"}', "Invalid or no size"),
    "a negative size": ('{"type":"fixed","name":"F","size":-1}', "Invalid or no size"),
    "a size beyond 32 bits": ('{"type":"fixed","name":"F","size":2147483648}', "Invalid or no size"),
    "a size that is a text": ('{"type":"fixed","name":"F","size":"4"}', "Invalid or no size"),
}


@pytest.mark.parametrize("label", REFUSED)
def test_a_text_is_refused_with_the_reason(label: str) -> None:
    text, reason = REFUSED[label]

    with pytest.raises(InvalidSchema, match=reason):
        parse(text, strict=True)


BAD_DEFAULTS = [
    ('"null"', 1),
    ('"boolean"', 1),
    ('"int"', "1"),
    ('"int"', 1.5),
    ('"int"', True),
    ('"int"', 2**31),
    ('"long"', 2**63),
    ('"double"', True),
    ('"string"', 1),
    ('"string"', None),
    ('"bytes"', 1),
    ('["null","int"]', "x"),
    ('["int","string"]', None),
    ('{"type":"array","items":"int"}', {}),
    ('{"type":"array","items":"int"}', ["x"]),
    ('{"type":"map","values":"int"}', []),
    ('{"type":"map","values":"int"}', {"a": "x"}),
    ('{"type":"enum","name":"E","symbols":["A"]}', 1),
    ('{"type":"fixed","name":"F","size":1}', 1),
    ('{"type":"record","name":"S","fields":[{"name":"a","type":"int"}]}', {}),
    ('{"type":"record","name":"S","fields":[{"name":"a","type":"int"}]}', {"a": "x"}),
    ('{"type":"record","name":"S","fields":[{"name":"a","type":"int"}]}', []),
]


@pytest.mark.parametrize("kind, default", BAD_DEFAULTS, ids=str)
def test_a_default_of_another_type_is_refused_when_the_schema_is_new(kind: str, default: object) -> None:
    text = one_field(kind, default=default)

    with pytest.raises(InvalidSchema, match=r"Invalid default for field f:.*at /fields/1/default"):
        parse(text, strict=True)
    parse(text)  # stored by a registry that did not look


def test_a_text_as_the_default_of_a_double_must_be_a_number() -> None:
    with pytest.raises(InvalidSchema, match="no number"):
        parse(one_field('"double"', default="one"))


def test_names_that_were_stored_before_they_were_checked_are_read() -> None:
    assert parse('{"type":"record","name":"é","fields":[]}').name == "é"


def test_nesting_has_a_bound_and_deep_texts_do_not_break_the_parser() -> None:
    def nested(levels: int) -> str:
        return '{"type":"array","items":' * levels + '"int"' + "}" * levels

    assert parse(nested(NESTING_MAX)).canonical == nested(NESTING_MAX)
    for levels in (NESTING_MAX + 1, 900, 100_000):
        with pytest.raises(InvalidSchema, match="nested more than"):
            parse(nested(levels))
    for deep in ("[" * 100_000, '{"type":"int","x":' + "[" * 700 + "]" * 700 + "}"):
        with pytest.raises(InvalidSchema, match=r"nested|no JSON"):
            parse(deep)


def test_a_huge_text_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(InvalidSchema, match=f"at most {TEXT_MAX}"):
        parse(" " * (TEXT_MAX + 1))


def test_the_message_shows_only_the_beginning_of_a_large_value() -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse(json.dumps({"name": "x" * 100_000}))
    assert len(str(refused.value)) < 500


def reference(name: str, text: str) -> ResolvedReference:
    return ResolvedReference(Reference(name, "s", 3), text)


def test_a_broken_reference_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r'reference "a.B" \(subject s version 3\): Undefined name: "C"'):
        parse(
            '"a.B"', [reference("a.B", '{"type":"record","name":"a.B","fields":[{"name":"c","type":"C"}]}')]
        )


def test_a_missing_reference_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r'Undefined name: "a.X"'):
        parse('["null","a.X"]', [reference("a.B", '{"type":"enum","name":"a.B","symbols":[]}')])


def test_a_type_of_a_reference_cannot_be_defined_otherwise() -> None:
    known = reference("a.B", '{"type":"enum","name":"a.B","symbols":["X"]}')

    with pytest.raises(InvalidSchema, match=r"Can't redefine: a\.B"):
        parse('{"type":"enum","name":"a.B","symbols":["Y"]}', [known])
    assert parse('{"type":"enum","name":"a.B","symbols":["X"]}', [known]).canonical == '"a.B"'
