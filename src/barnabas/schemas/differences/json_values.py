"""Differences of two JSON Schemas in words.

In: two JSON values. Out: sentences, with places as JSON pointers. Does not know: compatibility, references.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

SHOWN_MAX = 120


def differences(old: Any, new: Any) -> Iterator[str]:
    """One sentence for each change, properties by their names."""
    waiting: list[tuple[Any, Any, tuple[str, ...]]] = [(old, new, ())]
    while waiting:
        before, after, place = waiting.pop()
        if isinstance(before, dict) and isinstance(after, dict):
            for key in [*after, *(key for key in before if key not in after)]:
                where = (*place, key)
                if key not in before:
                    yield f"{_what(where)} was added: {_shown(after[key])}"
                elif key not in after:
                    yield f"{_what(where)} was removed: {_shown(before[key])}"
                elif before[key] != after[key]:
                    waiting.append((before[key], after[key], where))
        elif (
            place
            and place[-1] in {"required", "enum"}
            and isinstance(before, list)
            and isinstance(after, list)
        ):
            yield from _entries(before, after, place)
        elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            waiting += [
                (one, other, (*place, str(index)))
                for index, (one, other) in enumerate(zip(before, after, strict=True))
                if one != other
            ]
        elif before != after:
            yield f"{_what(place)} {_shown(before)} became {_shown(after)}"


def _entries(old: list[Any], new: list[Any], place: tuple[str, ...]) -> Iterator[str]:
    owner = _pointer(place[:-1])
    words = {
        "required": ("is now required", "is not required any more"),
        "enum": ("is now allowed", "is not allowed any more"),
    }
    added, removed = words[place[-1]]
    for one in new:
        if one not in old:
            yield f"{owner}: {_shown(one)} {added}"
    for one in old:
        if one not in new:
            yield f"{owner}: {_shown(one)} {removed}"


def _what(place: tuple[str, ...]) -> str:
    if len(place) >= 2 and place[-2] == "properties":
        return f"property {place[-1]} of {_pointer(place[:-2])}"
    return f"{place[-1]} of {_pointer(place[:-1])}" if place else "the schema"


def _pointer(place: tuple[str, ...]) -> str:
    return "#" + "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in place)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."
