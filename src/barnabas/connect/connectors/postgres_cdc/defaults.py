"""Defaults of columns: an expression of the catalogue as a value of the column's schema. Pure.

A literal is read. A function or `now()` has a value that stands for it, as with Debezium: a column that must
not be null needs one in its schema.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from barnabas.connect.connectors.postgres_cdc.types import PgColumn, Read
from barnabas.connect.data import DECIMAL_CONTEXT, Schema, Type

FUNCTION = re.compile(r"[(]?[A-Za-z0-9_.]+\(")
LITERAL = re.compile(r"'((?:[^']|'')*)'")
NOW = ("current_timestamp", "current_time", "current_date", "localtime", "localtimestamp")
EPOCH = "1970-01-01 00:00:00"
STANDING: dict[str, str] = {  # what stands for the value of a function
    "bit": "00", "varbit": "0", "bool": "f", "bpchar": "", "varchar": "", "text": "", "numeric": "0",
    "float4": "0", "float8": "0", "int2": "0", "int4": "0", "int8": "0", "json": "{}", "jsonb": "{}",
    "xml": "",
    "uuid": "00000000-0000-0000-0000-000000000000", "date": "1970-01-01", "time": "00:00:00",
    "timestamp": EPOCH, "timestamptz": f"{EPOCH}+00", "interval": "00:00:00",
}  # fmt: skip


def with_default(schema: Schema, read: Read, column: PgColumn) -> Schema:
    """The schema of a column with its default, if it has one that a schema can carry."""
    value = default_of(column, read)
    if value is None or schema.type in (Type.STRUCT, Type.ARRAY, Type.MAP):
        return schema
    if schema.logical is not None:  # dates and times are numbers for readers, and Python's own in schemas
        value = pa.scalar(value, schema.arrow).as_py()
    return replace(schema, default=value)


def default_of(column: PgColumn, read: Read) -> Any:
    expression = (column.default or "").strip()
    if not expression or column.item is not None or expression.startswith("NULL::"):
        return None
    if column.labels:
        found = LITERAL.match(expression)
        return found[1].replace("''", "'") if found else None
    if column.type not in STANDING:
        return None
    try:
        return read(text_of(expression, column))
    except (ValueError, ArithmeticError):
        return None  # an expression that must be evaluated


def text_of(expression: str, column: PgColumn) -> str:
    """The text of a default as the server would write the value."""
    if FUNCTION.match(expression) or expression.lower() in NOW:
        text = STANDING[column.type]
    elif found := LITERAL.search(expression):
        text = found[1].replace("''", "'")
    else:
        text = expression
    if column.type == "bool":
        return "t" if text.lower() in ("t", "true") else "f"
    if column.type == "numeric" and column.modifier >= 4:
        scale = (((column.modifier - 4) & 0x7FF) ^ 1024) - 1024
        text = format(Decimal(text).quantize(Decimal(1).scaleb(-max(scale, 0)), context=DECIMAL_CONTEXT), "f")
    return text
