"""JSON: objects whose fields match columns in any case, or one bare value.

Reading is free, as in ksqlDB: numbers from text, text from numbers, booleans and objects (as JSON), unknown
fields ignored, missing ones null. Writing is exact: columns by their names, nulls written, decimals with
all their digits as numbers, times as numbers, bytes as base64. Does not know: topics, registries.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number
from typing import Any

import orjson

from barnabas.sql.formats.contract import BadBytes, BadRow, Row, has_decimal
from barnabas.sql.formats.values import (
    days_of,
    fitted_decimal,
    java_double,
    millis_of,
    of_days,
    of_millis_checked,
    of_time_millis,
    time_millis,
)
from barnabas.sql.metastore.schemas import Column
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    wrapped_int,
    wrapped_long,
)

Convert = Callable[[Any], Any]
SHOWN_MAX = 80


class NeedsExact(Exception):
    """The text of a number is wanted: the document must be read with all digits."""


class JsonRows:
    """A record of columns, or the one column alone."""

    def __init__(self, columns: Sequence[Column], *, is_bare: bool) -> None:
        self._is_bare = is_bare
        self._fields = [(each.name, writer_of(each.kind)) for each in columns]
        self._name = columns[0].name if columns else ""
        self._exact = any(has_decimal(each.kind) for each in columns)
        self._read_fields = fields_reader([(each.name, each.kind) for each in columns])
        self._read_bare = reader_of(columns[0].kind) if is_bare else None

    def to_bytes(self, row: Mapping[str, Any]) -> bytes | None:
        try:
            if self._is_bare:
                value = row.get(self._name)
                if value is None:
                    return None
                write = self._fields[0][1]
                return dumped(value if write is None else write(value))
            return dumped(
                {
                    name: value if (value := row.get(name)) is None or write is None else write(value)
                    for name, write in self._fields
                }
            )
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise BadRow(f"the row cannot be written as JSON: {error}") from error

    def from_bytes(self, data: bytes) -> Row | None:
        try:
            found = exactly(data) if self._exact else quickly(data)
            try:
                return self._row(found)
            except NeedsExact:
                return self._row(exactly(data))
        except BadBytes:
            raise
        except (ValueError, ArithmeticError, TypeError, RecursionError) as error:
            raise BadBytes(f"the text cannot be read as JSON: {error}") from None

    def _row(self, found: Any) -> Row | None:
        if self._read_bare is not None:
            return None if found is None else {self._name: self._read_bare(found)}
        if found is None:
            return None
        if not isinstance(found, dict):
            raise BadBytes(f"a JSON object is needed, not {shown(found)}")
        return self._read_fields(found)


def quickly(data: bytes) -> Any:
    return orjson.loads(data)


def exactly(data: bytes) -> Any:
    """Parse JSON; numbers with a point keep all digits."""
    return json.loads(data, parse_float=Number)


def dumped(value: Any) -> bytes:
    return orjson.dumps(value, default=_fragment, option=orjson.OPT_NON_STR_KEYS)


def _fragment(value: Any) -> orjson.Fragment:
    if isinstance(value, Number):
        return orjson.Fragment(format(value, "f"))
    if isinstance(value, int):
        return orjson.Fragment(str(value))
    raise TypeError(f"JSON has no {type(value).__name__}")


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."


# -------------------------------------------------------------------------------------------- writing


def writer_of(kind: SqlType) -> Convert | None:
    """A function from SQL's values to JSON's; None where they are the same."""
    if kind == DOUBLE:
        return lambda value: float(value) if math.isfinite(value) else java_double(value)
    if kind == BYTES:
        return lambda value: base64.b64encode(value).decode()
    if kind == DATE:
        return days_of
    if kind == TIME:
        return time_millis
    if kind == TIMESTAMP:
        return millis_of
    if isinstance(kind, Decimal):
        return lambda value: fitted_decimal(value, kind)
    if isinstance(kind, Array):
        item = writer_of(kind.item)
        if item is None:
            return None
        return lambda value: [None if each is None else item(each) for each in value]
    if isinstance(kind, Map):
        key, one = key_text(kind.key), writer_of(kind.value)
        return lambda value: {
            key(name): each if each is None or one is None else one(each) for name, each in value.items()
        }
    if isinstance(kind, Struct):
        parts = [(name, writer_of(inner)) for name, inner in kind.fields]
        return lambda value: {
            name: each if (each := value.get(name)) is None or write is None else write(each)
            for name, write in parts
        }
    return None


def key_text(kind: SqlType) -> Callable[[Any], str]:
    if kind == DOUBLE:
        return java_double
    if kind == BOOLEAN:
        return lambda value: "true" if value else "false"
    return str


# -------------------------------------------------------------------------------------------- reading


def fields_reader(fields: Sequence[tuple[str, SqlType]]) -> Callable[[dict[str, Any]], Row]:
    """Reads an object: each column from the field of its name, else from the first that differs in case."""
    parts = [(name, name.upper(), reader_of(kind)) for name, kind in fields]

    def read(found: dict[str, Any]) -> Row:
        row: Row = {}
        upper: dict[str, Any] | None = None
        for name, wanted, convert in parts:
            if name in found:
                value = found[name]
            else:
                if upper is None:
                    upper = {}
                    for given, each in found.items():
                        upper.setdefault(given.upper(), each)
                value = upper.get(wanted)
            try:
                row[name] = None if value is None else convert(value)
            except (ValueError, ArithmeticError, TypeError) as error:
                raise BadBytes(f"{name}: {error}") from None
        return row

    return read


def reader_of(kind: SqlType) -> Convert:
    """A function from a JSON value that is not null to SQL's."""
    found = _READERS.get(kind)
    if found is not None:
        return found
    if isinstance(kind, Decimal):
        return lambda value: fitted_decimal(_exact_number(value), kind)
    if isinstance(kind, Array):
        item = reader_of(kind.item)

        def read_array(value: Any) -> Any:
            if not isinstance(value, list):
                raise BadBytes(f"an array is needed, not {shown(value)}")
            return [None if each is None else item(each) for each in value]

        return read_array
    if isinstance(kind, Map):
        key, one = reader_of(kind.key), reader_of(kind.value)

        def read_map(value: Any) -> Any:
            if not isinstance(value, dict):
                raise BadBytes(f"an object is needed, not {shown(value)}")
            return {key(name): None if each is None else one(each) for name, each in value.items()}

        return read_map
    if isinstance(kind, Struct):
        fields = fields_reader(kind.fields)

        def read_struct(value: Any) -> Any:
            if not isinstance(value, dict):
                raise BadBytes(f"an object is needed, not {shown(value)}")
            return fields(value)

        return read_struct
    raise ValueError(f"JSON cannot hold {kind}")


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool):
        raise BadBytes(f"a number is needed for {name}, not {shown(value)}")
    if isinstance(value, int):
        return value
    if isinstance(value, float | Number):
        if isinstance(value, float) and not math.isfinite(value):
            raise BadBytes(f"a number is needed for {name}, not {shown(value)}")
        return int(value)
    if isinstance(value, str):
        return int(value)
    raise BadBytes(f"a number is needed for {name}, not {shown(value)}")


