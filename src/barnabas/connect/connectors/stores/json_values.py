"""Values of records as JSON texts, and as the texts of keys.

Structs and maps are objects, bytes are base64, dates and times are ISO texts in UTC. Decimals are exact texts
or numbers, as the caller chooses. Does not know: stores.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson

from barnabas.connect.data import DataError

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC


def exact(value: Any) -> Any:
    """Write values that orjson cannot write: decimals as texts with all their digits."""
    return str(value) if isinstance(value, Decimal) else other(value)


def numeric(value: Any) -> Any:
    """As `exact`, but decimals are numbers."""
    return float(value) if isinstance(value, Decimal) else other(value)


def other(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def json_bytes(value: Any, default: Callable[[Any], Any] = exact) -> bytes:
    """JSON of a value in UTF-8. DataError if it has none."""
    try:
        return orjson.dumps(value, default, OPTIONS)
    except (orjson.JSONEncodeError, UnicodeError, RecursionError) as error:
        raise DataError(f"the value cannot be written as JSON: {error}") from error


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
