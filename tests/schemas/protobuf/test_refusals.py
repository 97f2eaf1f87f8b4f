"""Protobuf schemas that are refused: each with the place and the reason, in bounded time."""

from __future__ import annotations

import base64
import time

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.schemas.model import InvalidSchema, Reference, ResolvedReference
from barnabas.schemas.protobuf.parsing import SIZE_MAX, parse


def references(**texts: str) -> list[ResolvedReference]:
    return [ResolvedReference(Reference(f"{name}.proto", name, 1), text) for name, text in texts.items()]


P3 = 'syntax = "proto3";\n'

REFUSED = [
    ("", "declares nothing"),
    ("   // only a comment", "declares nothing"),
    ("message", "line 1, column 8: expected a name, found the end of the file"),
    ("message M {", "line 1, column 12: the text ends in the middle of a declaration"),
    ("message M {\n  int32 a = 1\n}", "line 3, column 1: expected ';', found '}'"),
    ("message M { int32 a = x; }", "column 23: expected a whole number, found 'x'"),
    ("message M { int32 = 1; }", "expected a name, found '='"),
    ("message M { int32 a = 1.5; }", "expected a whole number, found '1.5'"),
    ("message M { int32 a = 99999999999; }", "number 99999999999 is greater than 536870911"),
    (f"message M {{ int32 a = {'9' * 5000}; }}", "is greater than 536870911"),
    ('{"type": "record"}', "expected a declaration, found '{'"),
    ("not a schema", "line 1, column 1: expected a declaration, found 'not'"),
    ("/* no end", "line 1, column 1: a comment is not closed"),
    ('import "x', "a string is not closed"),
    ('syntax = "proto4"; message M { }', "unknown syntax 'proto4'"),
    ('edition = "1999"; message M { }', "unknown edition '1999'"),
    ('message M { } syntax = "proto3";', "expected a declaration, found 'syntax'"),
    ("package a; package b; message M { }", "a second package"),
    ("message M { ä }", "unexpected 'ä'"),
    ("message M { int32 a = 1; int32 a = 2; }", "'M.a' is declared twice"),
    (P3 + "message M {\n  int32 a = 1;\n  int32 b = 1;\n}", "line 4: 'b' and 'a' have the same number 1"),
    ("message M { }\nmessage M { }", "line 2: 'M' is declared twice, first on line 1"),
    ("message M { } enum M { A = 0; }", "'M' is declared twice"),
    ("enum A { X = 0; }\nenum B { X = 0; }", "line 2: 'X' is declared twice"),
    (P3 + "message M { int32 a = 0; }", "field number 0 is not between 1 and 536870911"),
    (P3 + "message M { int32 a = 19500; }", "19000 to 19999 belong to Protobuf"),
    (P3 + "message M { reserved 1 to 5; int32 a = 3; }", "uses the reserved number 3"),
    (P3 + 'message M { reserved "a"; int32 a = 3; }', "the name 'a' is reserved"),
    (P3 + "message M { reserved 1 to 5, 4; }", "overlaps"),
    (P3 + "message M { reserved 5 to 1; }", "a range ends at 1, before its start 5"),
    (P3 + "message M {\n  Nope a = 1;\n}", "line 3: type 'Nope' is not defined"),
    (P3 + "message M { google.protobuf.Any a = 1; }", "type 'google.protobuf.Any' is not defined"),
    (
        P3 + 'import "no/such.proto";\nmessage M { }',
        "line 2: import 'no/such.proto' is neither a reference nor",
    ),
    (P3 + "message M { required int32 a = 1; }", "proto3 has no required fields"),
    (P3 + "message M { int32 a = 1 [default = 1]; }", "proto3 has no defaults"),
    (P3 + "message M { group G = 1 { } }", "only proto2 has groups"),
    (P3 + "message M { extensions 5; }", "proto3 has no extension ranges"),
    (P3 + "enum E { A = 1; }", "the first value must be 0"),
    (P3 + "enum E { }", "has no value"),
    (P3 + "enum E { A = 0; B = 0; }", "allow_alias"),
    (P3 + "message M { map<float, int32> m = 1; }", "'float' cannot be the key of a map"),
    (P3 + "message M { map<M, int32> m = 1; }", "'M' cannot be the key of a map"),
    (P3 + "message M { repeated map<string, int32> m = 1; }", "a map has no label"),
    (P3 + "message M { oneof o { map<string, int32> m = 1; } }", "a map cannot be in a oneof"),
    (P3 + "message M { oneof o { repeated int32 m = 1; } }", "a field in a oneof has no label"),
    (P3 + "message M { int32 a = 1 [deprecated = 5]; }", "option 'deprecated': true or false is expected"),
    (P3 + "option optimize_for = FAST; message M { }", "has no value FAST"),
    (P3 + "service S { rpc F (E) returns (E); } enum E { A = 0; }", "'E' is no message"),
    (
        P3 + "service S { rpc F (M) returns (M); rpc F (M) returns (M); } message M { }",
        "'S.F' is declared twice",
    ),
    ("message M { optional int32 a = 1 [default = 3000000000]; }", "the default does not fit its field"),
    ("message M { optional bool a = 1 [default = 1]; }", "true or false is expected"),
    ("message M { optional E a = 1 [default = C]; } enum E { A = 0; }", "C"),
    ("message M { repeated int32 a = 1 [default = 1]; }", "repeated fields and messages have no default"),
    ("message M { extensions 10 to 20; } extend M { optional int32 x = 30; }", "has no extension number 30"),
    ("message M { extensions 10 to 20; optional int32 x = 15; }", "left to extensions"),
    ("message M { optional group g = 1 { } }", "must start with a capital letter"),
    ('edition = "2023"; message M { optional int32 a = 1; }', "editions have no label optional"),
    ("message A {" * 40 + "}" * 40, "nested more than 32 deep"),
    ("message A {" * 20000, "nested more than 32 deep"),
    ("option a = " + "{a:" * 20000, "nested more than 32 deep"),
    ("option a = {b: " + "[" * 20000, "nested more than 32 deep"),
    ("message M { optional group A = 1 {" * 40, "nested more than 32 deep"),
    ("AAAA", "expected a declaration, found 'AAAA'"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[f"{at}" for at in range(len(REFUSED))])
def test_bad_text_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse(text, strict=True)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_schema_that_is_too_long_is_refused_unread() -> None:
    with pytest.raises(InvalidSchema, match=f"the limit is {SIZE_MAX}"):
        parse("message M { }" + " " * SIZE_MAX)


def test_circles_of_imports_are_refused() -> None:
    given = references(a='import "b.proto"; message A { }', b='import "a.proto"; message B { }')
    with pytest.raises(InvalidSchema, match=r"circle: a\.proto -> b\.proto -> a\.proto"):
        parse('import "a.proto"; message M { }', given)
    with pytest.raises(InvalidSchema, match="circle"):
        parse('import "a.proto"; message M { }', references(a='import "a.proto"; message A { }'))


def test_a_bad_reference_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r"in 'a\.proto': line 1, column 9: expected a name"):
        parse('import "a.proto"; message M { }', references(a="message { }"))


