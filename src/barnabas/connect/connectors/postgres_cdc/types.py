"""PostgreSQL's types as Debezium's schemas, and texts of values read into them.

In: columns of the catalogue, handling modes. Out: a schema and a function from text to value for each
column; none for types that Debezium does not know. Pure.
"""

from __future__ import annotations

import base64
import json
import re
import struct as packing
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from barnabas.connect.config import Settings
from barnabas.connect.connectors.postgres_cdc.arrays import list_of
from barnabas.connect.connectors.postgres_cdc.times import iso_duration, micro_duration, named, temporal
from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_INT32,
    STRING,
    Schema,
    Type,
    array,
    decimal,
    mapping,
    struct,
)

Read = Callable[[str], Any]
PLAIN: dict[str, tuple[Schema, Read]] = {
    "bool": (BOOLEAN, lambda text: text == "t"),
    "int2": (INT16, int),
    "int4": (INT32, int),
    "int8": (INT64, int),
    "oid": (INT64, int),
    "float4": (FLOAT32, float),
    "float8": (FLOAT64, float),
}
TEXTS = (
    "text", "varchar", "bpchar", "char", "name", "citext", "inet", "cidr", "macaddr", "macaddr8", "int4range",
    "int8range", "numrange", "tsrange", "tstzrange", "daterange", "isbn",
)  # fmt: skip
NAMES = {
    "uuid": "Uuid", "json": "Json", "jsonb": "Json", "xml": "Xml", "ltree": "Ltree", "tsvector": "Tsvector",
}  # fmt: skip
NO_ITEMS = ("money", "name", "interval", "varbit", "xml", "point", "refcursor")  # arrays of them are left out
TIMES = ("date", "time", "timetz", "timestamp", "timestamptz")
VARIABLE = struct(
    {"scale": INT32, "value": BYTES},
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)
POINT = struct(
    {"x": FLOAT64, "y": FLOAT64, "wkb": OPTIONAL_BYTES, "srid": OPTIONAL_INT32},
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)


@dataclass(frozen=True, slots=True)
class Modes:
    """Handling modes of one connector."""

    decimals: str = "precise"
    times: str = "adaptive"
    binary: str = "bytes"
    hstore: str = "json"
    intervals: str = "numeric"
    money_digits: int = 2
    unknown: bool = False  # columns of unknown types as bytes; else they are left out

    @staticmethod
    def of(settings: Settings) -> Modes:
        return Modes(
            settings.text("decimal.handling.mode").lower(),
            settings.text("time.precision.mode").lower(),
            settings.text("binary.handling.mode").lower(),
            settings.text("hstore.handling.mode").lower(),
            settings.text("interval.handling.mode").lower(),
            settings.integer("money.fraction.digits"),
            settings.flag("include.unknown.datatypes"),
        )


@dataclass(frozen=True, slots=True)
class PgColumn:
    """A column of the catalogue: `labels` are those of an enum, `item` is the type of an array's items,
    `default` an expression. Domains are replaced by their types."""

    name: str
    type: str
    modifier: int
    nullable: bool
    item: str | None = None
    labels: tuple[str, ...] = ()
    default: str | None = None
    own_type: str = ""  # the name of the type before a domain was replaced


def typed(column: PgColumn, modes: Modes) -> tuple[Schema, Read] | None:
    """The schema of a column, optional where it is nullable, and the reader of its texts."""
    found = arrays(column, modes) if column.item is not None else simple(column, modes)
    if found is None:
        return None
    return (found[0].as_optional() if column.nullable else found[0]), found[1]


def arrays(column: PgColumn, modes: Modes) -> tuple[Schema, Read] | None:
    assert column.item is not None
    inner = PgColumn(column.name, column.item, column.modifier, True, None, column.labels)
    found = None if column.item in NO_ITEMS else simple(inner, modes)
    if found is None:
        return None
    schema, read = found
    item = schema if column.labels else schema.as_optional()
    return array(item), lambda text: list_of(text, read)


