"""A captured table: its schemas, the readers of its columns, and the source struct of its events."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

from barnabas.connect.connectors.debezium.envelope import SNAPSHOT, TableSchemas
from barnabas.connect.connectors.postgres_cdc import pgoutput
from barnabas.connect.connectors.postgres_cdc.types import Read
from barnabas.connect.data import INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, Field, Schema, Type, struct
from barnabas.connect.plugins import ConnectError

SOURCE = struct(
    {
        "version": STRING, "connector": STRING, "name": STRING, "ts_ms": INT64, "snapshot": SNAPSHOT,
        "db": STRING,
        "sequence": OPTIONAL_STRING, "ts_us": OPTIONAL_INT64, "ts_ns": OPTIONAL_INT64, "schema": STRING,
        "table": STRING, "txId": OPTIONAL_INT64, "lsn": OPTIONAL_INT64, "xmin": OPTIONAL_INT64,
        "origin": OPTIONAL_STRING, "origin_lsn": OPTIONAL_INT64,
    },
    name="io.debezium.connector.postgresql.Source",
    version=1,
)  # fmt: skip
ZEROS: dict[Type, Any] = {
    Type.STRING: "",
    Type.BYTES: b"",
    Type.BOOLEAN: False,
    Type.ARRAY: [],
    Type.MAP: [],
    Type.STRUCT: {"scale": 0, "value": b""},
}


class Table:
    """A captured table: its schemas, and how texts of its columns are read."""

    def __init__(
        self, schema: str, name: str, schemas: TableSchemas, readers: dict[str, Read], marks: dict[str, Any]
    ) -> None:
        self.schema, self.name, self.schemas, self.readers = schema, name, schemas, readers
        self._marks = marks  # what stands for values that an update left in TOAST storage

    def row(
        self, names: list[str], values: Any, old: Any = None, *, keys_only: bool = False
    ) -> tuple[Any, ...]:
        """Texts of all columns of the table as values of the captured ones."""
        given = dict(zip(names, values, strict=True))
        before = dict(zip(names, old, strict=True)) if old is not None else {}
        row = []
        for one in self.schemas.fields:
            text = given.get(one.name)
            if text is pgoutput.UNCHANGED:
                text = before.get(one.name, pgoutput.UNCHANGED)
            if text is pgoutput.UNCHANGED:
                row.append(self._marks[one.name])
            elif text is None:
                row.append(nothing(one.schema) if keys_only and not one.schema.optional else None)
            else:
                row.append(self._read(one, text))
        return tuple(row)

    def _read(self, one: Field, text: str) -> Any:
        try:
            value = self.readers[one.name](text)
            if value is None and not one.schema.optional:
                raise ValueError("the mode of its type has no value for it, and the column is not nullable")
            return value
        except (ValueError, ArithmeticError) as error:
            raise ConnectError(
                f"{self.schema}.{self.name}: the column {one.name} has {text!r}: {error}"
            ) from error


def unchanged(schema: Schema, marker: str, kind: str = "") -> Any:
    """The value that stands for one that an update left in TOAST storage."""
    if kind == "hstore" and schema.type is Type.STRING:
        return json.dumps({marker: marker}, separators=(",", ":"))
    if schema.type is Type.STRING:
        return marker
    if schema.type is Type.BYTES and schema.logical is None and schema.name is None:
        return marker.encode()
    if schema.type is Type.MAP:
        return [(marker, marker)]
    if schema.type is Type.ARRAY and schema.value is not None:
        item = schema.value
        if (item.name or "").endswith("data.Uuid"):
            return [str(UUID(bytes=hashlib.md5(marker.encode()).digest(), version=3))]
        if item.type in (Type.INT32, Type.INT64) and item.logical is None:
            return list(marker.encode())
        if item.type in (Type.STRING, Type.BYTES) and item.logical is None:
            return [unchanged(item, marker)]
    return nothing(schema)


def nothing(schema: Schema) -> Any:
    """The value that stands for one that the log does not have."""
    if schema.optional:
        return None
    if schema.logical is not None:
        return Decimal(0) if schema.logical.endswith("Decimal") else 0
    return ZEROS.get(schema.type, 0)
