"""Connect's schemas as Avro schemas, and back, with the properties that Confluent's converter writes.

In: a schema. Out: a schema of the other kind. What Avro cannot say (name, version, parameters, defaults,
int8 and int16) stands in properties `connect.*`. Does not know: values, registries.
"""

from __future__ import annotations

import re
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
from barnabas.connect.data.schema import (
    DATE_NAME,
    DECIMAL_NAME,
    SCALE,
    TIME_NAME,
    TIMESTAMP_NAME,
    Field,
    Type,
)

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = f"{NAMESPACE}.ConnectDefault"
ENTRY = "MapEntry"
ENUM = f"{NAMESPACE}.Enum"
UNION = f"{NAMESPACE}.Union"
PRECISION, PRECISION_DEFAULT = "connect.decimal.precision", 64
FIXED_SIZE = "connect.fixed.size"
NAME, DOC, VERSION = "connect.name", "connect.doc", "connect.version"
DEFAULT, PARAMETERS, TYPE = "connect.default", "connect.parameters", "connect.type"
INTERNAL = "connect.internal.type"
DEPTH_MAX = 100

PLAIN = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
LOGICAL = {
    DECIMAL_NAME: "decimal",
    DATE_NAME: "date",
    TIME_NAME: "time-millis",
    TIMESTAMP_NAME: "timestamp-millis",
}
SMALL = (Type.INT8, Type.INT16)


@dataclass(frozen=True, slots=True)
class AvroOptions:
    enhanced: bool = False  # enhanced.avro.schema.support
    metadata: bool = True  # connect.meta.data
    scrubs: bool = False  # scrub.invalid.names
    optional_keys: bool = False  # allow.optional.map.keys
    generalized: bool = False  # generalized.sum.type.support


def scrubbed(name: str) -> str:
    """A name that Avro takes: other characters become underscores."""
    parts = [re.sub(r"[^A-Za-z0-9_]", "_", part) for part in name.split(".")]
    return ".".join(f"x{part}" if part[:1].isdigit() else part for part in parts)


def is_union(schema: Schema) -> bool:
    return schema.name == UNION or GENERAL_UNION in schema.parameters


