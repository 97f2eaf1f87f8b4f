"""Pairs of Protobuf schemas that differ in messages, enums or oneofs."""

from __future__ import annotations

from .pair import Pair, field_pair, proto2, proto3

MESSAGES = [
    Pair("message added", proto3("message M { }"), proto3("message M { } message N { }")),
    Pair(
        "message removed",
        proto3("message M { } message N { }"),
        proto3("message M { }"),
        (("MESSAGE_REMOVED", "#/N"),),
    ),
    Pair("message renamed", proto3("message M { }"), proto3("message N { }"), (("MESSAGE_REMOVED", "#/M"),)),
    Pair(
        "messages in another order",
        proto3("message M { int32 a = 1; } message N { }"),
        proto3("message N { } message M { int32 a = 1; }"),
    ),
    Pair("nested message added", proto3("message M { }"), proto3("message M { message N { } }")),
    Pair(
        "nested message removed",
        proto3("message M { message N { } }"),
        proto3("message M { }"),
        (("MESSAGE_REMOVED", "#/M/N"),),
    ),
    Pair(
        "message moved out of another",
        proto3("message M { message N { } }"),
        proto3("message M { } message N { }"),
        (("MESSAGE_REMOVED", "#/M/N"),),
    ),
    Pair(
        "deeply nested field changed",
        proto3("message A { message B { message C { int32 x = 7; } } }"),
        proto3("message A { message B { message C { string x = 7; } } }"),
        (("FIELD_SCALAR_KIND_CHANGED", "#/A/B/C/7"),),
    ),
    Pair(
        "package changed",
        proto3("message M { }", "a"),
        proto3("message M { }", "b"),
        (("PACKAGE_CHANGED", "#/"),),
    ),
    Pair(
        "package added", proto3("message M { }"), proto3("message M { }", "b"), (("PACKAGE_CHANGED", "#/"),)
    ),
    Pair(
        "package removed", proto3("message M { }", "b"), proto3("message M { }"), (("PACKAGE_CHANGED", "#/"),)
    ),
    Pair(
        "package changed, with its types",
        proto3("message M { N n = 1; } message N { }", "a"),
        proto3("message M { N n = 1; } message N { }", "b"),
        (("PACKAGE_CHANGED", "#/"),),
    ),
    Pair(
        "package and a field changed",
        proto3("message M { int32 a = 1; }", "a"),
        proto3("message M { string a = 1; }", "b"),
        (("PACKAGE_CHANGED", "#/"), ("FIELD_SCALAR_KIND_CHANGED", "#/M/1")),
    ),
    Pair(
        "named type changed",
        proto3("message M { A a = 1; } message A { } message B { }"),
        proto3("message M { B a = 1; } message A { } message B { }"),
        (("FIELD_NAMED_TYPE_CHANGED", "#/M/1"),),
    ),
    Pair(
        "named type changed to a nested one of the same short name",
        proto3("message M { A a = 1; } message A { }"),
        proto3("message M { A a = 1; message A { } } message A { }"),
        (("FIELD_NAMED_TYPE_CHANGED", "#/M/1"),),
    ),
    Pair(
        "named type written in full",
        proto3("message M { A a = 1; } message A { }", "p"),
        proto3("message M { .p.A a = 1; } message A { }", "p"),
    ),
    Pair(
        "content of a local type changed",
        proto3("message M { A a = 1; } message A { int32 x = 1; }"),
        proto3("message M { A a = 1; } message A { string x = 1; }"),
        (("FIELD_SCALAR_KIND_CHANGED", "#/A/1"),),
    ),
    Pair(
        "recursive types",
        proto3("message M { M m = 1; N n = 2; } message N { M m = 1; }"),
        proto3("message M { M m = 1; N n = 2; int32 x = 3; } message N { M m = 1; }"),
    ),
    Pair(
        "map value type renamed",
        proto3("message M { map<string, A> a = 1; } message A { } message B { }"),
        proto3("message M { map<string, B> a = 1; } message A { } message B { }"),
        (("FIELD_NAMED_TYPE_CHANGED", "#/M/1"),),
    ),
    Pair(
        "syntax changed",
        proto2("message M { optional string a = 1; }"),
        proto3("message M { string a = 1; }"),
    ),
    Pair(
        "syntax changed, numbers",
        proto2("message M { optional int32 a = 1; }"),
        proto3("message M { int32 a = 1; }"),
    ),
    Pair("services", proto3("message M { } service S { rpc F (M) returns (M); }"), proto3("message M { }")),
    Pair(
        "service changed",
        proto3("message M { } service S { rpc F (M) returns (M); }"),
        proto3("message M { } service S { rpc F (stream M) returns (M); }"),
    ),
    Pair("file options", proto3('option java_package = "x"; message M { }'), proto3("message M { }")),
    Pair("message option", proto3("message M { option deprecated = true; }"), proto3("message M { }")),
    Pair("comments", proto3("/* x */ message M { // y\n }"), proto3("message M { }")),
    Pair("identical", proto3("message M { int32 a = 1; }"), proto3("message M { int32 a = 1; }")),
    Pair(
        "well-known types",
        proto3('import "google/protobuf/any.proto"; message M { google.protobuf.Any a = 1; }'),
        proto3('import "google/protobuf/any.proto"; message M { google.protobuf.Any a = 1; int32 b = 2; }'),
    ),
    Pair(
        "well-known type changed",
        proto3('import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp a = 1; }'),
        proto3('import "google/protobuf/duration.proto"; message M { google.protobuf.Duration a = 1; }'),
        (("FIELD_NAMED_TYPE_CHANGED", "#/M/1"),),
    ),
]

