"""Connect's schemas as JSON Schemas, and back, with the properties that Confluent's converter writes.

In: a schema. Out: a schema of the other kind. Names are titles; what JSON Schema cannot say stands in
properties `connect.*`. Does not know: values, registries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from barnabas.connect.convert.json_schemas import value_of_json, value_to_json
from barnabas.connect.convert.registered.sums import (
    GENERAL_ENUM,
    GENERAL_UNION,
    enum_parameters,
    generalized,
    symbols_of,
)
from barnabas.connect.data import DataError, Schema
from barnabas.connect.data.schema import DECIMAL_NAME, Field, Type

TYPE, INDEX, VERSION, PARAMETERS = "connect.type", "connect.index", "connect.version", "connect.parameters"
ENUM = "io.confluent.connect.json.Enum"
SUM, SUM_WORDS = "io.confluent.connect.json.OneOf", ("oneOf", "anyOf")
KEY, VALUE = "key", "value"
DEPTH_MAX = 100
NUMBERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
BY_WORD = {str(each): each for each in Type}
PLAIN = {"boolean": Type.BOOLEAN, "integer": Type.INT64, "number": Type.FLOAT64, "string": Type.STRING}


@dataclass(frozen=True, slots=True)
class JsonOptions:
    open_objects: bool = True  # object.additional.properties
    optional_by_absence: bool = False  # use.optional.for.nonrequired
    generalized: bool = False  # generalized.sum.type.support


def is_sum(schema: Schema) -> bool:
    return schema.name == SUM or GENERAL_UNION in schema.parameters


def is_text_map(schema: Schema) -> bool:
    return schema.key is not None and schema.key.type is Type.STRING and not schema.key.optional


class ToJsonSchema:
    def __init__(self, options: JsonOptions) -> None:
        self._options = options

    def schema(self, schema: Schema, index: int | None = None, depth: int = 0) -> dict[str, Any]:
        if depth > DEPTH_MAX:
            raise DataError(f"the schema is nested more than {DEPTH_MAX} levels deep")
        made = self._base(schema, depth)
        if schema.name is not None:
            made["title"] = schema.name
        if schema.doc is not None:
            made["description"] = schema.doc
        if schema.version is not None:
            made[VERSION] = schema.version
        if schema.parameters:
            made[PARAMETERS] = dict(schema.parameters)
        if schema.default is not None:
            made["default"] = value_to_json(schema.default, schema, numeric=True)
        if schema.optional:
            made = {"oneOf": [{"type": "null"}, made]}
        return made if index is None else {INDEX: index, **made}

    def _base(self, schema: Schema, depth: int) -> dict[str, Any]:
        if schema.type in NUMBERS:
            return {"type": "integer", TYPE: str(schema.type)}
        if schema.type in (Type.FLOAT32, Type.FLOAT64):
            return {"type": "number", TYPE: str(schema.type)}
        if schema.type is Type.BYTES:
            kind = "number" if schema.logical == DECIMAL_NAME else "string"
            return {"type": kind, TYPE: "bytes"}
        if schema.type is Type.BOOLEAN:
            return {"type": "boolean"}
        if schema.type is Type.STRING:
            start = f"{ENUM}."
            symbols = [text for name, text in schema.parameters.items() if name.startswith(start)]
            if GENERAL_ENUM in schema.parameters:
                symbols = symbols_of(schema)
            return {"type": "string", "enum": symbols} if symbols else {"type": "string"}
        if schema.type is Type.ARRAY:
            assert schema.value is not None
            return {"type": "array", "items": self.schema(schema.value, depth=depth + 1)}
        if schema.type is Type.MAP:
            return self._map(schema, depth)
        if is_sum(schema):
            return {
                "oneOf": [
                    self.schema(one.schema.as_required(), n, depth + 1) for n, one in enumerate(schema.fields)
                ]
            }
        properties = {one.name: self.schema(one.schema, n, depth + 1) for n, one in enumerate(schema.fields)}
        made: dict[str, Any] = {"type": "object", "properties": properties}
        required = [one.name for one in schema.fields if not one.schema.optional]
        if self._options.optional_by_absence and required:
            made["required"] = required
        if not self._options.open_objects:
            made["additionalProperties"] = False
        return made

    def _map(self, schema: Schema, depth: int) -> dict[str, Any]:
        assert schema.key is not None and schema.value is not None
        if is_text_map(schema):
            return {
                "type": "object", TYPE: "map",
                "additionalProperties": self.schema(schema.value, depth=depth + 1),
            }  # fmt: skip
        entry = {
            KEY: self.schema(schema.key, 0, depth + 1),
            VALUE: self.schema(schema.value, 1, depth + 1),
        }
        return {"type": "array", TYPE: "map", "items": {"type": "object", "properties": entry}}


class OfJsonSchema:
    """Reads a JSON Schema. `others` are the schemas of its references, by name."""

    def __init__(self, options: JsonOptions, top: Any, others: Mapping[str, Any]) -> None:
        self._options = options
        self._top = top
        self._others = others
        self._sums = 0

    def schema(self, found: Any, depth: int = 0, root: Any = None) -> Schema:
        root = self._top if root is None else root
        if depth > DEPTH_MAX:
            raise DataError(
                "the JSON Schema contains itself, or is nested too deep: Connect has no such type"
            )
        if not isinstance(found, dict):
            raise DataError(f"the JSON Schema has {found!r} in the place of a type: Connect needs types")
        if "$ref" in found:
            target, root = self._target(found["$ref"], root)
            return self.schema(target, depth + 1, root)
        kind = found.get("type")
        if isinstance(kind, list):
            others = [each for each in kind if each != "null"]
            if len(others) != 1:
                raise DataError(f"the JSON Schema has the types {kind}: Connect takes one, or one and null")
            made = self.schema({**found, "type": others[0]}, depth + 1, root)
            return made.as_optional() if "null" in kind else made
        for word in SUM_WORDS:
            if word in found:
                return self._described(found, self._sum(found, word, depth, root))
        if "allOf" in found:
            merged: dict[str, Any] = {name: each for name, each in found.items() if name != "allOf"}
            for part in found["allOf"]:
                target = self._target(part["$ref"], root)[0] if "$ref" in part else part
                merged = merge(merged, target)
            return self.schema(merged, depth + 1, root)
        return self._described(found, self._plain(found, depth, root))

    def _target(self, name: str, root: Any) -> tuple[Any, Any]:
        file, _, path = name.partition("#")
        found = root if not file else self._others.get(file)
        if found is None:
            raise DataError(f"the JSON Schema refers to {name}, which is not among its references")
        top = found
        for step in (part for part in path.split("/") if part):
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or step not in found:
                raise DataError(f"the JSON Schema refers to {name}, which is not there")
            found = found[step]
        return found, top

    def _sum(self, found: dict[str, Any], word: str, depth: int, root: Any) -> Schema:
        branches = [each for each in found[word] if each != {"type": "null"} and each.get("type") != "null"]
        is_optional = len(branches) < len(found[word])
        number, self._sums = self._sums, self._sums + 1
        if len(branches) == 1:
            made = self.schema(branches[0], depth + 1, root)
            return made.as_optional() if is_optional else made
        fields = tuple(
            Field(f"{SUM}.field.{place}", self.schema(each, depth + 1, root).as_optional())
            for place, each in enumerate(branches)
        )
        union = Schema(type=Type.STRUCT, name=SUM, fields=fields, optional=is_optional)
        return generalized(union, number) if self._options.generalized else union

    def _plain(self, found: dict[str, Any], depth: int, root: Any) -> Schema:
        kind = found.get("type")
        declared = found.get(TYPE)
        if declared == "map":
            if kind == "object":
                value = self.schema(found["additionalProperties"], depth + 1, root)
                return Schema(type=Type.MAP, key=Schema(type=Type.STRING), value=value)
            entry = found["items"]["properties"]
            key, value = (self.schema(entry[name], depth + 1, root) for name in (KEY, VALUE))
            return Schema(type=Type.MAP, key=key, value=value)
        if kind == "array":
            return Schema(type=Type.ARRAY, value=self.schema(found.get("items"), depth + 1, root))
        if kind == "object" or (kind is None and "properties" in found):
            return self._object(found, depth, root)
        if "enum" in found or "const" in found:
            symbols = [str(each) for each in found.get("enum", [found.get("const")])]
            parameters = {ENUM: "", **{f"{ENUM}.{each}": each for each in symbols}}
            if self._options.generalized:
                parameters = enum_parameters("", symbols)
            return Schema(type=Type.STRING, parameters=parameters)
        if declared in BY_WORD:
            return Schema(type=BY_WORD[declared])
        if kind not in PLAIN:
            raise DataError(f"the JSON Schema has the type {kind!r}, which Connect does not have")
        return Schema(type=PLAIN[kind])

    def _object(self, found: dict[str, Any], depth: int, root: Any) -> Schema:
        properties = found.get("properties")
        more = found.get("additionalProperties")
        if not properties and isinstance(more, dict):
            value = self.schema(more, depth + 1, root)
            return Schema(type=Type.MAP, key=Schema(type=Type.STRING), value=value)
        required = found.get("required") or ()
        placed = [
            (each.get(INDEX, number) if isinstance(each, dict) else number, name, each)
            for number, (name, each) in enumerate((properties or {}).items())
        ]
        fields = []
        for _, name, each in sorted(placed, key=lambda one: one[:2]):
            schema = self.schema(each, depth + 1, root)
            is_open = self._options.optional_by_absence and name not in required
            fields.append(Field(name, schema.as_optional() if is_open else schema))
        return Schema(type=Type.STRUCT, fields=tuple(fields))

    @staticmethod
    def _described(found: dict[str, Any], made: Schema) -> Schema:
        parameters = {**made.parameters, **(found.get(PARAMETERS) or {})}
        title = found.get("title", made.name)
        made = replace(
            made,
            name=SUM if made.name == SUM else parameters.get(GENERAL_UNION, title),
            doc=found.get("description", made.doc),
            version=found.get(VERSION, made.version),
            parameters=parameters,
        )
        if found.get("default") is not None and made.default is None:
            try:
                made = replace(made, default=value_of_json(found["default"], made, defaults=False))
            except DataError:
                pass  # a default that does not fit its type says nothing
        return made


def merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Parts of `allOf` as one object."""
    found = {**one, **other}
    for name in ("properties", "definitions", "$defs"):
        if name in one and name in other:
            found[name] = {**one[name], **other[name]}
    if "required" in one and "required" in other:
        found["required"] = [*one["required"], *other["required"]]
    return found