def test_types_are_visible_through_public_imports_only() -> None:
    private = references(a='import "b.proto"; message A { }', b="message B { }")
    public = references(a='import public "b.proto"; message A { }', b="message B { }")
    text = 'import "a.proto"; message M { optional B b = 1; }'
    assert parse(text, public, strict=True).references[0].name == "a.proto"
    with pytest.raises(InvalidSchema, match="type 'B' is not defined"):
        parse(text, private)


def test_the_same_name_in_two_files_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="duplicate symbol 'M'"):
        parse('import "a.proto"; message M { }', references(a="message M { }"))


META = 'import "confluent/meta.proto"; '
LENIENT = [
    "message M { reserved 1; optional int32 a = 1; }",
    "message M { reserved 1 to 5, 4; extensions 5; }",
    "message M { optional bytes b = 1 [default = abc]; optional string s = 2 [default = 7]; }",
    "message M { optional int32 a = 1 [deprecated = 5]; }",
    META + 'message M { optional int32 a = 1 [(confluent.field_meta) = {doc: "d", x: 1}]; }',
    META + "message M { optional int32 a = 1 [(confluent.field_meta) = [{x: 1}, {x: 2}]]; }",
    "enum E { reserved 1; A = 1; }",
]


@pytest.mark.parametrize("text", LENIENT)
def test_what_other_registries_have_stored_is_read_and_only_refused_when_it_is_new(text: str) -> None:
    schema = parse(text)
    assert parse(schema.canonical).canonical == schema.canonical
    normal = schema.normalized()
    assert normal.normalized().canonical == normal.canonical
    assert parse(schema.formatted("serialized")).normalized().canonical == normal.canonical
    with pytest.raises(InvalidSchema):
        parse(text, strict=True)


