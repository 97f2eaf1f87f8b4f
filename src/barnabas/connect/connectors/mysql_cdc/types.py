"""MySQL's types as Debezium's schemas, and values of queries and of the log read into them. Pure."""

from __future__ import annotations

import base64
import re
import struct as packing
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from barnabas.connect.config import Settings
from barnabas.connect.connectors.mysql_cdc.tables import ColumnDef
from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL_CONTEXT,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_INT32,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    decimal,
    struct,
)

Read = Callable[[Any], Any]
EPOCH_DAY = date(1970, 1, 1).toordinal()
MICROS_OF_DAY = 86_400_000_000
GEOMETRY = struct(
    {"wkb": BYTES, "srid": OPTIONAL_INT32},
    name="io.debezium.data.geometry.Geometry",
    version=1,
    doc="Geometry",
)
POINT = struct(
    {"x": FLOAT64, "y": FLOAT64, "wkb": OPTIONAL_BYTES, "srid": OPTIONAL_INT32},
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
VECTOR = replace(array(FLOAT32), name="io.debezium.data.FloatVector", version=1)
SHAPES = (
    "GEOMETRY", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMCOLLECTION",
)  # fmt: skip
CLOCK = re.compile(r"(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?")
STAMP = re.compile(r"(\d+)-(\d+)-(\d+)(?:[ T](\d+):(\d+):(\d+)(?:\.(\d+))?)?")


@dataclass(frozen=True, slots=True)
class Modes:
    """Handling modes of one connector."""

    decimals: str = "precise"
    times: str = "adaptive_time_microseconds"
    binary: str = "bytes"
    big: str = "long"

    @staticmethod
    def of(settings: Settings) -> Modes:
        return Modes(
            settings.text("decimal.handling.mode").lower(),
            settings.text("time.precision.mode").lower(),
            settings.text("binary.handling.mode").lower(),
            settings.text("bigint.unsigned.handling.mode").lower(),
        )


def named(kind: Type, name: str, **parameters: str) -> Schema:
    return Schema(type=kind, name=name, version=1, parameters=parameters)


def typed(column: ColumnDef, modes: Modes) -> tuple[Schema, Read]:
    """The schema of a column with its default, optional where it is nullable, and the reader of values."""
    schema, read = simple(column, modes)
    if column.nullable:
        schema = schema.as_optional()
    if column.has_default and column.default is not None:
        value = default_value(column, read)
        if value is not None:
            if schema.logical is not None:  # times are numbers for readers, and Python's own in schemas
                value = pa.scalar(value, schema.arrow).as_py()
            schema = replace(schema, default=value)
    return schema, read


def default_value(column: ColumnDef, read: Read) -> Any:
    text: Any = column.default
    if text == "CURRENT_TIMESTAMP":
        return None if column.nullable else read("0000-00-00 00:00:00")
    if column.type == "BIT":
        number = int(text, 2) if set(text) <= {"0", "1"} else 0
        text = number.to_bytes(((column.length or 1) + 7) // 8, "big")
    elif column.type.endswith(("BINARY", "BLOB")):
        text = text.encode()
    try:
        return read(text)
    except (ValueError, ArithmeticError, TypeError):
        return None


def simple(column: ColumnDef, modes: Modes) -> tuple[Schema, Read]:
    kind = column.type
    if kind in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT"):
        is_wide = column.unsigned and kind in ("SMALLINT", "INT")
        base = {"TINYINT": 0, "SMALLINT": 0, "MEDIUMINT": 1, "INT": 1}[kind] + is_wide
        return (INT16, INT32, INT64)[base], int
    if kind == "BIGINT":
        if column.unsigned and modes.big == "precise":
            return decimal(0, precision=20), Decimal
        return INT64, signed64
    if kind == "FLOAT":
        is_double = column.scale is not None or (column.length or 0) > 23
        return (FLOAT64 if is_double else FLOAT32), (float if (column.length or 0) > 24 else float32)
    if kind == "DOUBLE":
        return FLOAT64, float
    if kind == "DECIMAL":
        return decimals(column, modes)
    if kind == "BIT":
        if (column.length or 1) == 1:
            return BOOLEAN, lambda value: int.from_bytes(value, "big") == 1
        return named(Type.BYTES, "io.debezium.data.Bits", length=str(column.length)), lambda value: value[
            ::-1
        ]
    if kind == "YEAR":
        return named(Type.INT32, "io.debezium.time.Year"), int
    if kind in ("DATE", "TIME", "DATETIME", "TIMESTAMP"):
        return temporal(column, modes)
    if kind.endswith(("BINARY", "BLOB")) or (kind in ("CHAR", "VARCHAR") and column.charset == "binary"):
        return binary(modes.binary)
    if kind == "ENUM":
        return named(Type.STRING, "io.debezium.data.Enum", allowed=allowed(column)), str
    if kind == "SET":
        return named(Type.STRING, "io.debezium.data.EnumSet", allowed=allowed(column)), str
    if kind == "JSON":
        return named(Type.STRING, "io.debezium.data.Json"), text
    if kind == "POINT":
        return POINT, point
    if kind in SHAPES:
        return GEOMETRY, lambda value: {"wkb": value[4:], "srid": srid(value)}
    if kind == "VECTOR":
        return VECTOR, vector
    if kind in ("UUID", "INET6", "INET4"):
        return STRING, address_of(kind)
    return STRING, text


def vector(value: bytes) -> list[float]:
    return list(packing.unpack(f"<{len(value) // 4}f", value))


def text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def allowed(column: ColumnDef) -> str:
    return ",".join(each.replace("\\", "\\\\").replace(",", "\\,") for each in column.labels)


def signed64(value: Any) -> int:
    """Mode `long`: numbers from 2^63 on wrap around, as in Java."""
    number = int(value)
    return number - (1 << 64) if number >= 1 << 63 else number


def decimals(column: ColumnDef, modes: Modes) -> tuple[Schema, Read]:
    scale = column.scale or 0
    step = Decimal(1).scaleb(-scale)
    if modes.decimals == "string":
        return STRING, lambda value: f"{Decimal(value):f}"
    if modes.decimals == "double":
        return FLOAT64, float
    return (
        decimal(scale, precision=column.length or 10),
        lambda value: Decimal(value).quantize(step, context=DECIMAL_CONTEXT),
    )


def binary(mode: str) -> tuple[Schema, Read]:
    if mode == "base64":
        return STRING, lambda value: base64.b64encode(value).decode()
    if mode == "base64-url-safe":
        return STRING, lambda value: base64.urlsafe_b64encode(value).decode()
    if mode == "hex":
        return STRING, lambda value: value.hex()
    return BYTES, bytes


def srid(value: bytes) -> int | None:
    found: int = packing.unpack_from("<I", value)[0]
    return found or None


def point(value: bytes) -> dict[str, Any]:
    order = "<" if value[4] else ">"
    x, y = packing.unpack_from(f"{order}dd", value, 9)
    return {"x": x, "y": y, "wkb": value[4:], "srid": srid(value)}


def address_of(kind: str) -> Read:
    """MariaDB's types that the log has as bytes and queries as texts."""
    from ipaddress import IPv4Address, IPv6Address
    from uuid import UUID

    makers: dict[str, Callable[[bytes], Any]] = {
        "UUID": lambda raw: UUID(bytes=raw),
        "INET6": lambda raw: IPv6Address(raw),
        "INET4": lambda raw: IPv4Address(raw),
    }
    sizes = {"UUID": 16, "INET6": 16, "INET4": 4}
    return lambda value: (
        str(makers[kind](value.ljust(sizes[kind], b"\0"))) if isinstance(value, bytes) else str(value)
    )


# -- times -----------------------------------------------------------------------------------------


def temporal(column: ColumnDef, modes: Modes) -> tuple[Schema, Read]:
    kind, mode, digits = column.type, modes.times, column.length or 0
    zero = None if column.nullable else 0
    if kind == "TIMESTAMP":
        return named(Type.STRING, "io.debezium.time.ZonedTimestamp"), zoned(
            digits, is_nullable=column.nullable
        )
    if mode == "isostring":
        name = {"DATE": "IsoDate", "TIME": "IsoTime", "DATETIME": "IsoTimestamp"}[kind]
        return named(Type.STRING, f"io.debezium.time.{name}"), iso(kind, is_nullable=column.nullable)
    if kind == "DATE":
        if mode == "connect":
            return DATE, lambda value: as_date(days(value), zero)
        return named(Type.INT32, "io.debezium.time.Date"), lambda value: or_zero(days(value), zero)
    if kind == "TIME":
        if mode == "connect":
            return TIME, lambda value: within_day(clock(value), zero, 1000)
        if mode == "nanoseconds":
            return named(Type.INT64, "io.debezium.time.NanoTime"), lambda value: clock(value) * 1000
        if mode == "adaptive" and digits <= 3:
            return named(Type.INT32, "io.debezium.time.Time"), lambda value: clock(value) // 1000
        return named(Type.INT64, "io.debezium.time.MicroTime"), clock
    if mode == "connect":
        return TIMESTAMP, lambda value: scaled(value, 1000, zero)
    if mode == "nanoseconds":
        return named(Type.INT64, "io.debezium.time.NanoTimestamp"), lambda value: or_zero(
            None if (found := micros(value)) is None else found * 1000, zero
        )
    if digits <= 3 and mode != "microseconds":
        return named(Type.INT64, "io.debezium.time.Timestamp"), lambda value: scaled(value, 1000, zero)
    return named(Type.INT64, "io.debezium.time.MicroTimestamp"), lambda value: scaled(value, 1, zero)


def iso(kind: str, *, is_nullable: bool) -> Read:
    """A time as ISO 8601 in UTC; what is none is null, or the first moment of 1970."""
    zeros = {"DATE": "1970-01-01Z", "TIME": "00:00:00Z", "DATETIME": "1970-01-01T00:00:00Z"}
    zero = None if is_nullable else zeros[kind]

    def read(value: Any) -> str | None:
        is_time = 0 <= clock(value) <= MICROS_OF_DAY if kind == "TIME" else micros(value) is not None
        text, dot, part = str(value).replace(" ", "T").partition(".")
        return f"{text}{dot}{part}".rstrip("0" if dot else "").rstrip(".") + "Z" if is_time else zero

    return read


def float32(value: Any) -> float:
    """A number as 32 bits hold it, also if a query gives its text."""
    found: float = packing.unpack("<f", packing.pack("<f", float(value)))[0]
    return found


def as_date(day: int | None, zero: int | None) -> date | None:
    found = or_zero(day, zero)
    return None if found is None else date.fromordinal(EPOCH_DAY + found)


def or_zero(value: int | None, zero: int | None) -> int | None:
    return zero if value is None else value


def within_day(micros_of: int, zero: int | None, unit: int) -> int | None:
    """A time of day; MySQL's times go beyond it."""
    return micros_of // unit if 0 <= micros_of <= MICROS_OF_DAY else zero


def scaled(value: Any, unit: int, zero: int | None) -> int | None:
    found = micros(value)
    return zero if found is None else found // unit


def days(value: Any) -> int | None:
    """Days since 1970; None for dates that there are not, such as 0000-00-00."""
    year, month, day = (int(each) for each in str(value)[:10].split("-"))
    try:
        return date(year, month, day).toordinal() - EPOCH_DAY
    except ValueError:
        return None


def micros(value: Any) -> int | None:
    found = STAMP.match(str(value))
    if found is None:
        raise ValueError(f"{value!r} is no time")
    day = days(found.group()[:10])
    if day is None:
        return None
    hour, minute, second = (int(each or 0) for each in found.group(4, 5, 6))
    part = int((found.group(7) or "").ljust(6, "0")[:6])
    return day * MICROS_OF_DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + part


def clock(value: Any) -> int:
    found = CLOCK.fullmatch(str(value))
    if found is None:
        raise ValueError(f"{value!r} is no time of day")
    sign, hours, minutes, seconds, part = found.groups()
    total = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000
    total += int((part or "").ljust(6, "0")[:6])
    return -total if sign else total


def zoned(digits: int, *, is_nullable: bool) -> Read:
    """A TIMESTAMP, read in UTC, as ISO 8601 with the digits of the column."""

    def read(value: Any) -> str | None:
        if micros(value) is None:
            if is_nullable:
                return None
            value = "1970-01-01 00:00:00"
        head, _, part = str(value).partition(".")
        end = f".{part.ljust(digits, '0')[:digits]}" if digits else ""
        return head.replace(" ", "T") + end + "Z"

    return read
