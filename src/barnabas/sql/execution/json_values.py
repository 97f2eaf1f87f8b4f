"""Values of rows as JSON, as responses of the server have them.

In: a Python value and its type. Out: what `json.dumps` takes: bytes in base64, dates and times as ISO texts,
decimals as numbers with all their digits, infinities and NaN as texts. Does not know: formats of topics.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Sequence
from decimal import Decimal as PythonDecimal
from typing import Any

from barnabas.sql.metastore.schemas import Schema
from barnabas.sql.types.sql_types import Array, Decimal, Map, SqlType, Struct


class Digits(float):
    """A decimal that JSON shows with the digits that it has: `1.50` stays `1.50`."""

    text: str

    def __new__(cls, value: PythonDecimal) -> Digits:
        made = super().__new__(cls, value)
        made.text = format(value, "f")
        return made

    def __repr__(self) -> str:
        return self.text


def json_row(values: Sequence[Any], schema: Schema) -> list[Any]:
    return [json_value(value, column.kind) for value, column in zip(values, schema, strict=True)]


def json_value(value: Any, kind: SqlType) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int() if not isinstance(kind, Decimal):
            return value
        case float():
            return value if math.isfinite(value) else float_name(value)
        case PythonDecimal() | int():
            number = PythonDecimal(value)
            if isinstance(kind, Decimal):
                number = round(number, kind.scale)
            return Digits(number)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case dt.datetime():
            return value.isoformat(timespec="milliseconds")
        case dt.time():
            return time_text(value)
        case dt.date():
            return value.isoformat()
        case dict() if isinstance(kind, Struct):
            return {name: json_value(value.get(name), part) for name, part in kind.fields}
        case dict():
            part = kind.value if isinstance(kind, Map) else kind
            return {key_text(key): json_value(each, part) for key, each in value.items()}
        case list() | tuple():
            item = kind.item if isinstance(kind, Array) else kind
            return [json_value(each, item) for each in value]
    return str(value)


def float_name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def key_text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


def time_text(value: dt.time) -> str:
    """As Java prints a time: seconds and their parts only where there are any."""
    if value.microsecond:
        return value.isoformat(timespec="milliseconds")
    return value.isoformat(timespec="seconds" if value.second else "minutes")


def dumped(value: Any) -> str:
    """JSON in one line. The encoder of the standard library knows no digits, so it gets values without."""
    return written(value) if has_digits(value) else PLAIN.encode(value)


def has_digits(value: Any) -> bool:
    match value:
        case Digits():
            return True
        case dict():
            return any(map(has_digits, value.values()))
        case list() | tuple():
            return any(map(has_digits, value))
    return False


def written(value: Any) -> str:
    match value:
        case Digits():
            return value.text
        case dict():
            return "{" + ",".join(f"{json.dumps(str(k))}:{written(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(written, value)) + "]"
    return PLAIN.encode(value)


PLAIN = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False)
