"""Pairs of Protobuf schemas with the verdict of registries: kinds and paths of incompatibilities."""

from __future__ import annotations

from itertools import permutations

from .pair import Pair, field_pair, proto2
from .type_pairs import ENUMS, MESSAGES, ONEOFS

SCALAR_GROUPS = (
    ("int32", "int64", "uint32", "uint64", "bool"),
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("float",),
    ("double",),
)


def _scalars() -> list[Pair]:
    """All pairs within the groups, and each scalar against the first of every other group."""
    found: list[Pair] = []
    for group in SCALAR_GROUPS:
        for old, new in permutations(group, 2):
            found.append(field_pair(f"{old} to {new}", f"{old} a = 1;", f"{new} a = 1;"))
    for group, other in permutations(SCALAR_GROUPS, 2):
        for old in group:
            changed = ("FIELD_SCALAR_KIND_CHANGED", "#/M/1")
            found.append(field_pair(f"{old} to {other[0]}", f"{old} a = 1;", f"{other[0]} a = 1;", changed))
    return found


def _labels() -> list[Pair]:
    """Labels count where both sides have one; proto2 always has, proto3 only optional and repeated."""
    found: list[Pair] = []
    numeric = ("FIELD_NUMERIC_LABEL_CHANGED", "#/M/1")
    for old, new in permutations(("optional", "required", "repeated"), 2):
        for scalar in ("int32", "sint64", "double", "fixed32", "bool"):
            expected = [numeric]
            found.append(
                Pair(
                    f"{old} {scalar} to {new}",
                    proto2(f"message M {{ {old} {scalar} a = 1; }}"),
                    proto2(f"message M {{ {new} {scalar} a = 1; }}"),
                    tuple(expected),
                )
            )
        for scalar in ("string", "bytes"):
            found.append(
                Pair(
                    f"{old} {scalar} to {new}",
                    proto2(f"message M {{ {old} {scalar} a = 1; }}"),
                    proto2(f"message M {{ {new} {scalar} a = 1; }}"),
                )
            )
    return [
        *found,
        field_pair("no label to repeated", "int32 a = 1;", "repeated int32 a = 1;"),
        field_pair("repeated to no label", "repeated int32 a = 1;", "int32 a = 1;"),
        field_pair("no label to optional", "int32 a = 1;", "optional int32 a = 1;"),
        field_pair("optional to repeated", "optional int32 a = 1;", "repeated int32 a = 1;", numeric),
        field_pair(
            "optional string of proto3 to repeated", "optional string a = 1;", "repeated string a = 1;"
        ),
        field_pair("repeated messages to one", "repeated M a = 1;", "M a = 1;"),
    ]


FIELDS = [
    field_pair("field added", "int32 a = 1;", "int32 a = 1; string b = 2;"),
    field_pair("field removed", "int32 a = 1; string b = 2;", "int32 a = 1;"),
    field_pair("field renamed", "int32 a = 1;", "int32 z = 1;"),
    field_pair("fields in another order", "int32 a = 1; string b = 2;", "string b = 2; int32 a = 1;"),
    field_pair("number changed is one removed, one added", "int32 a = 1;", "int32 a = 2;"),
    field_pair("options changed", "int32 a = 1;", "int32 a = 1 [deprecated = true];"),
    field_pair("json name changed", "int32 a = 1;", 'int32 a = 1 [json_name = "x"];'),
    field_pair("reserved added", "int32 a = 1; int32 b = 2;", 'int32 a = 1; reserved 2; reserved "b";'),
    field_pair("reserved removed", "reserved 2; int32 a = 1;", "int32 a = 1; int32 b = 2;"),
    field_pair("scalar to message", "int32 a = 1;", "M a = 1;", ("FIELD_KIND_CHANGED", "#/M/1")),
    field_pair("message to scalar", "M a = 1;", "bytes a = 1;", ("FIELD_KIND_CHANGED", "#/M/1")),
    field_pair("scalar to map", "int32 a = 1;", "map<string, M> a = 1;", ("FIELD_KIND_CHANGED", "#/M/1")),
    field_pair("map to message", "map<string, M> a = 1;", "M a = 1;", ("FIELD_KIND_CHANGED", "#/M/1")),
    field_pair(
        "message to map", "repeated M a = 1;", "map<string, M> a = 1;", ("FIELD_KIND_CHANGED", "#/M/1")
    ),
    field_pair("same map", "map<string, int32> a = 1;", "map<string, int32> a = 1;"),
    field_pair("map value within its kind", "map<string, int32> a = 1;", "map<string, int64> a = 1;"),
    field_pair(
        "map value changed",
        "map<string, int32> a = 1;",
        "map<string, double> a = 1;",
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    ),
    field_pair(
        "map key changed",
        "map<string, int32> a = 1;",
        "map<int32, int32> a = 1;",
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    ),
    field_pair(
        "map key and value changed",
        "map<string, int32> a = 1;",
        "map<int32, string> a = 1;",
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    ),
    field_pair(
        "map value scalar to message",
        "map<string, int32> a = 1;",
        "map<string, M> a = 1;",
        ("FIELD_KIND_CHANGED", "#/M/1"),
    ),
    field_pair(
        "two fields changed",
        "int32 a = 1; float b = 2;",
        "string a = 1; double b = 2;",
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/2"),
    ),
    field_pair(
        "map and its written entry",
        "map<string, int32> a = 1;",
        "repeated AEntry a = 1; message AEntry { option map_entry = true; string key = 1; int32 value = 2; }",
    ),
]

