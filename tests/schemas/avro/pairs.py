"""Pairs of Avro schemas with the kinds of incompatibility that a registry reports for them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

NAME, TYPE, FIELD = "NAME_MISMATCH", "TYPE_MISMATCH", "READER_FIELD_MISSING_DEFAULT_VALUE"
AMBIGUOUS = "READER_FIELD_AMBIGUOUS"
SYMBOLS, SIZE, BRANCH = "MISSING_ENUM_SYMBOLS", "FIXED_SIZE_MISMATCH", "MISSING_UNION_BRANCH"

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTED = {
    ("long", "int"),
    ("float", "int"),
    ("float", "long"),
    ("double", "int"),
    ("double", "long"),
    ("double", "float"),
    ("bytes", "string"),
    ("string", "bytes"),
}


class Pair(NamedTuple):
    label: str
    reader: str
    writer: str
    reasons: list[tuple[str, str]]  # kind and path


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def enum(symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": symbols.split(), **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def mapped(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


A, B = field("a", "int"), field("b", "string")
NODE = record(A, field("next", ["null", "R"]))
TREE = record(A, field("children", array("R")))

HAND = [
    # fields of records
    ("the same record", record(A, B), record(A, B), []),
    ("fields in another order", record(B, A), record(A, B), []),
    ("a record without fields reads any", record(), record(A, B), []),
    ("a field removed", record(A), record(A, B), []),
    ("a field added without a default", record(A, B), record(A), [(FIELD, "/fields/1")]),
    ("a field added with a default", record(A, field("b", "string", default="")), record(A), []),
    (
        "a field added with a null default",
        record(A, field("b", ["null", "int"], default=None)),
        record(A),
        [],
    ),
    (
        "a nullable field added without default",
        record(A, field("b", ["null", "int"])),
        record(A),
        [(FIELD, "/fields/1")],
    ),
    (
        "two fields added",
        record(A, B, field("c", "int")),
        record(),
        [(FIELD, f"/fields/{n}") for n in (0, 1, 2)],
    ),
    ("a field renamed", record(field("z", "int")), record(A), [(FIELD, "/fields/0")]),
    ("a field renamed with an alias", record(field("z", "int", aliases=["a"])), record(A), []),
    ("a second alias matches", record(field("z", "int", aliases=["y", "a"])), record(A), []),
    (
        "an alias of the writer does not count",
        record(A),
        record(field("z", "int", aliases=["a"])),
        [(FIELD, "/fields/0")],
    ),
    (
        "an alias of another type",
        record(field("z", "int", aliases=["b"])),
        record(B),
        [(TYPE, "/fields/0/type")],
    ),
    (
        "a name and an alias both match",
        record(field("a", "int", aliases=["b"])),
        record(A, B),
        [(AMBIGUOUS, "/fields/0")],
    ),
    ("a field promoted", record(field("a", "long")), record(A), []),
    ("a field demoted", record(A), record(field("a", "long")), [(TYPE, "/fields/0/type")]),
    (
        "a field of another type with a default",
        record(field("a", "int", default=1)),
        record(field("a", "string")),
        [(TYPE, "/fields/0/type")],
    ),
    (
        "two fields of other types",
        record(A, B),
        record(field("a", "string"), field("b", "int")),
        [(TYPE, "/fields/0/type"), (TYPE, "/fields/1/type")],
    ),
    (
        "one field wrong and one missing",
        record(A, B),
        record(field("a", "string")),
        [(TYPE, "/fields/0/type"), (FIELD, "/fields/1")],
    ),
    ("a field made nullable", record(field("a", ["null", "int"])), record(A), []),
    ("a field made required", record(A), record(field("a", ["null", "int"])), [(TYPE, "/fields/0/type/0")]),
    ("doc does not matter", record(A, doc="x"), record(field("a", "int", doc="y"), doc="z"), []),
    ("order does not matter", record(field("a", "int", order="descending")), record(A), []),
    ("unknown attributes do not matter", record(field("a", "int", tag=1), owner="x"), record(A), []),
    ("a default removed from a field that both have", record(A), record(field("a", "int", default=1)), []),
    ("a default changed", record(field("a", "int", default=2)), record(field("a", "int", default=1)), []),
    # names of records
    ("another name", record(A, name="S"), record(A), [(NAME, "/name")]),
    ("another name with an alias", record(A, name="S", aliases=["R"]), record(A), []),
    (
        "an alias with a namespace",
        record(A, name="S", namespace="n", aliases=["m.R"]),
        record(A, namespace="m"),
        [],
    ),
    (
        "an alias in the reader's namespace",
        record(A, name="S", namespace="n", aliases=["R"]),
        record(A, namespace="m"),
        [(NAME, "/name")],
    ),
    (
        "an alias takes the namespace of its type",
        record(A, name="S", namespace="n", aliases=["R"]),
        record(A, namespace="n"),
        [],
    ),
    ("another namespace", record(A, namespace="n"), record(A, namespace="m"), []),
    ("a namespace added", record(A, namespace="n"), record(A), []),
    ("the namespace inside of the name", record(A, name="n.R"), record(A, namespace="n"), []),
    (
        "another name and a field missing",
        record(A, B, name="S"),
        record(A),
        [(NAME, "/name"), (FIELD, "/fields/1")],
    ),
    (
        "a nested record of another name",
        record(field("r", record(A, name="X"))),
        record(field("r", record(A, name="Y"))),
        [(NAME, "/fields/0/type/name")],
    ),
    (
        "a nested record with a field more",
        record(field("r", record(A, B, name="X"))),
        record(field("r", record(A, name="X"))),
        [(FIELD, "/fields/0/type/fields/1")],
    ),
    (
        "a nested record with a default more",
        record(field("r", record(A, field("b", "int", default=0), name="X"))),
        record(field("r", record(A, name="X"))),
        [],
    ),
    ("an error type reads a record", {**record(A), "type": "error"}, record(A), []),
    # recursion
    ("a list reads itself", NODE, NODE, []),
    ("a tree reads itself", TREE, TREE, []),
    ("a list with a field more", record(A, B, field("next", ["null", "R"])), NODE, [(FIELD, "/fields/1")]),
    (
        "a list with an optional field more",
        record(A, field("b", "int", default=0), field("next", ["null", "R"])),
        NODE,
        [],
    ),
    ("a list of another name", record(A, field("next", ["null", "S"]), name="S"), NODE, [(NAME, "/name")]),
    (
        "a tree whose leaves change",
        record(field("a", "string"), field("children", array("R"))),
        TREE,
        [(TYPE, "/fields/0/type")],
    ),
    (
        "a list reads a chain of two records",
        NODE,
        record(A, field("next", ["null", record(A, field("next", ["null", "R"]), name="Q")])),
        [(BRANCH, "/fields/1/type/1")],
    ),
    # enums
    ("the same enum", enum("A B"), enum("A B"), []),
    ("symbols in another order", enum("B A"), enum("A B"), []),
    ("a symbol added", enum("A B C"), enum("A B"), []),
    ("a symbol removed", enum("A"), enum("A B"), [(SYMBOLS, "/symbols")]),
    ("symbols removed with a default", enum("A", default="A"), enum("A B C"), []),
    ("a default of the writer does not count", enum("A"), enum("A B", default="A"), [(SYMBOLS, "/symbols")]),
    ("no symbol in common", enum("C D"), enum("A B"), [(SYMBOLS, "/symbols")]),
    ("an enum renamed", enum("A", name="G"), enum("A"), [(NAME, "/name")]),
    ("an enum renamed with an alias", enum("A", name="G", aliases=["E"]), enum("A"), []),
    (
        "an enum renamed with fewer symbols",
        enum("A", name="G"),
        enum("A B"),
        [(NAME, "/name"), (SYMBOLS, "/symbols")],
    ),
    (
        "a field's enum loses a symbol",
        record(field("e", enum("A"))),
        record(field("e", enum("A B"))),
        [(SYMBOLS, "/fields/0/type/symbols")],
    ),
    ("a string reads an enum", "string", enum("A"), [(TYPE, "/")]),
    ("an enum reads a string", enum("A"), "string", [(TYPE, "/")]),
    ("an enum of another namespace", enum("A", namespace="n"), enum("A", namespace="m"), []),
    # fixed
    ("the same fixed", fixed(4), fixed(4), []),
    ("another size", fixed(4), fixed(8), [(SIZE, "/size")]),
    ("a fixed renamed", fixed(4, name="G"), fixed(4), [(NAME, "/name")]),
    ("a fixed renamed with an alias", fixed(4, name="G", aliases=["F"]), fixed(4), []),
    ("a fixed renamed and resized", fixed(4, name="G"), fixed(5), [(NAME, "/name"), (SIZE, "/size")]),
    ("bytes read a fixed", "bytes", fixed(4), [(TYPE, "/")]),
    ("a fixed reads bytes", fixed(4), "bytes", [(TYPE, "/")]),
    ("a string reads a fixed", "string", fixed(4), [(TYPE, "/")]),
    (
        "a field's fixed resized",
        record(field("f", fixed(1))),
        record(field("f", fixed(2))),
        [(SIZE, "/fields/0/type/size")],
    ),
    ("a fixed of another namespace", fixed(4, namespace="n"), fixed(4), []),
    # arrays and maps
    ("the same array", array("int"), array("int"), []),
    ("items promoted", array("long"), array("int"), []),
    ("items of another type", array("int"), array("string"), [(TYPE, "/items")]),
    ("the same map", mapped("int"), mapped("int"), []),
    ("values promoted", mapped("double"), mapped("float"), []),
    ("values of another type", mapped("int"), mapped("boolean"), [(TYPE, "/values")]),
    ("an array reads a map", array("int"), mapped("int"), [(TYPE, "/")]),
    ("a map reads an array", mapped("int"), array("int"), [(TYPE, "/")]),
    ("a map reads a record", mapped("int"), record(A), [(TYPE, "/")]),
    ("a record reads a map", record(A), mapped("int"), [(TYPE, "/")]),
    ("an int reads an array", "int", array("int"), [(TYPE, "/")]),
    ("an array of arrays", array(array("int")), array(array("string")), [(TYPE, "/items/items")]),
    ("a map of arrays", mapped(array("int")), mapped(array("string")), [(TYPE, "/values/items")]),
    ("items made nullable", array(["null", "int"]), array("int"), []),
    ("items made required", array("int"), array(["null", "int"]), [(TYPE, "/items/0")]),
    ("an array of records", array(record(A, B)), array(record(A)), [(FIELD, "/items/fields/1")]),
    ("a map of enums", mapped(enum("A")), mapped(enum("A B")), [(SYMBOLS, "/values/symbols")]),
    ("an array of fixed", array(fixed(1)), array(fixed(2)), [(SIZE, "/items/size")]),
    # unions
    ("the same union", ["null", "int"], ["null", "int"], []),
    ("branches in another order", ["int", "null"], ["null", "int"], []),
    ("a branch added", ["null", "int", "string"], ["null", "int"], []),
    ("a branch removed", ["null", "int"], ["null", "int", "boolean"], [(BRANCH, "/2")]),
    ("two branches removed", ["null"], ["null", "int", "boolean"], [(BRANCH, "/1"), (BRANCH, "/2")]),
    ("a branch promoted", ["null", "long"], ["null", "int"], []),
    ("a branch demoted", ["null", "int"], ["null", "long"], [(BRANCH, "/1")]),
    ("a union reads one of its branches", ["null", "int"], "int", []),
    ("a union reads a promoted branch", ["null", "double"], "int", []),
    ("a union reads a foreign type", ["null", "int"], "string", [(BRANCH, "/")]),
    ("a plain type reads a union of one", "int", ["int"], []),
    ("a plain type reads a union that fits", "double", ["int", "float"], []),
    ("a plain type reads a union that does not fit", "int", ["int", "string"], [(TYPE, "/1")]),
    ("a plain type reads null", "int", ["null", "int"], [(TYPE, "/0")]),
    ("a string reads string and bytes", "string", ["string", "bytes"], []),
    ("an empty union reads nothing", [], "int", [(BRANCH, "/")]),
    ("an empty union reads an empty union", [], [], []),
    ("any type reads an empty union", "int", [], []),
    ("a union with records", [record(A), "null"], [record(A), "null"], []),
    ("a record in a union with a field more", [record(A, B)], [record(A)], [(BRANCH, "/0")]),
    ("a union of two records reads one", [record(A, name="X"), record(A, name="Y")], record(A, name="Y"), []),
    (
        "a union of two records reads a third",
        [record(A, name="X"), record(A, name="Y")],
        record(A, name="Z"),
        [(BRANCH, "/")],
    ),
    ("a union of an enum that lost a symbol", [enum("A"), "null"], [enum("A B"), "null"], [(BRANCH, "/0")]),
    ("a union of an enum and a string reads the enum", [enum("A"), "string"], enum("A"), []),
    ("a union of fixed of another size", ["null", fixed(4)], ["null", fixed(5)], [(BRANCH, "/1")]),
    ("a union of arrays", ["null", array("long")], ["null", array("int")], []),
    (
        "a union of arrays of another type",
        ["null", array("int")],
        ["null", array("string")],
        [(BRANCH, "/1")],
    ),
    ("a union of maps of another type", ["null", mapped("int")], mapped("string"), [(BRANCH, "/")]),
    (
        "a field's union lost a branch",
        record(field("a", ["null", "int"])),
        record(field("a", ["null", "string"])),
        [(BRANCH, "/fields/0/type/1")],
    ),
    (
        "a field's union against a plain type",
        record(field("a", ["null", "int"])),
        record(field("a", "string")),
        [(BRANCH, "/fields/0/type")],
    ),
    (
        "a plain field against a union of two",
        record(field("a", "int")),
        record(field("a", ["string", "boolean"])),
        [(TYPE, "/fields/0/type/0"), (TYPE, "/fields/0/type/1")],
    ),
    # logical types
    ("a logical type added", logical("int", "date"), "int", []),
    ("a logical type removed", "long", logical("long", "timestamp-millis"), []),
    ("a logical type changed", logical("long", "timestamp-micros"), logical("long", "timestamp-millis"), []),
    ("a long reads dates", logical("long", "timestamp-millis"), logical("int", "date"), []),
    (
        "a decimal of another scale",
        logical("bytes", "decimal", precision=4, scale=1),
        logical("bytes", "decimal", precision=9, scale=2),
        [],
    ),
    ("a uuid reads a string", logical("string", "uuid"), "string", []),
    ("a date reads a timestamp", logical("int", "date"), logical("long", "timestamp-millis"), [(TYPE, "/")]),
    ("a string reads a decimal", "string", logical("bytes", "decimal", precision=4), []),
]


def pairs() -> list[Pair]:
    found = [
        Pair(
            f"{reader} reads {writer}",
            json.dumps(reader),
            json.dumps(writer),
            [] if reader == writer or (reader, writer) in PROMOTED else [(TYPE, "/")],
        )
        for reader in PRIMITIVES
        for writer in PRIMITIVES
    ]
    return found + [
        Pair(label, json.dumps(reader), json.dumps(writer), reasons)
        for label, reader, writer, reasons in HAND
    ]
