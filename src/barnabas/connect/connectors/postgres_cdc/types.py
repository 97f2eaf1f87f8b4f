"""PostgreSQL's types as Debezium's schemas, and texts of values read into them.

In: columns of the catalogue, handling modes. Out: a schema and a function from text to value for each
column. Pure.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from barnabas.connect.config import Settings
from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    decimal,
    mapping,
    struct,
)

Read = Callable[[str], Any]
EPOCH = datetime(1970, 1, 1)
FAR = {"infinity": 9223372036825200000, "-infinity": -9223372036832400000}  # Debezium's ends of time, µs
PLAIN: dict[str, tuple[Schema, Read]] = {
    "bool": (BOOLEAN, lambda text: text == "t"),
    "int2": (INT16, int),
    "int4": (INT32, int),
    "int8": (INT64, int),
    "oid": (INT64, int),
    "float4": (FLOAT32, float),
    "float8": (FLOAT64, float),
}
MICROS_OF_DAY = 86_400_000_000
MICROS_OF_MONTH = int(365.25 / 12 * MICROS_OF_DAY)
VARIABLE = struct({"scale": INT32, "value": BYTES}, name="io.debezium.data.VariableScaleDecimal", version=1)


@dataclass(frozen=True, slots=True)
class Modes:
    """Handling modes of one connector."""

    decimals: str = "precise"
    times: str = "adaptive"
    binary: str = "bytes"
    hstore: str = "json"
    intervals: str = "numeric"
    money_digits: int = 2

    @staticmethod
    def of(settings: Settings) -> Modes:
        return Modes(
            settings.text("decimal.handling.mode").lower(),
            settings.text("time.precision.mode").lower(),
            settings.text("binary.handling.mode").lower(),
            settings.text("hstore.handling.mode").lower(),
            settings.text("interval.handling.mode").lower(),
            settings.integer("money.fraction.digits"),
        )


@dataclass(frozen=True, slots=True)
class PgColumn:
    """A column of the catalogue: `labels` are those of an enum, `item` is the type of an array's items."""

    name: str
    type: str
    modifier: int
    nullable: bool
    item: str | None = None
    labels: tuple[str, ...] = ()


def named(kind: Type, name: str, **parameters: str) -> Schema:
    return Schema(type=kind, name=name, version=1, parameters=parameters)


def typed(column: PgColumn, modes: Modes) -> tuple[Schema, Read]:
    """The schema of a column, optional where it is nullable, and the reader of its texts."""
    if column.item is not None:
        inner = PgColumn(column.name, column.item, column.modifier, True, None, column.labels)
        schema, read = typed(inner, modes)
        found: tuple[Schema, Read] = (array(schema), lambda text: list_of(text, read))
    else:
        found = simple(column, modes)
    return (found[0].as_optional() if column.nullable else found[0]), found[1]


def simple(column: PgColumn, modes: Modes) -> tuple[Schema, Read]:
    kind = column.type
    if kind in PLAIN:
        return PLAIN[kind]
    if column.labels:
        return named(Type.STRING, "io.debezium.data.Enum", allowed=",".join(column.labels)), str
    if kind == "numeric":
        return numeric(column, modes)
    if kind == "money":
        return money(modes)
    if kind in ("date", "time", "timetz", "timestamp", "timestamptz"):
        return temporal(kind, column.modifier, modes)
    if kind == "interval":
        if modes.intervals == "string":
            return named(Type.STRING, "io.debezium.time.Interval"), str
        return named(Type.INT64, "io.debezium.time.MicroDuration"), micro_duration
    if kind == "bytea":
        return binary(modes.binary)
    if kind in ("bit", "varbit"):
        if kind == "bit" and column.modifier in (-1, 1):
            return BOOLEAN, lambda text: text == "1"
        length = str(column.modifier if column.modifier > 0 else 2147483647)
        return named(Type.BYTES, "io.debezium.data.Bits", length=length), bits
    if kind == "hstore":
        if modes.hstore == "map":
            return mapping(STRING, STRING.as_optional()), lambda text: list(hstore(text).items())
        return named(Type.STRING, "io.debezium.data.Json"), lambda text: json.dumps(hstore(text))
    names = {"uuid": "Uuid", "json": "Json", "jsonb": "Json", "xml": "Xml", "ltree": "Ltree"}
    return (named(Type.STRING, f"io.debezium.data.{names[kind]}") if kind in names else STRING), str


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
    return decimal(scale, precision=precision), Decimal