ENUMS = [
    Pair("enum added", proto3("message M { }"), proto3("message M { } enum E { A = 0; }")),
    Pair("enum removed", proto3("message M { } enum E { A = 0; }"), proto3("message M { }")),
    Pair(
        "enum value added",
        proto3("message M { E e = 1; } enum E { A = 0; }"),
        proto3("message M { E e = 1; } enum E { A = 0; B = 1; }"),
    ),
    Pair(
        "enum value removed",
        proto3("message M { E e = 1; } enum E { A = 0; B = 1; }"),
        proto3("message M { E e = 1; } enum E { A = 0; }"),
    ),
    Pair(
        "enum value renamed",
        proto3("message M { E e = 1; } enum E { A = 0; B = 1; }"),
        proto3("message M { E e = 1; } enum E { A = 0; C = 1; }"),
    ),
    Pair(
        "enum renamed",
        proto3("message M { E e = 1; } enum E { A = 0; }"),
        proto3("message M { F e = 1; } enum F { A = 0; }"),
    ),
    Pair(
        "enum to int32",
        proto3("message M { E e = 1; } enum E { A = 0; }"),
        proto3("message M { int32 e = 1; }"),
    ),
    Pair(
        "bool to enum",
        proto3("message M { bool e = 1; }"),
        proto3("message M { E e = 1; } enum E { A = 0; }"),
    ),
    Pair(
        "uint64 to enum",
        proto3("message M { uint64 e = 1; }"),
        proto3("message M { E e = 1; } enum E { A = 0; }"),
    ),
    Pair(
        "enum to string",
        proto3("message M { E e = 1; } enum E { A = 0; }"),
        proto3("message M { string e = 1; }"),
        (("FIELD_SCALAR_KIND_CHANGED", "#/M/1"),),
    ),
    Pair(
        "enum to sint32",
        proto3("message M { E e = 1; } enum E { A = 0; }"),
        proto3("message M { sint32 e = 1; }"),
        (("FIELD_SCALAR_KIND_CHANGED", "#/M/1"),),
    ),
    Pair(
        "enum to message",
        proto3("message M { E e = 1; } enum E { A = 0; }"),
        proto3("message M { M e = 1; }"),
        (("FIELD_KIND_CHANGED", "#/M/1"),),
    ),
    Pair(
        "enum becomes a message of the same name",
        proto3("message M { E e = 1; } enum E { A = 0; }"),
        proto3("message M { E e = 1; } message E { }"),
        (("FIELD_KIND_CHANGED", "#/M/1"),),
    ),
    Pair(
        "enum in a map",
        proto3("message M { map<int32, E> e = 1; } enum E { A = 0; }"),
        proto3("message M { map<int32, int32> e = 1; }"),
    ),
]