def test_stored_schemas_may_import_files_that_no_type_needs() -> None:
    options = "(gone.rule) = {x: 1}, (gone.n) = 5"
    text = f'syntax = "proto3"; import "gone.proto"; message M {{ int32 a = 1 [{options}]; }}'
    schema = parse(text)
    assert "(gone.rule)" in schema.canonical
    assert "(gone.n) = 5" in schema.normalized().canonical
    with pytest.raises(InvalidSchema, match="gone"):
        parse(text, strict=True)


@pytest.mark.parametrize(
    "text",
    [
        'name: "x"',
        'message_type { name: "M-x" }',
        'message_type { name: "M" field { name: "a" number: 1 label: LABEL_OPTIONAL type_name: "Nope" } }',
        'message_type { name: "M" field { name: "a;" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 } }',
        'message_type { name: "M" field { name: "a" number: 1 oneof_index: 3 type: TYPE_INT32 } }',
        'package: "a; message X {}" message_type { name: "M" }',
        'dependency: "gone.proto" message_type { name: "M" }',
        'syntax: "proto9" message_type { name: "M" }',
        'syntax: "editions" message_type { name: "M" }',
        'message_type { name: "M" enum_type { name: "E" } }',
    ],
)
def test_bad_descriptors_are_refused(text: str) -> None:
    from google.protobuf import text_format

    descriptor = text_format.Parse(text, FileDescriptorProto())
    with pytest.raises(InvalidSchema):
        parse(base64.b64encode(descriptor.SerializeToString()).decode(), strict=True)


def test_a_descriptor_with_a_name_that_is_not_utf_8_is_refused() -> None:
    data = b"\x22\x04\x0a\x02\xff\xfe"  # message_type { name }
    with pytest.raises(InvalidSchema, match="name that is not UTF-8"):
        parse(base64.b64encode(data).decode())


HOSTILE = [
    "message M {" + "".join(f"reserved {n};" for n in range(1, 8000)) + "}",
    "message M {" + "".join(f"optional int32 f{n} = {n};" for n in range(1, 4000)) + "}",
    "message M { option deprecated = " + '"a"' * 30000 + "; }",
    "1" * 500000 + "a",
    "message M { optional int32 a = 1 [" + ",".join(f"(o{n}) = {n}" for n in range(6000)) + "]; }",
    "option (a) = {" + "a:1 " * 20000 + "}; message M { }",
    "message M { extensions "
    + ",".join(str(2 * n) for n in range(1, 6000))
    + "; }"
    + "".join(f"extend M {{ optional int32 e{n} = {2 * n}; }}" for n in range(1, 2000)),
    "//" + "x" * 900000,
    "message M { optional string a = 1 [default = '" + "\\" * 600000 + "']; }",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_take_time_that_grows_with_their_length(text: str) -> None:
    # The yardstick is an ordinary schema in the same run: 20 times its time per character is ample.
    ordinary = P3 + "".join(f"message M{n} {{ string a = 1; repeated M{n} b = 2; }}\n" for n in range(400))
    before = time.process_time()
    parse(ordinary)
    per_character = (time.process_time() - before) / len(ordinary)
    before = time.process_time()
    try:
        parse(text).normalized()
    except InvalidSchema as problem:
        assert len(str(problem)) < 300
    assert time.process_time() - before < 20 * per_character * len(text) + 0.1
