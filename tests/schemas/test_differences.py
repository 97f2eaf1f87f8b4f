"""Two versions of a schema are told in words."""

from __future__ import annotations

from barnabas.schemas.differences.telling import told
from barnabas.schemas.parsing import parse

from .avro.test_customer_contact import CAREFUL, FIRST


def lines(schema_type: str, old: str, new: str) -> list[str]:
    return told(parse(schema_type, old), parse(schema_type, new))


def test_avro() -> None:
    assert lines("AVRO", FIRST, CAREFUL) == [
        "the schema: the name of the record course.crm.CustomerContact became course.crm.Contact",
        "the schema: the alias course.crm.CustomerContact was added",
        "field email_address was renamed: it was mail, which is now its alias",
        "field email_address: the alias mail was added",
        "field consent was added, of type boolean, with the default false",
        "field phone was removed",
        "channel: the symbol CHAT was added",
        "channel: the symbol OTHER was added",
        "channel: the symbol FAX was removed",
        "channel: the default symbol was added: OTHER",
        "the new schema reads data of the old one: yes",
        "the old schema reads data of the new one: no",
        "  {errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path '/name')',"
        " additionalInfo:'expected: course.crm.Contact'}",
        "  {errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'mail' at path '/fields/1'"
        " in the old schema has no default value and is missing in the new schema', additionalInfo:'mail'}",
        "  {errorType:'MISSING_ENUM_SYMBOLS', description:'The old schema is missing enum symbols '[CHAT,"
        " OTHER]' at path '/fields/3/type/symbols' in the new schema', additionalInfo:'[CHAT, OTHER]'}",
    ]


def test_types_inside_of_avro_types() -> None:
    old = """{"type":"record","name":"R","fields":[
        {"name":"a","type":{"type":"array","items":"int"}},
        {"name":"m","type":{"type":"map","values":{"type":"fixed","name":"F","size":1}}},
        {"name":"u","type":"string","doc":"d","default":"x"},
        {"name":"t","type":"long"},
        {"name":"r","type":["null","R"]}]}"""
    new = """{"type":"record","name":"R","doc":"new","fields":[
        {"name":"m","type":{"type":"map","values":{"type":"fixed","name":"F","size":2}}},
        {"name":"a","type":{"type":"array","items":"long"}},
        {"name":"u","type":["null","string"],"default":null},
        {"name":"t","type":{"type":"long","logicalType":"timestamp-millis"},"order":"ignore"},
        {"name":"r","type":["null","R"]}]}"""

    found = lines("AVRO", old, new)

    assert {
        "the schema: the documentation was added: new",
        "the schema: the order of the fields changed",
        "a[]: the type int became long",
        "m{}: the size 1 became 2",
        "u: null is now allowed",
        "field u: the documentation was removed: d",
        'field u: the default "x" became null',
        't: the attribute logicalType was added: "timestamp-millis"',
        "field t: the order ascending became ignore",
    } < set(found)


def test_json_schema() -> None:
    old = (
        '{"type":"object","properties":{"a":{"type":"string","maxLength":5},"b":{"type":"integer"},'
        '"c":{"enum":["x"]}},"required":["a"]}'
    )
    new = (
        '{"type":"object","properties":{"a":{"type":"string","maxLength":9},"d":{"type":"number"},'
        '"c":{"enum":["x","y"]}},"required":["a","d"]}'
    )

    found = lines("JSON", old, new)

    assert {
        "maxLength of #/properties/a 5 became 9",
        'property d of # was added: {"type": "number"}',
        'property b of # was removed: {"type": "integer"}',
        '#: "d" is now required',
        '#/properties/c: "y" is now allowed',
        "the new schema reads data of the old one: no",
    } < set(found)


def test_protobuf() -> None:
    old = """syntax = "proto3"; package a;
        message M { int32 x = 1; string y = 2; map<string, int32> z = 3; int32 w = 5; message N {} }
        enum E { A = 0; }"""
    new = """syntax = "proto3"; package b;
        message M { int64 x = 1; string why = 2; map<string, string> z = 3; repeated E e = 4;
                    oneof o { int32 w = 5; } }
        message Q {}
        enum E { A = 0; B = 1; }"""

    found = lines("PROTOBUF", old, new)

    assert {
        "the package a became b",
        "message Q was added",
        "message M.N was removed",
        "field M.x = 1: int32 became int64",
        "field M.y = 2 is now named why",
        "field M.z = 3: map<string, int32> became map<string, string>",
        "field M.e = 4 was added, of type repeated b.E",
        "field M.w = 5 moved from the message to oneof o",
        "constant E.B = 1 was added",
    } < set(found)


def test_the_same_schema() -> None:
    assert lines("AVRO", FIRST, FIRST) == [
        "nothing changed",
        "the new schema reads data of the old one: yes",
        "the old schema reads data of the new one: yes",
    ]


def test_another_type() -> None:
    assert told(parse("AVRO", '"int"'), parse("JSON", "{}")) == [
        "the type AVRO became JSON: nothing else can be compared"
    ]