class ToAvro:
    """One translation: named types are defined at their first place and named at the others."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._defined: dict[str, Schema] = {}

    def name(self, schema: Schema) -> str:
        name = schema.name or DEFAULT_NAME
        return scrubbed(name) if self._options.scrubs else name

    def schema(self, schema: Schema, depth: int = 0) -> Any:
        if depth > DEPTH_MAX:
            raise DataError(f"the schema is nested more than {DEPTH_MAX} levels deep")
        base = self._base(schema, depth)
        if not schema.optional or isinstance(base, list):
            return base if not isinstance(base, list) or not schema.optional else ["null", *base]
        return ["null", base] if schema.default is None else [base, "null"]

    def _base(self, schema: Schema, depth: int) -> Any:
        made: dict[str, Any]
        if schema.type is Type.STRUCT:
            if is_union(schema):
                return [self.schema(one.schema.as_required(), depth + 1) for one in schema.fields]
            name = self.name(schema)
            known = self._defined.get(name)
            if known is not None and known.fields == schema.fields:
                return name
            if known is not None:
                raise DataError(
                    f"two different structs are called {name}: give them names, as by SetSchemaMetadata"
                )
            self._defined[name] = schema
            space, _, short = name.rpartition(".")
            made = {"type": "record", "name": short}
            if space:
                made["namespace"] = space
            made["fields"] = [self._field(one, depth) for one in schema.fields]
        elif schema.type is Type.ARRAY:
            assert schema.value is not None
            made = {"type": "array", "items": self.schema(schema.value, depth + 1)}
        elif schema.type is Type.MAP:
            made = self._map(schema, depth)
        else:
            made = self._scalar(schema)
        self._describe(schema, made)
        return made["type"] if set(made) == {"type"} else made

    def _map(self, schema: Schema, depth: int) -> dict[str, Any]:
        assert schema.key is not None and schema.value is not None
        is_text = schema.key.type is Type.STRING and schema.key.logical is None
        if is_text and (self._options.optional_keys or not schema.key.optional):
            return {"type": "map", "values": self.schema(schema.value, depth + 1)}
        name = f"{NAMESPACE}.{ENTRY}" if schema.name is None else self.name(schema)
        space, _, short = name.rpartition(".")
        entry: dict[str, Any] = {"type": "record", "name": short}
        if space:
            entry["namespace"] = space
        number = 2
        while entry["name"] and f"{space}.{entry['name']}" in self._defined:
            entry["name"], number = f"{short}{number}", number + 1  # a second map of other types
        self._defined[f"{space}.{entry['name']}"] = schema
        entry["fields"] = [
            self._field(Field("key", schema.key), depth),
            self._field(Field("value", schema.value), depth),
        ]
        if entry["name"] != ENTRY:
            entry[INTERNAL] = ENTRY
        return {"type": "array", "items": entry}

    def _scalar(self, schema: Schema) -> dict[str, Any]:
        parameters = schema.parameters
        made: dict[str, Any]
        word = GENERAL_ENUM if self._options.generalized else ENUM
        writes_enums = self._options.enhanced or self._options.generalized
        if schema.type is Type.STRING and writes_enums and word in parameters:
            space, _, short = (parameters[word] or DEFAULT_NAME).rpartition(".")
            start = f"{ENUM}."
            symbols = [key.removeprefix(start) for key in parameters if key.startswith(start)]
            symbols = symbols_of(schema) if self._options.generalized else symbols
            made = {"type": "enum", "name": short, "symbols": symbols}
            return {**made, "namespace": space} if space else made
        if schema.type is Type.BYTES and FIXED_SIZE in parameters and schema.logical is None:
            space, _, short = self.name(schema).rpartition(".")
            made = {"type": "fixed", "name": short, "size": int(parameters[FIXED_SIZE])}
            return {**made, "namespace": space} if space else made
        made = {"type": PLAIN[schema.type]}
        if schema.logical == DECIMAL_NAME:
            made["scale"] = schema.scale
            made["precision"] = int(parameters.get(PRECISION, PRECISION_DEFAULT))
        return made

    def _describe(self, schema: Schema, made: dict[str, Any]) -> None:
        if self._options.metadata:
            given = {
                DOC: schema.doc,
                VERSION: schema.version,
                PARAMETERS: dict(schema.parameters) or None,
                DEFAULT: None if schema.default is None else value_to_json(schema.default, schema),
                NAME: schema.name,
                TYPE: str(schema.type) if schema.type in SMALL else None,
            }
            made.update({name: value for name, value in given.items() if value is not None})
        if schema.logical is not None:
            made["logicalType"] = LOGICAL[schema.logical]

    def _field(self, one: Field, depth: int) -> dict[str, Any]:
        name = scrubbed(one.name) if self._options.scrubs else one.name
        made: dict[str, Any] = {"name": name, "type": self.schema(one.schema, depth + 1)}
        if one.schema.doc is not None:
            made["doc"] = one.schema.doc
        if one.schema.default is not None:
            made["default"] = default_of(one.schema)
        elif one.schema.optional:
            made["default"] = None
        return made


def default_of(schema: Schema) -> Any:
    """A default as Avro writes it: bytes are texts of Latin-1."""
    value = value_to_json(schema.default, schema)
    if schema.type is Type.BYTES:
        import base64

        return base64.b64decode(value).decode("latin-1")
    return value


class OfAvro:
    """Reads an Avro schema, with named types resolved where they are used."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._named: dict[str, Any] = {}
        self._unions = 0

    def schema(self, avro: Any, space: str = "", depth: int = 0) -> Schema:
        if depth > DEPTH_MAX:
            raise DataError(
                "the Avro schema contains itself, or is nested too deep: Connect has no such type"
            )
        if isinstance(avro, list):
            return self._union(avro, space, depth)
        if isinstance(avro, str):
            if avro in SCALARS:
                return Schema(type=SCALARS[avro])
            full = avro if "." in avro or not space else f"{space}.{avro}"
            found = self._named.get(full, self._named.get(avro))
            if found is None:
                raise DataError(f"the Avro type {avro} is not defined")
            return self._described(found, space, depth)
        return self._described(avro, space, depth)

    def _union(self, branches: list[Any], space: str, depth: int) -> Schema:
        others = [each for each in branches if each != "null"]
        is_optional = len(others) < len(branches)
        if len(others) == 1:
            found = self.schema(others[0], space, depth + 1)
            return found.as_optional() if is_optional else found
        number, self._unions = self._unions, self._unions + 1
        fields = []
        for each in others:
            found = self.schema(each, space, depth + 1).as_optional()
            fields.append(Field(branch_name(each, found, space if self._options.enhanced else None), found))
        union = Schema(type=Type.STRUCT, name=UNION, fields=tuple(fields), optional=is_optional)
        return generalized(union, number) if self._options.generalized else union

    def _described(self, avro: dict[str, Any], space: str, depth: int) -> Schema:
        kind = avro["type"]
        if not isinstance(kind, str):
            return self.schema(kind, space, depth + 1)
        full = full_name(avro, space)
        if kind in ("record", "error"):
            self._named[full] = avro
            inner = full.rpartition(".")[0]
            fields = tuple(
                Field(one["name"], self._default(one, self.schema(one["type"], inner, depth + 1)))
                for one in avro["fields"]
            )
            name = None if full == DEFAULT_NAME else full
            found = Schema(type=Type.STRUCT, fields=fields, name=name, doc=avro.get("doc"))
        elif kind == "enum":
            self._named[full] = avro
            parameters = {ENUM: full, **{f"{ENUM}.{each}": each for each in avro["symbols"]}}
            if self._options.generalized:
                parameters = enum_parameters(full, avro["symbols"])
            found = Schema(type=Type.STRING, parameters=parameters)
        elif kind == "fixed":
            self._named[full] = avro
            fixed = {FIXED_SIZE: str(avro["size"])}
            found = Schema(type=Type.BYTES, parameters=fixed, name=None if full == DEFAULT_NAME else full)
        elif kind == "array":
            found = self._array(avro, space, depth)
        elif kind == "map":
            text = Schema(type=Type.STRING)
            found = Schema(type=Type.MAP, key=text, value=self.schema(avro["values"], space, depth + 1))
        elif kind in SCALARS:
            found = Schema(type=SCALARS[kind])
        else:
            return self.schema(kind, space, depth + 1)
        return self._with_properties(avro, found)

    def _array(self, avro: dict[str, Any], space: str, depth: int) -> Schema:
        items = avro["items"]
        if is_entry(items):
            inner = full_name(items, space).rpartition(".")[0]
            key, value = (self.schema(one["type"], inner, depth + 1) for one in items["fields"])
            return Schema(type=Type.MAP, key=key, value=value)
        return Schema(type=Type.ARRAY, value=self.schema(items, space, depth + 1))

    def _with_properties(self, avro: dict[str, Any], found: Schema) -> Schema:
        parameters = {**found.parameters, **(avro.get(PARAMETERS) or {})}
        logical = avro.get("logicalType")
        name = avro.get(NAME, found.name)
        if logical == "decimal" and found.type is Type.BYTES:
            name = DECIMAL_NAME
            parameters.setdefault(SCALE, str(avro.get("scale", 0)))
            if avro.get("precision", PRECISION_DEFAULT) != PRECISION_DEFAULT:
                parameters.setdefault(PRECISION, str(avro["precision"]))
            parameters.pop(FIXED_SIZE, None)
        for known, word in LOGICAL.items():
            if logical == word and name in (None, known):
                name = known
        small = {"int8": Type.INT8, "int16": Type.INT16}.get(avro.get(TYPE, ""))
        version = avro.get(VERSION, 1 if name in LOGICAL else None)
        made = replace(
            found,
            type=small or found.type,
            name=name,
            version=version,
            doc=avro.get(DOC, found.doc),
            parameters=parameters,
        )
        if DEFAULT in avro:
            made = replace(made, default=value_of_json(avro[DEFAULT], made, defaults=False))
        return made

    @staticmethod
    def _default(one: dict[str, Any], schema: Schema) -> Schema:
        found = replace(schema, doc=one["doc"]) if "doc" in one and schema.doc is None else schema
        value = one.get("default")
        if value is None or schema.default is not None or not schema.type.is_primitive:
            return found
        if schema.type is Type.BYTES and isinstance(value, str):
            import base64

            value = base64.b64encode(value.encode("latin-1")).decode()
        return replace(found, default=value_of_json(value, schema, defaults=False))


