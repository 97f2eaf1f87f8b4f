"""Avro schemas of Connect's schemas, for files, and back: logical types, unions with null, defaults.

In: a schema. Out: what fastavro parses, or the way back. Structs without a name are called ConnectDefault, as
Confluent's are.
"""

from __future__ import annotations

import re
from typing import Any

from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL_NAME,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    DataError,
    Field,
    Schema,
    Type,
    array,
    decimal,
    mapping,
)

PRIMITIVES = {
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
    "org.apache.kafka.connect.data.Date": {"type": "int", "logicalType": "date"},
    "org.apache.kafka.connect.data.Time": {"type": "int", "logicalType": "time-millis"},
    "org.apache.kafka.connect.data.Timestamp": {"type": "long", "logicalType": "timestamp-millis"},
}


def avro_schema(schema: Schema, path: str = "ConnectDefault") -> Any:
    found = required_schema(schema, path)
    return ["null", found] if schema.optional else found


def required_schema(schema: Schema, path: str) -> Any:
    logical = schema.logical
    if logical == DECIMAL_NAME:
        digits = int(schema.parameters.get("connect.decimal.precision", 38))
        return {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": schema.scale}
    if logical is not None:
        return dict(LOGICAL[logical])
    if schema.type is Type.STRUCT:
        fields = []
        for each in schema.fields:
            kind = avro_schema(each.schema, f"{path}_{each.name}")
            fields.append(
                {"name": each.name, "type": kind, **({"default": None} if each.schema.optional else {})}
            )
        return {"type": "record", "name": avro_name(schema.name, path), "fields": fields}
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return {"type": "array", "items": avro_schema(schema.value, f"{path}_item")}
    if schema.type is Type.MAP:
        assert schema.value is not None
        return {"type": "map", "values": avro_schema(schema.value, f"{path}_value")}
    return PRIMITIVES[schema.type]


def avro_name(name: str | None, path: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]", "_", name or path)


PLAIN = {
    "int": INT32,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "boolean": BOOLEAN,
    "string": STRING,
    "bytes": BYTES,
    "fixed": BYTES,
    "enum": STRING,
}
TIMES = {
    "date": DATE,
    "time-millis": TIME,
    "time-micros": TIME,
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
}


def schema_of_avro(avro: Any, known: dict[str, Schema] | None = None) -> Schema:
    """The schema of a file's Avro schema. DataError for unions of several types."""
    known = {} if known is None else known
    if isinstance(avro, list):
        others = [each for each in avro if each != "null"]
        if len(others) != 1:
            raise DataError(f"Avro's union of {len(others)} types has no counterpart among Connect's types")
        found = schema_of_avro(others[0], known)
        return found.as_optional() if len(others) < len(avro) else found
    kind = avro if isinstance(avro, str) else avro["type"]
    if isinstance(kind, list | dict):
        return schema_of_avro(kind, known)
    if kind in known:
        return known[kind]
    logical = avro.get("logicalType") if isinstance(avro, dict) else None
    if logical == "decimal":
        return decimal(avro.get("scale", 0), precision=avro.get("precision"))
    if logical in TIMES:
        return TIMES[logical]
    if kind in ("record", "error"):
        fields = tuple(Field(each["name"], schema_of_avro(each["type"], known)) for each in avro["fields"])
        name = avro["name"] if avro["name"] != "ConnectDefault" else None
        known[avro["name"]] = Schema(type=Type.STRUCT, name=name, fields=fields)
        return known[avro["name"]]
    if kind == "array":
        return array(schema_of_avro(avro["items"], known))
    if kind == "map":
        return mapping(STRING, schema_of_avro(avro["values"], known))
    if kind not in PLAIN:
        raise DataError(f"Avro's type {kind!r} has no counterpart among Connect's types")
    return PLAIN[kind]
