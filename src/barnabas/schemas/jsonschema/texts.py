"""JSON texts as trees that keep every number as it was written, and back.

In: a text, or a tree. Out: the tree, or InvalidSchema with the path; the text without spaces.
Does not know: JSON Schema.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NoReturn, TypeAlias

from barnabas.schemas.model import InvalidSchema

TEXT_MAX = 2_000_000  # characters
VALUES_MAX = 100_000  # objects, lists and scalars of one text
DEPTH_MAX = 200  # levels of objects and lists
DIGITS_MAX = 1_000  # characters of one number

ESCAPED = re.compile(r'["\\\x00-\x1f]')
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
SURROGATE = re.compile("[\ud800-\udfff]")

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Integer(int):
    """An integer that knows how it was written, such as -0."""

    text: str

    def __new__(cls, text: str) -> Integer:
        number = super().__new__(cls, text)
        number.text = text
        return number


class Fraction(float):
    """A number with a point or an exponent. It knows how it was written: 1.0, 1e5, or more digits than a
    float has."""

    text: str

    def __new__(cls, text: str) -> Fraction:
        number = super().__new__(cls, text)
        number.text = text
        return number


def exact(number: float) -> Decimal:
    """The value of a number as it was written. Plain ints and floats are accepted too."""
    return Decimal(number.text if isinstance(number, Integer | Fraction) else str(number))


def read(text: str) -> Json:
    """The tree of a text that holds one JSON value."""
    if len(text) > TEXT_MAX:
        raise InvalidSchema(f"The schema has {len(text)} characters; at most {TEXT_MAX} are allowed")
    if SURROGATE.search(text):
        raise InvalidSchema("The schema holds half of a surrogate pair, which UTF-8 cannot hold")
    try:
        tree: Json = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise InvalidSchema(f"The schema is no JSON: {error.msg} ({where})") from None
    except RecursionError:
        raise _too_deep() from None
    _check(tree)
    return tree


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidSchema(f"The schema has an object with the key {twice[:100]!r} twice")
    return found


def _integer(text: str) -> Integer:
    return Integer(_short_enough(text))


def _fraction(text: str) -> Fraction:
    number = Fraction(_short_enough(text))
    if math.isinf(number):
        raise InvalidSchema(f"The number {text[:100]} is too large: no double can hold it")
    return number


def _short_enough(text: str) -> str:
    if len(text) > DIGITS_MAX:
        raise InvalidSchema(
            f"The schema has a number of {len(text)} digits; at most {DIGITS_MAX} are allowed"
        )
    return text


def _refuse_constant(word: str) -> NoReturn:
    raise InvalidSchema(f"{word} is no JSON number")


def _too_deep() -> InvalidSchema:
    return InvalidSchema(f"The schema is nested more than {DEPTH_MAX} levels deep")


def _check(tree: Json) -> None:
    """Refuse trees that recursive code could not walk, or that hold too much."""
    waiting: list[tuple[Json, int]] = [(tree, 0)]
    count = 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if count > VALUES_MAX:
            raise InvalidSchema(f"The schema holds more than {VALUES_MAX} values")
        if isinstance(value, dict | list):
            if depth >= DEPTH_MAX:
                raise _too_deep()
            waiting.extend((inner, depth + 1) for inner in _values(value))
        if isinstance(value, str) and SURROGATE.search(value):
            raise InvalidSchema(f"The text {value[:100]!r} holds half of a surrogate pair")


def _values(value: dict[str, Json] | list[Json]) -> Iterator[Json]:
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    else:
        yield from value


def written(tree: Json, *, in_order: bool = False) -> str:
    """The tree without spaces, numbers as they were written; keys as sent, or sorted as Java sorts them."""
    if isinstance(tree, str):
        return quoted(tree)
    if tree is None:
        return "null"
    if isinstance(tree, bool):
        return "true" if tree else "false"
    if isinstance(tree, int | float):
        return tree.text if isinstance(tree, Integer | Fraction) else json.dumps(tree)
    if isinstance(tree, list):
        return "[" + ",".join([written(item, in_order=in_order) for item in tree]) + "]"
    keys = sorted(tree, key=_utf_16) if in_order else tree
    return "{" + ",".join([f"{quoted(key)}:{written(tree[key], in_order=in_order)}" for key in keys]) + "}"


def _utf_16(key: str) -> bytes:
    """Java compares texts by UTF-16 units: characters beyond U+FFFF come before U+E000."""
    return key.encode("utf-16-be")


def quoted(text: str) -> str:
    return '"' + ESCAPED.sub(lambda found: SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def frozen(tree: Json) -> str:
    """A text that two trees share exactly if JSON Schema calls them equal: 1 is 1.0, order of keys is no
    matter."""
    if isinstance(tree, bool) or tree is None or isinstance(tree, str):
        return written(tree)
    if isinstance(tree, int | float):
        sign, digits, exponent = exact(tree).as_tuple()
        shortest = "".join(map(str, digits)).rstrip("0")
        return f"{'-' * sign}{shortest}e{int(exponent) + len(digits) - len(shortest)}" if shortest else "0"
    if isinstance(tree, list):
        return "[" + ",".join([frozen(item) for item in tree]) + "]"
    return "{" + ",".join(f"{quoted(key)}:{frozen(tree[key])}" for key in sorted(tree)) + "}"
