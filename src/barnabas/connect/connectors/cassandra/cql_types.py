"""Values as columns of Cassandra take them, and CQL's types for schemas.

In: a Python value and the driver's type of a column. Out: a value that the driver writes, or DataError that
says what does not fit. Does not know: records, statements.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from barnabas.connect.connectors.stores.json_values import text_of
from barnabas.connect.data import DataError, Schema, Type
from barnabas.connect.data.date_formats import DateFormat
from barnabas.connect.data.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME

PRIMITIVES = {
    Type.INT8: "tinyint",
    Type.INT16: "smallint",
    Type.INT32: "int",
    Type.INT64: "bigint",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "text",
    Type.BYTES: "blob",
}
LOGICAL = {DECIMAL_NAME: "decimal", DATE_NAME: "date", TIME_NAME: "time", TIMESTAMP_NAME: "timestamp"}
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "counter": 64}
MICROSECONDS = {
    "NANOSECONDS": 0.001,
    "MICROSECONDS": 1,
    "MILLISECONDS": 1_000,
    "SECONDS": 1_000_000,
    "MINUTES": 60_000_000,
    "HOURS": 3_600_000_000,
    "DAYS": 86_400_000_000,
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = "ZX"


@dataclass(frozen=True, slots=True)
class Codec:
    """How texts and numbers become times."""

    zone: tzinfo = UTC
    unit: str = "MILLISECONDS"
    timestamp: DateFormat | None = None  # None: ISO 8601
    date: DateFormat | None = None
    time: DateFormat | None = None


def cql_type(schema: Schema, *, is_inner: bool = False) -> str:
    """The type of a new column."""
    if schema.logical is not None:
        return LOGICAL[schema.logical]
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        found = f"list<{cql_type(schema.value, is_inner=True)}>"
    elif schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        found = f"map<{cql_type(schema.key, is_inner=True)}, {cql_type(schema.value, is_inner=True)}>"
    elif schema.type is Type.STRUCT:
        raise DataError("a struct inside of a value is no column: put the transform Flatten$Value before")
    else:
        return PRIMITIVES[schema.type]
    return f"frozen<{found}>" if is_inner else found


def converted(value: Any, kind: Any, codec: Codec) -> Any:
    """`kind` is a type of the driver."""
    name = kind.typename
    while name in ("frozen", "org.apache.cassandra.db.marshal.ReversedType"):
        kind = kind.subtypes[0]
        name = kind.typename
    if value is None:
        return None
    if name in ("list", "set", "vector"):
        if not isinstance(value, list | tuple | set | frozenset):
            raise misfit(value, name)
        inner = kind.subtypes[0] if kind.subtypes else kind.subtype
        items = [converted(each, inner, codec) for each in value]
        return set(items) if name == "set" else items
    if name == "map":
        if not isinstance(value, Mapping):
            raise misfit(value, name)
        keys, values = kind.subtypes
        return {converted(k, keys, codec): converted(v, values, codec) for k, v in value.items()}
    if name == "tuple":
        if not isinstance(value, list | tuple) or len(value) != len(kind.subtypes):
            raise misfit(value, name)
        return tuple(converted(each, sub, codec) for each, sub in zip(value, kind.subtypes, strict=True))
    if hasattr(kind, "fieldnames"):
        if not isinstance(value, Mapping):
            raise misfit(value, name)
        fields = zip(kind.fieldnames, kind.subtypes, strict=True)
        return tuple(converted(value.get(field), sub, codec) for field, sub in fields)
    try:
        return SCALARS.get(name, unchanged)(value, name, codec)
    except (ValueError, TypeError, OverflowError, InvalidOperation, binascii.Error) as error:
        raise misfit(value, name) from error


def misfit(value: Any, name: str) -> DataError:
    return DataError(f"{value!r:.60} ({type(value).__name__}) does not fit a column of type {name}")


def unchanged(value: Any, name: str, codec: Codec) -> Any:
    return value


def text(value: Any, name: str, codec: Codec) -> str:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    found = ("true" if value else "false") if isinstance(value, bool) else text_of(value)
    if name == "ascii" and not found.isascii():
        raise ValueError(found)
    return found


def whole(value: Any, name: str, codec: Codec) -> int:
    if isinstance(value, float | Decimal) and value != int(value):
        raise ValueError(value)
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH
        value = value // timedelta(milliseconds=1)
    found = int(value)
    if name in BITS and not -(1 << BITS[name] - 1) <= found < 1 << BITS[name] - 1:
        raise ValueError(value)
    return found


def floating(value: Any, name: str, codec: Codec) -> float:
    return float(value)


def exact(value: Any, name: str, codec: Codec) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(str(value))


def boolean(value: Any, name: str, codec: Codec) -> bool:
    if isinstance(value, str):
        if value.lower() not in ("true", "false"):
            raise ValueError(value)
        return value.lower() == "true"
    if not isinstance(value, bool | int):
        raise TypeError(value)
    return bool(value)


def blob(value: Any, name: str, codec: Codec) -> bytes:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else bytes(memoryview(value))


def identifier(value: Any, name: str, codec: Codec) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    return uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(str(value))


def read(text: str, format: DateFormat) -> datetime:
    """The time of a text, with a zone where the pattern has one. ValueError if it is not as the pattern
    writes it, such as a month 13, which Java's SimpleDateFormat takes for the January after."""
    times = format.times(pa.array([text]))
    found: datetime = times[0].as_py()
    if any(letter in ZONES for letter, _ in format.pieces if letter):
        return found
    if format.texts(times)[0].as_py() != text:
        raise ValueError(text)
    return found.replace(tzinfo=None)


def timestamp(value: Any, name: str, codec: Codec) -> datetime:
    if isinstance(value, str):
        found = read(value, codec.timestamp) if codec.timestamp else datetime.fromisoformat(value)
        return found if found.tzinfo else found.replace(tzinfo=codec.zone)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return EPOCH + timedelta(microseconds=value * MICROSECONDS[codec.unit])


def day(value: Any, name: str, codec: Codec) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        return read(value, codec.date).date() if codec.date else date.fromisoformat(value)
    return timestamp(value, name, codec).date()


def clock(value: Any, name: str, codec: Codec) -> Any:
    if isinstance(value, str):
        return read(value, codec.time).time() if codec.time else time.fromisoformat(value)
    if isinstance(value, datetime):
        return value.time()
    if not isinstance(value, time):
        return int(value * MICROSECONDS[codec.unit] * 1000)  # nanoseconds of the day
    return value


def address(value: Any, name: str, codec: Codec) -> str:
    return str(ipaddress.ip_address(value))


SCALARS: dict[str, Callable[[Any, str, Codec], Any]] = {
    **dict.fromkeys(("text", "varchar", "ascii"), text),
    **dict.fromkeys((*BITS, "varint"), whole),
    **dict.fromkeys(("float", "double"), floating),
    "decimal": exact,
    "boolean": boolean,
    "blob": blob,
    **dict.fromkeys(("uuid", "timeuuid"), identifier),
    "timestamp": timestamp,
    "date": day,
    "time": clock,
    "inet": address,
}
