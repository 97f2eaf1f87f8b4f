"""Masks of columns: texts hidden, hashed or cut before they leave the connector. Pure.

`column.mask.with.N.chars`, `column.truncate.to.N.chars`, `column.mask.hash.ALGORITHM.with.salt.SALT` (also
`hash.v2`); each has a list of patterns of full column names. Keys are not masked: they say which row it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barnabas.connect.data import Schema, Type

Apply = Callable[[Any], Any]
STARS = re.compile(r"column\.mask\.with\.(\d+)\.chars")
CUT = re.compile(r"column\.truncate\.to\.(\d+)\.chars")
HASH = re.compile(r"column\.mask\.hash\.(v2\.)?([^.]+)\.with\.salt\.(.+)")
JAVA_TEXT, JAVA_LONG_TEXT = b"\xac\xed\x00\x05\x74", b"\xac\xed\x00\x05\x7c"
SHORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class Mask:
    """`parameter` is told in the schema of a column that the patterns cover, also if it holds no text."""

    patterns: tuple[str, ...]
    apply: Callable[[str | None], str | None]
    parameter: tuple[str, str] = ("masked", "true")
    is_hash: bool = False

    def covers(self, column: str) -> bool:
        return any(re.fullmatch(each, column, re.IGNORECASE) for each in self.patterns)


def masks_of(config: Mapping[str, str | None]) -> tuple[Mask, ...]:
    """The masks of a connector's settings."""
    found = []
    for name, value in sorted(config.items()):
        patterns = tuple(each.strip() for each in (value or "").split(",") if each.strip())
        if match := STARS.fullmatch(name):
            found.append(Mask(patterns, starred(int(match[1]))))
        elif match := CUT.fullmatch(name):
            found.append(Mask(patterns, cut(int(match[1])), ("truncateLength", match[1])))
        elif match := HASH.fullmatch(name):
            found.append(Mask(patterns, hashed(match[2], match[3], is_plain=bool(match[1])), is_hash=True))
    return tuple(found)


def mask_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Hashes that Python does not have."""
    errors = {}
    for name in config:
        match = HASH.fullmatch(name)
        if match and algorithm(match[2]) not in hashlib.algorithms_available:
            errors[name] = [f"there is no hash {match[2]}: take SHA-256 or SHA-512"]
    return errors


def masked(
    column: str, schema: Schema, masks: Sequence[Mask], length: int = 0
) -> tuple[Schema, Apply] | None:
    """The schema of a column behind its masks, and what is done with values; None if no mask covers it. Only
    texts are changed. `length`: the length of the column, which a hash keeps to."""
    chosen = [each for each in masks if each.covers(column)]
    if not chosen:
        return None
    parameters = {**schema.parameters, **dict(each.parameter for each in chosen)}
    told = replace(schema, parameters=parameters)
    if schema.type is not Type.STRING or schema.name is not None:
        return told, lambda value: value

    def hidden(value: Any) -> Any:
        for each in chosen:
            value = each.apply(value)
            if each.is_hash and length > 0 and value is not None:
                value = value[:length]
        return value

    return told, hidden


def starred(count: int) -> Callable[[str | None], str | None]:
    return lambda text: "*" * count  # also in place of null: that there is a value is hidden, too


def cut(count: int) -> Callable[[str | None], str | None]:
    return lambda text: None if text is None else text[:count]


def algorithm(name: str) -> str:
    return name.lower().replace("sha-", "sha").replace("sha_", "sha")


def hashed(name: str, salt: str, *, is_plain: bool) -> Callable[[str | None], str | None]:
    """The hash of the salt and a text: of its own bytes (v2), or as Java serializes it."""

    def apply(text: str | None) -> str | None:
        if text is None:
            return None
        data = text.encode() if is_plain else serialized(text)
        return hashlib.new(algorithm(name), salt.encode() + data).hexdigest()

    return apply


def serialized(text: str) -> bytes:
    """A text as Java's ObjectOutputStream writes it: units of 16 bits, each encoded by itself."""
    units = text.encode("utf-16-be", "surrogatepass")
    pairs = [int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2)]
    data = b"".join(
        b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in pairs
    )
    if len(data) <= SHORT_MAX:
        return JAVA_TEXT + len(data).to_bytes(2, "big") + data
    return JAVA_LONG_TEXT + len(data).to_bytes(8, "big") + data