def simple(column: PgColumn, modes: Modes) -> tuple[Schema, Read] | None:
    kind = column.type
    if kind in PLAIN:
        return PLAIN[kind]
    if column.labels:
        return named(Type.STRING, "io.debezium.data.Enum", allowed=",".join(column.labels)), str
    if kind in TEXTS:
        return STRING, str
    if kind in NAMES:
        return named(Type.STRING, f"io.debezium.data.{NAMES[kind]}"), str
    if kind == "numeric":
        return numeric(column, modes)
    if kind == "money":
        return money(modes)
    if kind in TIMES:
        return temporal(kind, column.modifier, modes.times)
    if kind == "interval":
        if modes.intervals == "string":
            return named(Type.STRING, "io.debezium.time.Interval"), iso_duration
        return named(Type.INT64, "io.debezium.time.MicroDuration"), micro_duration
    if kind == "bytea":
        return binary(modes.binary)
    if kind in ("bit", "varbit"):
        if column.modifier == 1 or (kind == "bit" and column.modifier == -1):
            return BOOLEAN, lambda text: text == "1"
        length = str(column.modifier if column.modifier > 0 else 2147483647)
        return named(Type.BYTES, "io.debezium.data.Bits", length=length), bits
    if kind == "hstore":
        if modes.hstore == "map":
            return mapping(STRING, STRING.as_optional()), lambda text: list(hstore(text).items())
        return named(Type.STRING, "io.debezium.data.Json"), json_of_hstore
    if kind == "point":
        return POINT, point
    return binary(modes.binary, lambda text: text.encode()) if modes.unknown else None


def numeric(column: PgColumn, modes: Modes) -> tuple[Schema, Read]:
    if modes.decimals == "string":
        return STRING, str
    if modes.decimals == "double":
        return FLOAT64, float
    if column.modifier < 4:
        return VARIABLE, variable
    precision = ((column.modifier - 4) >> 16) & 0xFFFF
    scale = (((column.modifier - 4) & 0x7FF) ^ 1024) - 1024
    if precision > 76 or abs(scale) > 76:
        return VARIABLE, variable
    return decimal(scale, precision=precision), finite


def finite(text: str) -> Decimal | None:
    """A number; NaN has no form with a scale and becomes null."""
    value = Decimal(text)
    return value if value.is_finite() else None


def variable(text: str) -> dict[str, Any] | None:
    """A decimal with its own scale, as small as it can be; NaN and infinity have none and become null."""
    value = Decimal(text)
    if not value.is_finite():
        return None
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits))
    while exponent < 0 and shown.endswith("0"):
        shown, exponent = shown[:-1], exponent + 1
    unscaled = int(shown or "0") * 10 ** max(exponent, 0)
    if not unscaled:
        exponent = 0
    unscaled = -unscaled if sign else unscaled
    bits_of = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return {"scale": max(-exponent, 0), "value": unscaled.to_bytes(bits_of // 8 + 1, "big", signed=True)}


def money(modes: Modes) -> tuple[Schema, Read]:
    def read(text: str) -> Decimal:
        digits = re.sub(r"[^\d.]", "", text)
        value = Decimal(digits).quantize(Decimal(1).scaleb(-modes.money_digits))
        return -value if "-" in text or text.startswith("(") else value

    if modes.decimals == "string":
        return STRING, lambda text: str(read(text))
    if modes.decimals == "double":
        return FLOAT64, lambda text: float(read(text))
    return decimal(modes.money_digits), read


def binary(mode: str, raw: Callable[[str], bytes] | None = None) -> tuple[Schema, Read]:
    raw = raw or bytes_of
    if mode == "base64":
        return STRING, lambda text: base64.b64encode(raw(text)).decode()
    if mode == "base64-url-safe":
        return STRING, lambda text: base64.urlsafe_b64encode(raw(text)).decode()
    if mode == "hex":
        return STRING, lambda text: raw(text).hex()
    return BYTES, raw


def bytes_of(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("\\x"))


def bits(text: str) -> bytes:
    """Bits from the last to the first, as few bytes as they need."""
    number = int(text or "0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def point(text: str) -> dict[str, Any]:
    x, y = (float(each) for each in text.strip("()").split(","))
    return {"x": x, "y": y, "wkb": packing.pack("<BIdd", 1, 1, x, y), "srid": None}


def json_of_hstore(text: str) -> str:
    return json.dumps(hstore(text), ensure_ascii=False, separators=(",", ":"))


def hstore(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for key, value, null in re.findall(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|(NULL))', text):
        found[re.sub(r"\\(.)", r"\1", key)] = None if null else re.sub(r"\\(.)", r"\1", value)
    return found
