"""JSON texts as the proxy reads and writes them: strict, compact, UTF-8.

In: bytes of others. Out: values, or ValueError with one line. NaN, infinities, numbers that a double cannot
hold, digits without end and nesting without end are refused, because other JSON parsers refuse them. `orjson`
writes and checks; it does not read, because it makes doubles of large whole numbers.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import orjson


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def finite_number(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


_decoder = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_number)
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)


def loads(data: bytes | str) -> Any:
    """The value of a JSON text."""
    try:
        return _decoder.decode(data if isinstance(data, str) else data.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"the text is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def check(data: bytes) -> None:
    """ValueError if the bytes are no JSON."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        loads(data)  # says why, or knows better: numbers may have any number of digits


def dumps(value: object) -> bytes:
    """The compact text of a value; ValueError if it has none."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass  # whole numbers beyond 64 bits, and values that have no text
    try:
        return _encoder.encode(value).encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half of a surrogate pair") from None
    except RecursionError:
        raise ValueError("the data are nested too deeply") from None