SCALARS = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "bytes": Type.BYTES,
    "string": Type.STRING,
}
BRANCHES: dict[Type, str] = {
    Type.INT8: "int8", Type.INT16: "int16", Type.INT32: "int", Type.INT64: "long", Type.FLOAT32: "float",
    Type.FLOAT64: "double", Type.BOOLEAN: "boolean", Type.STRING: "string", Type.BYTES: "bytes",
    Type.ARRAY: "array", Type.MAP: "map",
}  # fmt: skip


def full_name(avro: dict[str, Any], space: str) -> str:
    name = str(avro.get("name", ""))
    own = avro.get("namespace", space)
    return name if "." in name or not own else f"{own}.{name}"


def branch_name(avro: Any, schema: Schema, space: str | None) -> str:
    """The field of a union's branch: the record's name, whole if there is a namespace, or the type."""
    own = {"name": avro} if isinstance(avro, str) else avro
    if own.get("name") and own["name"] not in SCALARS:
        full = full_name(own, space or "")
        return full.rpartition(".")[2] if space is None else full
    return BRANCHES.get(schema.type, str(schema.type))


def is_entry(items: Any) -> bool:
    if not isinstance(items, dict) or items.get("type") != "record":
        return False
    is_named = full_name(items, "") == f"{NAMESPACE}.{ENTRY}" or items.get(INTERNAL) == ENTRY
    return is_named and [one["name"] for one in items["fields"]] == ["key", "value"]
