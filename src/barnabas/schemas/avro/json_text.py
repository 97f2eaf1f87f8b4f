"""JSON as Java's Jackson reads and prints it, for texts that must equal those of Avro's Java library.

In: a schema's text, or a JSON value. Out: the value, or InvalidSchema; the printed text.
Does not know: Avro.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import NoReturn

from barnabas.schemas.avro.types import Json
from barnabas.schemas.model import InvalidSchema

TEXT_MAX = 10_000_000  # characters
DEPTH_MAX = 600  # levels of objects and lists; a record takes three

# Avro's parser accepts comments. Strings are matched first, so that none is taken for a comment.
COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*(?s:.*?)\*/')
ESCAPED = re.compile(r'["\\\x00-\x1f]')
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
SURROGATE = re.compile(r"[\ud800-\udfff]")


def read(text: str) -> Json:
    """The value of a text that holds one JSON value and comments."""
    if len(text) > TEXT_MAX:
        raise InvalidSchema(f"the schema has {len(text)} characters; at most {TEXT_MAX} are allowed")
    try:
        value = _loads(text)
    except json.JSONDecodeError as error:
        if "/" not in text:
            raise _no_json(error) from None
        try:
            value = _loads(COMMENT.sub(_keep_strings, text))
        except json.JSONDecodeError as second:
            raise _no_json(second) from None
    _check(value)
    return value


def _loads(text: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise InvalidSchema(f"the schema is nested more than {DEPTH_MAX} levels deep") from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise InvalidSchema(f"the schema holds a number that is too long: {error}") from None
    return value


def _keep_strings(found: re.Match[str]) -> str:
    return found[1] or " "


def _refuse_constant(word: str) -> NoReturn:
    raise InvalidSchema(f"{word} is no JSON number")


def _no_json(error: json.JSONDecodeError) -> InvalidSchema:
    return InvalidSchema(f"the schema is no JSON: line {error.lineno} column {error.colno}: {error.msg}")


def _check(value: Json) -> None:
    """Refuse values that cannot be stored as UTF-8, or that recursive code could not walk."""
    waiting: list[tuple[Json, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, str):
            _check_characters(item)
        elif isinstance(item, dict | list):
            if depth > DEPTH_MAX:
                raise InvalidSchema(f"the schema is nested more than {DEPTH_MAX} levels deep")
            if isinstance(item, dict):
                for key in item:
                    _check_characters(key)
            inner = item.values() if isinstance(item, dict) else item
            waiting.extend((one, depth + 1) for one in inner)


def _check_characters(text: str) -> None:
    if SURROGATE.search(text):
        raise InvalidSchema(f"the text {text!r} holds half of a surrogate pair")


def written(value: Json) -> str:
    """The value without spaces, keys in their order, numbers and escapes as Java prints them."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return "{" + ",".join(f"{quoted(key)}:{written(one)}" for key, one in value.items()) + "}"


def quoted(text: str) -> str:
    return '"' + ESCAPED.sub(lambda found: SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def java_double(number: float) -> str:
    """A double as Java's Double.toString prints it; what is no number becomes a text, as Jackson does."""
    if math.isnan(number):
        return '"NaN"'
    if math.isinf(number):
        return '"Infinity"' if number > 0 else '"-Infinity"'
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    size = abs(number)
    if size == 0:
        return f"{sign}0.0"
    digits, exponent = _shortest(size)
    if 1e-3 <= size < 1e7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole, rest = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
        return f"{sign}{whole}.{rest or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(size: float) -> tuple[str, int]:
    """The fewest digits that mean this number, and the exponent of the first one."""
    _, digits, exponent = Decimal(repr(size)).normalize().as_tuple()
    assert isinstance(exponent, int)  # others stand for numbers that are not finite
    return "".join(map(str, digits)), exponent + len(digits) - 1
