"""Schemas for documents: from an Avro schema in the settings, or inferred from a document, and their values.

As MongoDB's own connector does it: what a schema names as a text is the JSON of a value, and an inferred
schema has the fields of a struct in the order of their names, `_id` first. Does not know: events, records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import bson
import orjson
from bson.binary import Binary
from bson.code import Code
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.timestamp import Timestamp

from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    DataError,
    Field,
    Schema,
    Type,
    array,
    decimal,
    mapping,
)
from barnabas.connect.data.schema import SCALE
from barnabas.connect.plugins import ConnectError

ID = "_id"
ROOT = "default"  # the name of an inferred schema
KEY = '{"type": "record", "name": "keySchema", "fields": [{"name": "_id", "type": "string"}]}'
SPACE = [{"name": "db", "type": "string"}, {"name": "coll", "type": ["string", "null"]}]
VALUE = orjson.dumps(
    {
        "type": "record",
        "name": "ChangeStream",
        "fields": [
            {"name": "_id", "type": "string"},
            {"name": "operationType", "type": ["string", "null"]},
            {"name": "fullDocumentBeforeChange", "type": ["string", "null"]},
            {"name": "fullDocument", "type": ["string", "null"]},
            {"name": "ns", "type": [{"type": "record", "name": "ns", "fields": SPACE}, "null"]},
            {"name": "to", "type": [{"type": "record", "name": "to", "fields": SPACE}, "null"]},
            {"name": "documentKey", "type": ["string", "null"]},
            {
                "name": "updateDescription",
                "type": [
                    {
                        "type": "record",
                        "name": "updateDescription",
                        "fields": [
                            {"name": "updatedFields", "type": ["string", "null"]},
                            {"name": "removedFields", "type": [{"type": "array", "items": "string"}, "null"]},
                            {
                                "name": "truncatedArrays",
                                "type": [
                                    {
                                        "type": "array",
                                        "items": {
                                            "type": "record",
                                            "name": "truncatedArray",
                                            "fields": [
                                                {"name": "field", "type": "string"},
                                                {"name": "newSize", "type": "int"},
                                            ],
                                        },
                                    },
                                    "null",
                                ],
                            },
                            {"name": "disambiguatedPaths", "type": ["string", "null"]},
                        ],
                    },
                    "null",
                ],
            },
            {"name": "clusterTime", "type": ["string", "null"]},
            {"name": "txnNumber", "type": ["long", "null"]},
            {
                "name": "lsid",
                "type": [
                    {
                        "type": "record",
                        "name": "lsid",
                        "fields": [{"name": "id", "type": "string"}, {"name": "uid", "type": "string"}],
                    },
                    "null",
                ],
            },
        ],
    }
).decode()
PRIMITIVES = {
    "string": STRING,
    "bytes": BYTES,
    "int": INT32,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "boolean": BOOLEAN,
}
# The schema of a null. Any other schema takes its place, so it is known by its identity.
UNKNOWN = Schema(type=Type.STRING, optional=True)
RANGES = {
    Type.INT8: (-(1 << 7), (1 << 7) - 1),
    Type.INT16: (-(1 << 15), (1 << 15) - 1),
    Type.INT32: (-(1 << 31), (1 << 31) - 1),
    Type.INT64: (-(1 << 63), (1 << 63) - 1),
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Formatter = Callable[[Any], str]


# -- schemas of settings -----------------------------------------------------------------------------------


def schema_of_setting(text: str, setting: str) -> Schema:
    """The schema of an Avro record. ConnectError names the setting and what is wrong."""
    try:
        avro = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConnectError(f"{setting} is no Avro schema in JSON: {error}") from error
    if not isinstance(avro, Mapping) or avro.get("type") != "record":
        raise ConnectError(f"{setting} must be an Avro schema of the type record")
    try:
        return schema_of_avro(avro, str(avro.get("name", "the record")), "", {})
    except ConnectError as error:
        raise ConnectError(f"{setting}: {error}") from error


def schema_of_avro(avro: Any, path: str, space: str, known: dict[str, Schema | None]) -> Schema:
    """The schema of an Avro type; `known` has named types, None for those that are not complete yet."""
    if isinstance(avro, list):
        others = [each for each in avro if each != "null"]
        if len(others) != 1 or len(avro) != 2:
            raise ConnectError(f"{path}: a union must have one type and null")
        return schema_of_avro(others[0], path, space, known).as_optional()
    if isinstance(avro, str):
        if avro in PRIMITIVES:
            return PRIMITIVES[avro]
        name = avro if "." in avro else f"{space}{avro}"
        if name in known:
            found = known[name]
            if found is None:
                raise ConnectError(f"{path}: the record {avro} holds itself, which no column can")
            return found
        raise ConnectError(f"{path}: {avro!r} is none of record, array, map, {', '.join(PRIMITIVES)}")
    if not isinstance(avro, Mapping) or "type" not in avro:
        raise ConnectError(f"{path}: {avro!r} is no Avro type")
    kind = avro["type"]
    if kind == "array":
        return array(schema_of_avro(avro.get("items"), f"{path}[]", space, known))
    if kind == "map":
        return mapping(STRING, schema_of_avro(avro.get("values"), f"{path}{{}}", space, known))
    if kind == "record":
        return record_of_avro(avro, path, space, known)
    if kind in ("enum", "fixed"):
        other = "string" if kind == "enum" else "bytes"
        raise ConnectError(f"{path}: values of the type {kind} would not be checked; use {other}")
    return schema_of_avro(kind, path, space, known)


def record_of_avro(avro: Mapping[str, Any], path: str, space: str, known: dict[str, Schema | None]) -> Schema:
    name, fields = avro.get("name"), avro.get("fields")
    if not isinstance(name, str) or not isinstance(fields, list):
        raise ConnectError(f"{path}: a record needs a name and fields")
    given = avro.get("namespace")
    space = f"{given}." if given else space
    full = name if "." in name else f"{space}{name}"
    space = full[: full.rfind(".") + 1]
    known[full] = None
    found = []
    for each in fields:
        if not isinstance(each, Mapping) or not isinstance(each.get("name"), str) or "type" not in each:
            raise ConnectError(f"{path}: each field needs a name and a type")
        here = f"{path}.{each['name']}"
        schema = schema_of_avro(each["type"], here, space, known)
        default = each.get("default")
        if default is not None and not schema.optional:
            schema = replace(schema, default=default)
        found.append(Field(each["name"], schema))
    made = Schema(type=Type.STRUCT, name=full, fields=tuple(found))
    known[full] = made
    return made


# -- inferred schemas --------------------------------------------------------------------------------------


def inferred(document: Mapping[str, Any]) -> Schema:
    """The schema that holds this document."""
    return struct_of(document, ROOT).as_required()


def struct_of(document: Mapping[str, Any], path: str) -> Schema:
    names = sorted(document, key=in_order)
    fields = tuple(
        Field(name, inferred_of(document[name], name if path == ROOT else f"{path}_{name}"))
        if name != ID
        else Field(ID, inferred_of(document[ID], ID))
        for name in names
    )
    return Schema(type=Type.STRUCT, name=path, optional=True, fields=fields)


def in_order(name: str) -> tuple[bool, bytes]:
    """`_id`, then names as Java sorts them."""
    return name != ID, name.encode("utf-16-be", "surrogatepass")


def inferred_of(value: Any, path: str) -> Schema:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return BOOLEAN.as_optional()
    if isinstance(value, Int64):
        return INT64.as_optional()
    if isinstance(value, int):
        return INT32.as_optional() if -(1 << 31) <= value < 1 << 31 else INT64.as_optional()
    if isinstance(value, float):
        return FLOAT64.as_optional()
    if isinstance(value, Decimal128):
        exact = value.to_decimal()
        if not exact.is_finite():
            raise DataError(f"the field {path} is {value}, and a decimal of Connect is a finite number")
        exponent = exact.as_tuple().exponent
        assert isinstance(exponent, int)
        return decimal(-exponent, optional=True)
    if isinstance(value, datetime | DatetimeMS | Timestamp):
        return TIMESTAMP.as_optional()
    if isinstance(value, Mapping):
        return struct_of(value, path)
    if isinstance(value, list):
        item = UNKNOWN
        for each in value:
            item = combined(item, inferred_of(each, path))
        return Schema(type=Type.ARRAY, name=path, optional=True, value=item)
    if isinstance(value, bytes):  # bson.Binary is one of them
        return BYTES.as_optional()
    return OPTIONAL_STRING


def combined(first: Schema, second: Schema) -> Schema:
    """The schema of items that both hold; texts where there is no other."""
    if first is UNKNOWN:
        return second
    if second is UNKNOWN or first == second:
        return first
    if first.type is second.type is Type.ARRAY:
        assert first.value is not None and second.value is not None
        item = combined(first.value, second.value)
        return Schema(type=Type.ARRAY, name=first.name, optional=True, value=item)
    if first.type is second.type is Type.STRUCT:
        names = sorted({*first.field_names, *second.field_names}, key=in_order)
        fields = []
        for name in names:
            one, other = first.field(name), second.field(name)
            if one is not None and other is not None:
                fields.append(Field(name, combined(one, other)))
            else:
                schema = one or other
                assert schema is not None
                fields.append(Field(name, schema))
        return Schema(type=Type.STRUCT, name=first.name, optional=True, fields=tuple(fields))
    return OPTIONAL_STRING


# -- values ------------------------------------------------------------------------------------------------


def value_of(schema: Schema, value: Any, written: Formatter) -> Any:
    """A value of a document as the schema has it; `written` makes JSON. DataError where it does not fit."""
    if value is None and schema.optional:
        return None
    if schema.type is Type.STRING:
        return text_of(value, written)
    if schema.type is Type.STRUCT:
        return fields_of(schema, value, written)
    if schema.type is Type.ARRAY:
        if not isinstance(value, list):
            raise unfit(schema, value)
        assert schema.value is not None
        return [value_of(schema.value, each, written) for each in value]
    if schema.type is Type.MAP:
        if not isinstance(value, Mapping):
            raise unfit(schema, value)
        assert schema.value is not None
        return {name: value_of(schema.value, each, written) for name, each in value.items()}
    if schema.type is Type.BYTES:
        return bytes_of(schema, value)
    if schema.type is Type.BOOLEAN:
        if not isinstance(value, bool):
            raise unfit(schema, value)
        return value
    return number_of(schema, value)


def text_of(value: Any, written: Formatter) -> str:
    if isinstance(value, str) and not isinstance(value, Code):
        return value
    if isinstance(value, Mapping):
        return written(value)
    text = written({"v": value})[len('{"v": ') : -1]
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def fields_of(schema: Schema, value: Any, written: Formatter) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise unfit(schema, value)
    found = {}
    for name, inner in schema.fields:
        is_there, each = looked_up(value, name)
        if is_there:
            found[name] = value_of(inner, each, written)
        elif inner.optional or inner.default is not None:
            found[name] = inner.default
        else:
            raise DataError(f"the field {name} of the schema {schema.name} is missing in {written(value)}")
    return found


def looked_up(document: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """A field by its name, or by its path with points."""
    if path in document:
        return True, document[path]
    first, _, rest = path.partition(".")
    inner = document.get(first)
    return looked_up(inner, rest) if rest and isinstance(inner, Mapping) else (False, None)


def bytes_of(schema: Schema, value: Any) -> Any:
    if isinstance(value, Decimal128) and SCALE in schema.parameters:
        return value.to_decimal()
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Binary | bytes):
        return bytes(value)
    if isinstance(value, Mapping):
        return bson.encode(value)
    raise unfit(schema, value)


def number_of(schema: Schema, value: Any) -> Any:
    if isinstance(value, Timestamp):
        value = datetime.fromtimestamp(value.time, UTC)
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=UTC)
        if schema.logical is not None:
            return at
        value = (at - EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, DatetimeMS) and schema.logical is None:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise unfit(schema, value)
    if schema.type in RANGES:
        try:
            whole = int(value)
        except (ValueError, OverflowError) as error:
            raise unfit(schema, value) from error
        low, high = RANGES[schema.type]
        if not low <= whole <= high:
            raise unfit(schema, value)
        return whole
    return float(value)


def unfit(schema: Schema, value: Any) -> DataError:
    return DataError(f"a value of the type {type(value).__name__} does not fit the schema's {schema.type}")
