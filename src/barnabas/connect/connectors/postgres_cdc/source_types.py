"""Types of columns as schemas tell them: names, lengths and scales of PostgreSQL's JDBC driver. Pure."""

from __future__ import annotations

from barnabas.connect.connectors.debezium.told_columns import TypeOfColumn
from barnabas.connect.connectors.postgres_cdc.types import PgColumn

LONG = 2147483647
SERIALS = {"int2": "SMALLSERIAL", "int4": "SERIAL", "int8": "BIGSERIAL"}
LENGTHS = {
    "bool": 1, "int2": 5, "int4": 10, "int8": 19, "oid": 10, "float4": 8, "float8": 17, "date": 13, "char": 1,
}  # fmt: skip
SCALES = {"float4": 8, "float8": 17}
CLOCKS = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}  # without fractions of seconds


def type_of_column(column: PgColumn, *, is_streamed: bool) -> TypeOfColumn:
    """The log does not say that a number is a serial one."""
    name = column.own_type.upper()
    if not is_streamed and (column.default or "").startswith("nextval("):
        name = SERIALS.get(column.type, name)
    length, scale = size_of(column.item or column.type, column.modifier)
    return TypeOfColumn(name, length, scale)


def size_of(kind: str, modifier: int) -> tuple[int, int]:
    if kind == "numeric":
        if modifier < 4:
            return 131089, 0
        return (modifier - 4) >> 16 & 0xFFFF, (((modifier - 4) & 0x7FF) ^ 1024) - 1024
    if kind in ("varchar", "bpchar"):
        return (modifier - 4 if modifier >= 4 else LONG), 0
    if kind in ("bit", "varbit"):
        return (modifier if modifier > 0 else LONG), 0
    if kind in CLOCKS:
        digits = modifier if modifier >= 0 else 6
        return CLOCKS[kind] + (digits + 1 if digits else 0), digits
    if kind == "interval":
        return 49, (6 if modifier < 0 else modifier & 0xFFFF)
    return LENGTHS.get(kind, LONG), SCALES.get(kind, 0)