def variable(text: str) -> dict[str, Any] | None:
    """A decimal with its own scale; NaN and infinity have none and become null."""
    value = Decimal(text)
    if not value.is_finite():
        return None
    exponent = int(value.as_tuple().exponent)
    unscaled = int(value.scaleb(-exponent)) if exponent < 0 else int(value)
    size = (unscaled.bit_length() // 8) + 1
    return {"scale": max(-exponent, 0), "value": unscaled.to_bytes(size, "big", signed=True)}


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


def temporal(kind: str, modifier: int, modes: Modes) -> tuple[Schema, Read]:
    if kind == "timestamptz":
        return named(Type.STRING, "io.debezium.time.ZonedTimestamp"), zoned
    if kind == "timetz":
        return named(Type.STRING, "io.debezium.time.ZonedTime"), zoned_time
    mode = modes.times
    if mode == "connect":
        if kind == "date":
            return DATE, lambda text: date.fromisoformat(text)
        if kind == "time":
            return TIME, lambda text: micros_time(text) // 1000
        return TIMESTAMP, lambda text: micros(text) // 1000
    if mode == "isostring":
        return named(Type.STRING, f"io.debezium.time.Iso{kind.capitalize()}"), lambda text: text.replace(
            " ", "T"
        )
    if kind == "date":
        return named(Type.INT32, "io.debezium.time.Date"), days
    is_coarse = 0 <= modifier <= 3 and mode == "adaptive"
    if kind == "time":
        if is_coarse:
            return named(Type.INT32, "io.debezium.time.Time"), lambda text: micros_time(text) // 1000
        if mode == "nanoseconds":
            return named(Type.INT64, "io.debezium.time.NanoTime"), lambda text: micros_time(text) * 1000
        return named(Type.INT64, "io.debezium.time.MicroTime"), micros_time
    if 0 <= modifier <= 3 and mode in ("adaptive", "adaptive_time_microseconds"):
        return named(Type.INT64, "io.debezium.time.Timestamp"), lambda text: micros(text) // 1000
    if mode == "nanoseconds":
        return named(Type.INT64, "io.debezium.time.NanoTimestamp"), lambda text: micros(text) * 1000
    return named(Type.INT64, "io.debezium.time.MicroTimestamp"), micros


def micros(text: str) -> int:
    """Microseconds of a timestamp as if it were UTC; infinity and years before 1 have sentinels."""
    if text in FAR:
        return FAR[text]
    if text.endswith("BC"):
        return FAR["-infinity"]
    step = datetime.fromisoformat(text) - EPOCH
    return (step.days * 86_400 + step.seconds) * 1_000_000 + step.microseconds


def days(text: str) -> int:
    if text in FAR:
        return 2147483647 if text == "infinity" else -2147483648
    return -2147483648 if text.endswith("BC") else (date.fromisoformat(text) - EPOCH.date()).days


def micros_time(text: str) -> int:
    if text.startswith("24:"):
        return MICROS_OF_DAY
    value = time.fromisoformat(text)
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def zoned(text: str) -> str:
    if text in FAR or text.endswith("BC"):
        return text
    value = datetime.fromisoformat(text).astimezone(UTC)
    return value.strftime("%Y-%m-%dT%H:%M:%S.%f").rjust(26, "0") + "Z"


def zoned_time(text: str) -> str:
    value = datetime.combine(date(2000, 1, 1), time.fromisoformat(text)).astimezone(UTC)
    return value.time().isoformat() + "Z"


UNITS = {"year": 12 * MICROS_OF_MONTH, "mon": MICROS_OF_MONTH, "day": MICROS_OF_DAY}


def micro_duration(text: str) -> int:
    """An interval in PostgreSQL's own form: `1 year 2 mons 3 days 04:05:06.7`."""
    total = 0
    for number, unit in re.findall(r"([+-]?\d+) (year|mon|day)s?", text):
        total += int(number) * UNITS[unit]
    if clock := re.search(r"([+-]?)(\d+):(\d+):(\d+)(?:\.(\d+))?$", text):
        sign, hours, minutes, seconds, fraction = clock.groups()
        part = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000
        part += int((fraction or "").ljust(6, "0")[:6] or 0)
        total += -part if sign == "-" else part
    return total


def binary(mode: str) -> tuple[Schema, Read]:
    def raw(text: str) -> bytes:
        return bytes.fromhex(text.removeprefix("\\x"))

    if mode == "base64":
        return STRING, lambda text: base64.b64encode(raw(text)).decode()
    if mode == "base64-url-safe":
        return STRING, lambda text: base64.urlsafe_b64encode(raw(text)).decode()
    if mode == "hex":
        return STRING, lambda text: raw(text).hex()
    return BYTES, raw


def bits(text: str) -> bytes:
    return int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little")


def hstore(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for key, value, null in re.findall(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|(NULL))', text):
        found[re.sub(r"\\(.)", r"\1", key)] = None if null else re.sub(r"\\(.)", r"\1", value)
    return found


def list_of(text: str, read: Read) -> list[Any]:
    """A one-dimensional array in PostgreSQL's text form. Deeper ones are an error."""
    items: list[Any] = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)', text):
        if plain == "NULL":
            items.append(None)
        else:
            items.append(read(plain if plain else re.sub(r"\\(.)", r"\1", quoted)))
    if text.count("{") > 1 and '"' not in text:
        raise ValueError(f"arrays of several dimensions are not known: {text[:50]}")
    return items
