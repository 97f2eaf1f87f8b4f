"""Avro: records without a container, by a schema that the query names.

In: `value.schema`, the schema as JSON. Out: values, and back, by fastavro. Types of Avro become Spark's types
as in Spark's own `from_avro`: records are structs, unions with null are nullable, logical types are times and
decimals.
"""

from __future__ import annotations

import io
import json
from typing import Any

from barnabas.spark.formats.formats import Format

PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "fixed": "binary",
    "enum": "string",
}
LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "uuid": "string",
}


class AvroCodec:
    def __init__(self, declared: Format) -> None:
        try:
            import fastavro
        except ImportError:
            raise declared.wrong("format", "is avro, which needs the package fastavro") from None
        if not declared.schema.strip():
            raise declared.wrong("schema", "is missing: give the Avro schema as JSON")
        try:
            self._schema = fastavro.parse_schema(json.loads(declared.schema))
            self.ddl = ddl_of(json.loads(declared.schema), {})
        except Exception as error:
            raise declared.wrong("schema", f"is no Avro schema: {error}") from None
        self._read, self._write = fastavro.schemaless_reader, fastavro.schemaless_writer

    def decode(self, data: bytes) -> Any:
        stream = io.BytesIO(data)
        value = self._read(stream, self._schema, None)
        if stream.tell() != len(data):
            raise ValueError(f"{len(data) - stream.tell()} bytes are left over")
        return value

    def encode(self, value: Any) -> bytes:
        stream = io.BytesIO()
        self._write(stream, self._schema, value)
        return stream.getvalue()


def ddl_of(schema: Any, known: dict[str, str]) -> str:
    """The type of a value of this schema, in Spark's words."""
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) != 1:
            raise ValueError("a union of several types has no column type")
        return ddl_of(others[0], known)
    if isinstance(schema, str):
        if schema in PRIMITIVES:
            return PRIMITIVES[schema]
        if schema not in known:
            raise ValueError(f"the type {schema} is not known (or contains itself)")
        return known[schema]
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return ddl_of(kind, known)
    logical = schema.get("logicalType")
    if logical in LOGICAL:
        return LOGICAL[logical]
    if logical == "decimal":
        return f"decimal({schema['precision']},{schema.get('scale', 0)})"
    if kind == "array":
        return f"array<{ddl_of(schema['items'], known)}>"
    if kind == "map":
        return f"map<string, {ddl_of(schema['values'], known)}>"
    if kind == "record":
        fields = ", ".join(f"`{each['name']}`: {ddl_of(each['type'], known)}" for each in schema["fields"])
        found = f"struct<{fields}>"
    else:
        found = ddl_of(kind, known)
    if "name" in schema:
        known[schema["name"]] = found
    return found
