"""SimpleHeaderConverter: headers as text, with the type guessed when they are read.

`true` and `false` are booleans, whole numbers take the smallest of int8 to int64, numbers with a point are
float32, then float64, then decimals. ISO dates, times and timestamps, lists in brackets and maps in braces
are recognised. Everything else is text.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from barnabas.connect.convert.contract import HeaderConverter
from barnabas.connect.data import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    DataError,
    Schema,
    array,
    decimal,
    mapping,
)
from barnabas.connect.data.java_text import java_text

WHOLE = ((INT8, 1 << 7), (INT16, 1 << 15), (INT32, 1 << 31), (INT64, 1 << 63))
NUMBER = re.compile(r"[+-]?\d+\.?\d*([eE][+-]?\d+)?")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
CLOCK = re.compile(r"\d{2}:\d{2}:\d{2}\.\d{3}Z")
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
DEPTH_MAX = 32
Found = tuple[Any, Schema | None]


class SimpleHeaderConverter(HeaderConverter):
    """The header converter that Connect uses unless told otherwise."""

    JAVA_NAMES = ("org.apache.kafka.connect.storage.SimpleHeaderConverter",)

    def from_header(self, topic: str, name: str, data: bytes | None) -> Found:
        if data is None:
            return None, None
        return guess(data.decode("utf-8", "replace"))

    def to_header(self, topic: str, name: str, value: Any, schema: Schema | None) -> bytes | None:
        return None if value is None else literal(value, schema).encode()


def guess(text: str) -> Found:
    """The value that a text means, and its schema."""
    if text == "":
        return "", STRING
    if text == "null":
        return None, None
    word = text.strip()
    found = scalar(word)
    if found is not None:
        return found
    if word[:1] in ("[", "{"):
        try:
            value, rest = nested(word, 0)
            if not rest.strip():
                return value
        except (DataError, IndexError):
            pass
    return text, STRING


def scalar(word: str) -> Found | None:
    """A boolean, a time or a number; None if it is neither."""
    if word in ("true", "false"):
        return word == "true", BOOLEAN
    try:
        if DAY.fullmatch(word):
            return dt.date.fromisoformat(word), DATE
        if CLOCK.fullmatch(word):
            return dt.time.fromisoformat(word[:-1]), TIME
        if MOMENT.fullmatch(word):
            return dt.datetime.fromisoformat(word[:-1] + "+00:00"), TIMESTAMP
    except ValueError:
        return None
    return number(word) if NUMBER.fullmatch(word) and len(word) < 1000 else None


def number(word: str) -> Found | None:
    try:
        exact = Decimal(word)
    except InvalidOperation:
        return None
    _, _, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    if abs(exponent) < 400 and exact == exact.to_integral_value():
        whole = int(exact)
        for schema, limit in WHOLE:
            if -limit <= whole < limit:
                return whole, schema
    if exponent != 0:
        with np.errstate(over="ignore"):
            narrow = float(np.float32(exact))
        if abs(narrow) != float("inf"):
            return narrow, FLOAT32
        if abs(float(exact)) != float("inf"):
            return float(exact), FLOAT64
    return exact, decimal(-exponent)


def nested(text: str, depth: int) -> tuple[Found, str]:
    """A list, a map, a quoted text or a scalar at the beginning of a text, and what follows it."""
    if depth > DEPTH_MAX:
        raise DataError("too deep")
    text = text.lstrip()
    if text.startswith('"'):
        quoted = re.match(r'"((?:[^"\\]|\\.)*)"', text)
        if quoted is None:
            raise DataError("a quote is not closed")
        return (re.sub(r"\\(.)", r"\1", quoted[1]), STRING), text[quoted.end() :]
    if text.startswith("["):
        return items(text[1:], depth)
    if text.startswith("{"):
        return entries(text[1:], depth)
    time_or_word = re.match(rf"{MOMENT.pattern}|{CLOCK.pattern}|[^\[\]{{}},:\"]+", text)
    if time_or_word is None:
        raise DataError("nothing that can be a value")
    word = time_or_word[0].strip()
    rest = text[time_or_word.end() :]
    if word == "null":
        return (None, None), rest
    found = scalar(word)
    if found is None:
        raise DataError(f"{word!r} is neither quoted nor a number")
    return found, rest


def items(text: str, depth: int) -> tuple[Found, str]:
    values: list[Any] = []
    schemas: list[Schema | None] = []
    text = text.lstrip()
    while not text.startswith("]"):
        (value, schema), text = nested(text, depth + 1)
        values.append(value)
        schemas.append(schema)
        text = text.lstrip()
        if text.startswith(","):
            text = text[1:].lstrip()
        elif not text.startswith("]"):
            raise DataError("a list goes on with a comma or ends with a bracket")
    one = shared(schemas)
    return (values, None if one is None else array(one)), text[1:]


def entries(text: str, depth: int) -> tuple[Found, str]:
    made: dict[Any, Any] = {}
    keys: list[Schema | None] = []
    schemas: list[Schema | None] = []
    text = text.lstrip()
    while not text.startswith("}"):
        (key, key_schema), text = nested(text, depth + 1)
        text = text.lstrip()
        if not text.startswith(":"):
            raise DataError("a key is followed by a colon")
        (value, schema), text = nested(text[1:], depth + 1)
        made[key] = value
        keys.append(key_schema)
        schemas.append(schema)
        text = text.lstrip()
        if text.startswith(","):
            text = text[1:].lstrip()
        elif not text.startswith("}"):
            raise DataError("a map goes on with a comma or ends with a brace")
    key_type, value_type = shared(keys), shared(schemas)
    both = None if key_type is None or value_type is None else mapping(key_type, value_type)
    return (made, both), text[1:]


def shared(schemas: list[Schema | None]) -> Schema | None:
    """One schema for all items: the widest whole number, or the same for all. None if they differ."""
    known = [schema for schema in schemas if schema is not None]
    if not known or len(known) != len(schemas):
        return None
    order = [*(schema for schema, _ in WHOLE), FLOAT32, FLOAT64]
    if all(schema in order for schema in known):
        return max(known, key=order.index)
    return known[0] if all(schema == known[0] for schema in known) else None


NEXT_DAY = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)


def literal(value: Any, schema: Schema | None = None, *, embedded: bool = False) -> str:
    """The text of a value, in a form that `guess` reads back."""
    if value is None:
        return "null"
    if isinstance(value, str):
        if not embedded:
            return value
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, bytes | bytearray):
        text = base64.b64encode(value).decode()
        return f'"{text}"' if embedded else text
    if isinstance(value, dt.datetime):
        if value < NEXT_DAY:  # Java tells times and dates by their milliseconds
            return literal(value.astimezone(dt.UTC).time())
        if value.astimezone(dt.UTC).time() == dt.time():
            return value.astimezone(dt.UTC).date().isoformat()
        return f"{value.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"
    if isinstance(value, dt.time):
        return f"{value:%H:%M:%S}.{value.microsecond // 1000:03}Z"
    if isinstance(value, dt.date):
        if value < NEXT_DAY.date():
            return "00:00:00.000Z"
        return value.isoformat()
    inner = schema.value if schema is not None else None
    if isinstance(value, dict):
        key = schema.key if schema is not None else None
        pairs = (
            f"{literal(name, key, embedded=True)}:{literal(one, inner, embedded=True)}"
            for name, one in value.items()
        )
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(literal(one, inner, embedded=True) for one in value)}]"
    return java_text(value, schema)
