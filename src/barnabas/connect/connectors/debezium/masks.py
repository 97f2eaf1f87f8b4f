"""Masks of columns: texts hidden, hashed or cut before they leave the connector. Pure.

`column.mask.with.N.chars`, `column.truncate.to.N.chars`, `column.mask.hash.ALGORITHM.with.salt.SALT` (also
`hash.v2`); each has a list of patterns of full column names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.connect.data import Schema, Type

Read = Callable[[Any], Any]
STARS = re.compile(r"column\.mask\.with\.(\d+)\.chars")
CUT = re.compile(r"column\.truncate\.to\.(\d+)\.chars")
HASH = re.compile(r"column\.mask\.hash\.(?:v2\.)?([^.]+)\.with\.salt\.(.+)")


@dataclass(frozen=True, slots=True)
class Mask:
    patterns: tuple[str, ...]
    apply: Callable[[str], str]

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
            found.append(Mask(patterns, cut(int(match[1]))))
        elif match := HASH.fullmatch(name):
            found.append(Mask(patterns, hashed(match[1], match[2])))
    return tuple(found)


def mask_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Hashes that Python does not have."""
    errors = {}
    for name in config:
        match = HASH.fullmatch(name)
        if match and algorithm(match[1]) not in hashlib.algorithms_available:
            errors[name] = [f"there is no hash {match[1]}: take SHA-256 or SHA-512"]
    return errors


def masked(column: str, schema: Schema, read: Read, masks: Sequence[Mask]) -> Read:
    """The reader of a column behind its masks. Only texts are masked."""
    chosen = [each.apply for each in masks if schema.type is Type.STRING and each.covers(column)]
    if not chosen:
        return read

    def hidden(value: Any) -> Any:
        text = read(value)
        for apply in chosen:
            text = None if text is None else apply(text)
        return text

    return hidden


def starred(count: int) -> Callable[[str], str]:
    return lambda text: "*" * count


def cut(count: int) -> Callable[[str], str]:
    return lambda text: text[:count]


def algorithm(name: str) -> str:
    return name.lower().replace("sha-", "sha").replace("sha_", "sha")


def hashed(name: str, salt: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(algorithm(name), salt.encode() + text.encode()).hexdigest()
