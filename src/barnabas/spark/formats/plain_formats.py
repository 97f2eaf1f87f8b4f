"""Formats that need no library: JSON, CSV, text, and the numbers of Kafka's own serializers.

In: bytes. Out: values, and back. JSON and CSV take a schema in Spark's words (`id INT, name STRING`); fields
that it does not name are left out, fields that are missing are null.
"""

from __future__ import annotations

import base64
import csv
import datetime
import decimal
import io
import json
import struct
from typing import Any

from barnabas.spark.formats.ddl import DdlError, Field, Kind, parse_columns
from barnabas.spark.formats.formats import Format, Make

UTC = datetime.UTC


class TextCodec:
    ddl = "string"

    def __init__(self, declared: Format) -> None:
        refuse_schema(declared)

    def decode(self, data: bytes) -> str:
        return data.decode()

    def encode(self, value: str) -> bytes:
        return value.encode()


class NumberCodec:
    """Big-endian, as Kafka's ShortSerializer, IntegerSerializer and their relatives write."""

    def __init__(self, declared: Format) -> None:
        refuse_schema(declared)
        code, self.ddl = NUMBERS[declared.name]
        self._struct = struct.Struct(code)
        self._name = declared.name

    def decode(self, data: bytes) -> int | float:
        if len(data) != self._struct.size:
            raise ValueError(f"{len(data)} bytes are no {self._name}, which has {self._struct.size}")
        value: int | float = self._struct.unpack(data)[0]
        return value

    def encode(self, value: float) -> bytes:
        return self._struct.pack(value)


NUMBERS = {
    "short": (">h", "smallint"),
    "integer": (">i", "int"),
    "long": (">q", "bigint"),
    "float": (">f", "float"),
    "double": (">d", "double"),
}


class JsonCodec:
    def __init__(self, declared: Format) -> None:
        self._fields = columns_of(declared)
        self.ddl = f"struct<{declared.schema}>"

    def decode(self, data: bytes) -> Any:
        found = json.loads(data, parse_float=decimal.Decimal)
        if not isinstance(found, dict):
            raise ValueError(f"a JSON object is needed, this is {json.dumps(found, default=str)[:40]}")
        return {each.name: from_json(found.get(each.name), each.kind) for each in self._fields}

    def encode(self, value: Any) -> bytes:
        return json.dumps(value, default=to_json, ensure_ascii=False).encode()


class CsvCodec:
    def __init__(self, declared: Format) -> None:
        self._fields = columns_of(declared)
        self.ddl = f"struct<{declared.schema}>"
        for each in self._fields:
            if each.kind.name in ("struct", "array", "map"):
                raise declared.wrong(
                    "schema", f"has {each.name} of type {each.kind.name}, which CSV cannot hold"
                )

    def decode(self, data: bytes) -> Any:
        [cells] = list(csv.reader(io.StringIO(data.decode()))) or [[]]
        if len(cells) != len(self._fields):
            raise ValueError(f"{len(cells)} fields, the schema has {len(self._fields)}")
        return {each.name: from_text(cell, each.kind) for each, cell in zip(self._fields, cells, strict=True)}

    def encode(self, value: Any) -> bytes:
        out = io.StringIO()
        row = ["" if value[each.name] is None else to_text(value[each.name]) for each in self._fields]
        csv.writer(out, lineterminator="").writerow(row)
        return out.getvalue().encode()


def columns_of(declared: Format) -> list[Field]:
    if not declared.schema.strip():
        raise declared.wrong("schema", "is missing: give columns and types, as in id INT, name STRING")
    try:
        return parse_columns(declared.schema)
    except DdlError as error:
        raise declared.wrong("schema", f"cannot be read: {error}") from None


def refuse_schema(declared: Format) -> None:
    if declared.schema:
        raise declared.wrong("schema", f"is of no use: {declared.name} has none")


# -- values ---------------------------------------------------------------------------------------------


def from_json(value: Any, kind: Kind) -> Any:
    """A value of JSON as the type wants it."""
    if value is None:
        return None
    name = kind.name
    if name == "struct":
        return {each.name: from_json(value.get(each.name), each.kind) for each in kind.fields}
    if name == "array":
        return [from_json(each, kind.inner[0]) for each in value]
    if name == "map":
        return [
            (from_json(key, kind.inner[0]), from_json(each, kind.inner[1])) for key, each in value.items()
        ]
    if name == "string":
        return value if isinstance(value, str) else json.dumps(value, default=str)
    if isinstance(value, str):
        return from_text(value, kind)
    if name in ("float", "double"):
        return float(value)
    if name == "decimal":
        return decimal.Decimal(value)
    if name == "timestamp":
        return datetime.datetime.fromtimestamp(float(value), UTC)
    if name == "boolean" and not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    if isinstance(value, decimal.Decimal):
        raise ValueError(f"{value} is no whole number")
    return value


def from_text(text: str, kind: Kind) -> Any:
    name = kind.name
    if name == "string":
        return text
    if text == "":
        return None
    if name == "boolean":
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() == "true"
    if name in ("tinyint", "smallint", "int", "bigint"):
        return int(text)
    if name in ("float", "double"):
        return float(text)
    if name == "decimal":
        return decimal.Decimal(text)
    if name == "date":
        return datetime.date.fromisoformat(text)
    if name in ("timestamp", "timestamp_ntz"):
        found = datetime.datetime.fromisoformat(text)
        if name == "timestamp_ntz":
            return found.replace(tzinfo=None)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    if name == "binary":
        return base64.b64decode(text, validate=True)
    raise ValueError(f"text cannot become {name}")


def to_json(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return float(value)
    return to_text(value)


def to_text(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    return str(value)


FORMATS: dict[str, Make] = {
    "string": TextCodec,
    "json": JsonCodec,
    "csv": CsvCodec,
    **dict.fromkeys(NUMBERS, NumberCodec),
}
