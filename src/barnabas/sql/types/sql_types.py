"""The types of SQL and their names.

In Python a BOOLEAN is bool, INTEGER and BIGINT are int, DOUBLE is float, DECIMAL is Decimal, STRING is str,
BYTES is bytes, DATE is date, TIME is time, TIMESTAMP is datetime without a zone (UTC), ARRAY is list, MAP and
STRUCT are dict. NULL is None.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from dataclasses import dataclass

DECIMAL_PRECISION_MAX = 1000
PLAIN_NAME = re.compile(r"[A-Z_][A-Z0-9_@]*")


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type without parts. Types with parts are classes of their own."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def base(self) -> str:
        """The name without its parts: DECIMAL for DECIMAL(4, 2)."""
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal(SqlType):
    precision: int
    scale: int

    def __init__(self, precision: int, scale: int) -> None:
        object.__setattr__(self, "name", "DECIMAL")
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "scale", scale)

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Array(SqlType):
    item: SqlType

    def __init__(self, item: SqlType) -> None:
        object.__setattr__(self, "name", "ARRAY")
        object.__setattr__(self, "item", item)

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class Map(SqlType):
    key: SqlType
    value: SqlType

    def __init__(self, key: SqlType, value: SqlType) -> None:
        object.__setattr__(self, "name", "MAP")
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "value", value)

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Struct(SqlType):
    fields: tuple[tuple[str, SqlType], ...]

    def __init__(self, fields: tuple[tuple[str, SqlType], ...]) -> None:
        object.__setattr__(self, "name", "STRUCT")
        object.__setattr__(self, "fields", tuple(fields))

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'{quoted(name)} {kind}' for name, kind in self.fields)}>"

    def field(self, name: str) -> SqlType | None:
        return next((kind for found, kind in self.fields if found == name), None)


@dataclass(frozen=True, slots=True)
class Named(SqlType):
    """A type of CREATE TYPE, not looked up yet."""


@dataclass(frozen=True, slots=True)
class LambdaType(SqlType):
    """A lambda as an argument of a function: how many parameters it has."""

    parameters: int

    def __init__(self, parameters: int) -> None:
        object.__setattr__(self, "name", "LAMBDA")
        object.__setattr__(self, "parameters", parameters)


BOOLEAN = SqlType("BOOLEAN")
INTEGER = SqlType("INTEGER")
BIGINT = SqlType("BIGINT")
DOUBLE = SqlType("DOUBLE")
STRING = SqlType("STRING")
BYTES = SqlType("BYTES")
DATE = SqlType("DATE")
TIME = SqlType("TIME")
TIMESTAMP = SqlType("TIMESTAMP")
NULL = SqlType("NULL")  # of the literal NULL: fits every type
UNIT = SqlType("INTERVALUNIT")  # the bare word DAYS and so on, an argument of DATEADD and its like

PRIMITIVES = {
    **{each.name: each for each in (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP)},
    "INT": INTEGER,
    "VARCHAR": STRING,
}
WHOLE = {INTEGER, BIGINT}
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
EXACT = decimal.Context(prec=DECIMAL_PRECISION_MAX, rounding=decimal.ROUND_HALF_UP)
EPOCH = dt.datetime(1970, 1, 1)
MILLISECOND = dt.timedelta(milliseconds=1)
KEY_HEADERS = Array(Struct((("KEY", STRING), ("VALUE", BYTES))))


def is_number(kind: SqlType) -> bool:
    return kind in WHOLE or kind == DOUBLE or isinstance(kind, Decimal)


def quoted(name: str) -> str:
    """A name as it is shown in schemas: always in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def wrapped_int(value: int) -> int:
    """An INTEGER that overflowed, as Java has it."""
    return (value - INT_MIN) % 2**32 + INT_MIN


def wrapped_long(value: int) -> int:
    return (value - LONG_MIN) % 2**64 + LONG_MIN


def to_millis(value: dt.datetime) -> int:
    return (value - EPOCH) // MILLISECOND


def of_millis(value: int) -> dt.datetime:
    """OverflowError beyond the year 9999."""
    return EPOCH + dt.timedelta(milliseconds=value)