REQUIRED = [
    Pair(
        "required added",
        proto2("message M { optional int32 a = 1; }"),
        proto2("message M { optional int32 a = 1; required int32 b = 2; }"),
        (("REQUIRED_FIELD_ADDED", "#/M/2"),),
    ),
    Pair(
        "required removed",
        proto2("message M { optional int32 a = 1; required int32 b = 2; }"),
        proto2("message M { optional int32 a = 1; }"),
        (("REQUIRED_FIELD_REMOVED", "#/M/2"),),
    ),
    Pair(
        "required string added in a nested message",
        proto2("message M { message N { } }"),
        proto2("message M { message N { required string s = 4; } }"),
        (("REQUIRED_FIELD_ADDED", "#/M/N/4"),),
    ),
    Pair(
        "required kept",
        proto2("message M { required int32 a = 1; }"),
        proto2("message M { required int64 a = 1; }"),
    ),
    Pair(
        "required renumbered",
        proto2("message M { required int32 a = 1; }"),
        proto2("message M { required int32 a = 2; }"),
        (("REQUIRED_FIELD_REMOVED", "#/M/1"), ("REQUIRED_FIELD_ADDED", "#/M/2")),
    ),
    Pair(
        "required moved into a new oneof",
        proto2("message M { required string a = 1; }"),
        proto2("message M { oneof o { string a = 1; } }"),
    ),
    Pair(
        "a new message may have required fields",
        proto2("message M { }"),
        proto2("message M { } message N { required int32 a = 1; }"),
    ),
    Pair(
        "default changed",
        proto2("message M { optional int32 a = 1 [default = 1]; }"),
        proto2("message M { optional int32 a = 1 [default = 2]; }"),
    ),
    Pair(
        "group fields changed",
        proto2("message M { optional group G = 1 { optional int32 a = 1; } }"),
        proto2("message M { optional group G = 1 { optional string a = 1; } }"),
        (("FIELD_SCALAR_KIND_CHANGED", "#/M/G/1"),),
    ),
    Pair(
        "group to message",
        proto2("message M { optional group G = 1 { optional int32 a = 1; } }"),
        proto2("message M { optional G g = 1; message G { optional int32 a = 1; } }"),
        (("FIELD_KIND_CHANGED", "#/M/1"),),
    ),
    Pair(
        "no label in proto2",
        proto2("message M { int32 a = 1; }"),
        proto2("message M { repeated int32 a = 1; }"),
    ),
    Pair("extension ranges", proto2("message M { extensions 10 to 20; }"), proto2("message M { }")),
]

PAIRS = [*_scalars(), *_labels(), *FIELDS, *REQUIRED, *MESSAGES, *ENUMS, *ONEOFS]
