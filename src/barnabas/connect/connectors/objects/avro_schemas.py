"""Avro schemas of Connect's schemas, for files: logical types, unions with null, defaults.

In: a schema. Out: what fastavro parses. Structs without a name are called ConnectDefault, as Confluent's are.
"""

from __future__ import annotations

import re
from typing import Any

from barnabas.connect.data import DECIMAL_NAME, Schema, Type

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
