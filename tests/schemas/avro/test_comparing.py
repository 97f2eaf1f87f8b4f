"""Avro schemas are compared by Avro's rules, and messages say where and why."""

from __future__ import annotations

import json

import pytest

from barnabas.schemas.avro.parsing import AvroSchema, parse
from barnabas.schemas.model import CompatibilityPolicy

from .pairs import Pair, enum, field, fixed, pairs, record

PAIRS = pairs()
STRICT = CompatibilityPolicy.STRICT


def schema(value: object) -> AvroSchema:
    return parse(value if isinstance(value, str) else json.dumps(value), strict=True)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.label)
def test_a_pair_has_the_reasons_that_avro_s_rules_give(pair: Pair) -> None:
    found = schema(pair.reader).incompatibilities(schema(pair.writer), STRICT)

    assert [(one.kind, one.path) for one in found] == pair.reasons


def test_the_verdicts_are_those_of_the_library_of_avro() -> None:
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
    from avro.schema import parse as avro_parse

    # That library compares aliases without the namespace that Avro's specification gives them, takes the
    # first of several fields that match, and knows errors only inside of protocols.
    unknown = {
        "an alias takes the namespace of its type",
        "an error type reads a record",
        "a name and an alias both match",
    }
    for pair in PAIRS:
        if pair.label in unknown:
            continue
        verdict = ReaderWriterCompatibilityChecker().get_compatibility(
            avro_parse(pair.reader), avro_parse(pair.writer)
        )
        is_compatible = verdict.compatibility is SchemaCompatibilityType.compatible
        assert is_compatible == (not pair.reasons), pair.label


def test_a_table_of_many_pairs() -> None:
    assert len(PAIRS) >= 150
    assert len({pair.label for pair in PAIRS}) == len(PAIRS)


def test_every_kind_has_its_message() -> None:
    def told(reader: object, writer: object) -> list[str]:
        return [one.printed() for one in schema(reader).incompatibilities(schema(writer), STRICT)]

    assert told(record(field("x", "int")), record()) == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'x' at path '/fields/0' in"
        " the new schema has no default value and is missing in the old schema', additionalInfo:'x'}"
    ]
    assert told('"int"', '"string"') == [
        "{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the new schema does not"
        " match with the old schema', additionalInfo:'reader type: INT not compatible with writer type:"
        " STRING'}"
    ]
    assert told(record(name="S"), record(namespace="n")) == [
        "{errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path '/name')',"
        " additionalInfo:'expected: n.R'}"
    ]
    assert told(enum("A"), enum("C A B")) == [
        "{errorType:'MISSING_ENUM_SYMBOLS', description:'The new schema is missing enum symbols '[B, C]' at"
        " path '/symbols' in the old schema', additionalInfo:'[B, C]'}"
    ]
    assert told(fixed(4), fixed(8)) == [
        "{errorType:'FIXED_SIZE_MISMATCH', description:'The size of FIXED type field at path '/size' in the"
        " new schema does not match with the old schema', additionalInfo:'expected: 8, found: 4'}"
    ]
    assert told('["null"]', '["null","int"]') == [
        "{errorType:'MISSING_UNION_BRANCH', description:'The new schema is missing a type inside a union"
        " field at path '/1' in the old schema', additionalInfo:'reader union lacking writer type: INT'}"
    ]


def test_the_sides_change_places_when_the_old_schema_reads() -> None:
    [reason] = schema('"int"').incompatibilities(schema('"string"'), STRICT)

    assert "in the old schema does not match with the new schema" in reason.printed(new_reads_old=False)


def test_records_that_refer_to_each_other_end() -> None:
    """Two rings of different lengths: every pair of their records is compared, without Python's stack."""

    def ring(length: int) -> AvroSchema:
        inner: object = "R0"
        for index in reversed(range(length)):
            inner = record(field("next", inner), name=f"R{index}", aliases=[f"R{n}" for n in range(60)])
        return schema(inner)

    assert ring(59).incompatibilities(ring(53), STRICT) == []


def test_reasons_of_a_type_that_is_used_often_are_told_once() -> None:
    def doubled(leaf: str) -> object:
        inner: object = record(field("x", leaf), name="T0")
        for level in range(1, 40):
            inner = record(field("l", inner), field("r", f"T{level - 1}"), name=f"T{level}")
        return inner

    [reason] = schema(doubled("int")).incompatibilities(schema(doubled("string")), STRICT)
    assert reason.kind == "TYPE_MISMATCH"


def test_a_comparison_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from barnabas.schemas.avro import comparing

    monkeypatch.setattr(comparing, "PAIRS_MAX", 100)
    wide = schema([record(name=f"W{n}") for n in range(20)])
    other = schema([record(name=f"V{n}") for n in range(20)])

    [reason] = wide.incompatibilities(other, STRICT)
    assert reason.kind == "COMPARISON_TOO_LARGE"
