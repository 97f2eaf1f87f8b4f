"""Values of records as JSON texts, and as the texts of keys.

Structs and maps are objects, bytes are base64, dates and times are ISO texts in UTC. Decimals are exact texts
or exact numbers, as the caller chooses. NaN and the infinities are texts, as JsonConverter writes them. Does
not know: stores.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson

from barnabas.connect.data import DataError
from barnabas.connect.data.java_text import java_double

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC


def exact(value: Any) -> Any:
    """Write values that orjson cannot write: decimals as texts with all their digits."""
    return str(value) if isinstance(value, Decimal) else other(value)


def numeric(value: Any) -> Any:
    """As `exact`, but decimals are numbers, with all their digits, too."""
    if isinstance(value, Decimal) and value.is_finite():
        return orjson.Fragment(str(value))
    return exact(value)


def other(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def json_bytes(value: Any, default: Callable[[Any], Any] = exact) -> bytes:
    """JSON of a value in UTF-8. DataError if it has none."""
    try:
        found = orjson.dumps(value, default, OPTIONS)
        # A number that is none becomes null, which is looked for only where a null is.
        return orjson.dumps(named(value), default, OPTIONS) if b"null" in found else found
    except (orjson.JSONEncodeError, UnicodeError, RecursionError) as error:
        raise DataError(f"the value cannot be written as JSON: {error}") from error


def named(value: Any) -> Any:
    """A value with texts for NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else java_double(value)
    if isinstance(value, Mapping):
        return {named(name): named(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [named(each) for each in value]
    return value


def moment(ms: float) -> datetime:
    """The time of these milliseconds. DataError where it has no date, as for microseconds by mistake."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise DataError(f"{ms} are no milliseconds of a date: {error}") from error


def text_of(value: Any, default: Callable[[Any], Any] = exact) -> str:
    """A key or a member as text: texts as they are, bytes as UTF-8, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError as error:
            raise DataError(f"the bytes {bytes(value)[:20]!r} are no UTF-8 text: {error.reason}") from error
    if isinstance(value, Decimal):
        return str(value)
    return json_bytes(value, default).decode().strip('"')