ONEOFS = [
    field_pair("oneof added", "int32 a = 1;", "int32 a = 1; oneof o { int32 b = 2; string c = 3; }"),
    field_pair("oneof removed with its fields", "int32 a = 1; oneof o { int32 b = 2; }", "int32 a = 1;"),
    field_pair("oneof dissolved", "oneof o { int32 a = 1; string b = 2; }", "int32 a = 1; string b = 2;"),
    field_pair(
        "oneof renamed", "oneof o { int32 a = 1; string b = 2; }", "oneof p { int32 a = 1; string b = 2; }"
    ),
    field_pair(
        "oneof renamed, a type changed",
        "oneof o { int32 a = 1; string b = 2; }",
        "oneof p { int32 a = 1; float b = 2; }",
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/p/2"),
    ),
    field_pair(
        "field added to a oneof", "oneof o { int32 a = 1; }", "oneof o { int32 a = 1; string b = 2; }"
    ),
    field_pair(
        "field removed from a oneof",
        "oneof o { int32 a = 1; string b = 2; }",
        "oneof o { int32 a = 1; }",
        ("ONEOF_FIELD_REMOVED", "#/M/o/2"),
    ),
    field_pair(
        "field moved out of a oneof",
        "oneof o { int32 a = 1; string b = 2; }",
        "oneof o { int32 a = 1; } string b = 2;",
    ),
    field_pair(
        "field moved out of a oneof and changed",
        "oneof o { int32 a = 1; string b = 2; }",
        "oneof o { int32 a = 1; } double b = 2;",
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/2"),
    ),
    field_pair(
        "field of a oneof changed within its kind", "oneof o { int32 a = 1; }", "oneof o { int64 a = 1; }"
    ),
    field_pair(
        "field of a oneof changed",
        "oneof o { int32 a = 1; }",
        "oneof o { string a = 1; }",
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/o/1"),
    ),
    field_pair(
        "field of a oneof becomes a message",
        "oneof o { int32 a = 1; }",
        "oneof o { M a = 1; }",
        ("FIELD_KIND_CHANGED", "#/M/o/1"),
    ),
    field_pair("one field into a new oneof", "int32 a = 1;", "oneof o { int32 a = 1; }"),
    field_pair(
        "one field into a new oneof with a new one", "int32 a = 1;", "oneof o { int32 a = 1; string b = 2; }"
    ),
    field_pair(
        "two fields into a new oneof",
        "int32 a = 1; string b = 2;",
        "oneof o { int32 a = 1; string b = 2; }",
        ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o"),
    ),
    field_pair(
        "three fields into a new oneof",
        "int32 a = 1; string b = 2; bool c = 3;",
        "oneof o { int32 a = 1; string b = 2; bool c = 3; }",
        ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o"),
    ),
    field_pair(
        "two fields into two new oneofs",
        "int32 a = 1; string b = 2;",
        "oneof o { int32 a = 1; } oneof p { string b = 2; }",
    ),
    field_pair(
        "one field into an existing oneof",
        "oneof o { int32 a = 1; } string b = 2;",
        "oneof o { int32 a = 1; string b = 2; }",
        ("FIELD_MOVED_TO_EXISTING_ONEOF", "#/M/o"),
    ),
    field_pair(
        "two fields into an existing oneof",
        "oneof o { int32 a = 1; } string b = 2; bool c = 3;",
        "oneof o { int32 a = 1; string b = 2; bool c = 3; }",
        ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o"),
    ),
    field_pair(
        "field moved into a oneof and changed",
        "int32 a = 1;",
        "oneof o { string a = 1; }",
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/o/1"),
    ),
    field_pair(
        "field moved from one oneof into another",
        "oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; }",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; int32 c = 3; }",
        ("FIELD_MOVED_TO_EXISTING_ONEOF", "#/M/p"),
    ),
    field_pair(
        "two oneofs merged",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; }",
        "oneof q { int32 a = 1; int32 b = 2; }",
        ("FIELD_MOVED_TO_EXISTING_ONEOF", "#/M/q"),
    ),
    field_pair(
        "two oneofs and two fields merged",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; } int32 c = 3; int32 d = 4;",
        "oneof o { int32 a = 1; int32 b = 2; int32 c = 3; int32 d = 4; }",
        ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o"),
    ),
    field_pair(
        "oneof split",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; }",
    ),
    field_pair(
        "oneof renamed, a field dropped",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof p { int32 a = 1; }",
        ("ONEOF_FIELD_REMOVED", "#/M/o/2"),
    ),
    field_pair("optional is not a oneof of its own", "optional int32 a = 1;", "int32 a = 1;"),
    field_pair("optional removed", "optional int32 a = 1; int32 b = 2;", "int32 b = 2;"),
    field_pair(
        "oneof of a nested message",
        "message N { oneof o { int32 a = 1; int32 b = 2; } }",
        "message N { oneof o { int32 a = 1; } }",
        ("ONEOF_FIELD_REMOVED", "#/M/N/o/2"),
    ),
]