def _read_int(value: Any) -> int:
    found = _whole(value, "INTEGER")
    if isinstance(value, str) and found != wrapped_int(found):
        raise BadBytes(f"{value} does not fit an INTEGER")
    return wrapped_int(found)


def _read_long(value: Any) -> int:
    found = _whole(value, "BIGINT")
    if isinstance(value, str) and found != wrapped_long(found):
        raise BadBytes(f"{value} does not fit a BIGINT")
    return wrapped_long(found)


def _read_double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Number | str):
        raise BadBytes(f"a number is needed for DOUBLE, not {shown(value)}")
    return float(value)


def _read_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadBytes(f"true or false is needed, not {shown(value)}")
    return value


def _read_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or (isinstance(value, dict | list) and _has_float(value)):
        raise NeedsExact
    if isinstance(value, Number):
        return str(value)
    return str(value) if isinstance(value, int) else dumped(value).decode()


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_float(each) for each in value.values())
    if isinstance(value, list):
        return any(_has_float(each) for each in value)
    return isinstance(value, float)


def _exact_number(value: Any) -> Number:
    if isinstance(value, float):
        raise NeedsExact
    if isinstance(value, bool) or not isinstance(value, int | Number | str):
        raise BadBytes(f"a number is needed for DECIMAL, not {shown(value)}")
    return Number(value.strip() if isinstance(value, str) else value)


def _read_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise BadBytes(f"base64 in a text is needed for BYTES, not {shown(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise BadBytes(f"{shown(value)} is no base64: {error}") from None


_READERS: dict[SqlType, Convert] = {
    BOOLEAN: _read_boolean,
    INTEGER: _read_int,
    BIGINT: _read_long,
    DOUBLE: _read_double,
    STRING: _read_text,
    BYTES: _read_bytes,
    DATE: lambda value: of_days(_whole(value, "DATE")),
    TIME: lambda value: of_time_millis(_whole(value, "TIME")),
    TIMESTAMP: lambda value: of_millis_checked(_whole(value, "TIMESTAMP")),
}
