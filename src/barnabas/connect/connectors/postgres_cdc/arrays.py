"""Arrays in PostgreSQL's text form, such as `{a,NULL,"b c"}`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

PART = re.compile(r'"((?:[^"\\]|\\.)*)"|([{},])|([^{},"]+)')
BOUNDS = re.compile(r"^(\[-?\d+:-?\d+\])+=")


def list_of(text: str, read: Callable[[str], Any]) -> list[Any]:
    """The items of an array. Arrays of several dimensions have one list of items, row after row: their
    column has the same type as one of one dimension."""
    items: list[Any] = []
    for found in PART.finditer(BOUNDS.sub("", text)):
        quoted, sign, plain = found.groups()
        if sign is not None:
            continue
        if plain is not None:
            items.append(None if plain == "NULL" else read(plain))
        else:
            items.append(read(re.sub(r"\\(.)", r"\1", quoted)))
    return items
