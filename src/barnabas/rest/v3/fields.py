"""Fields of JSON objects that callers send, checked one by one.

In: a value out of a JSON body. Out: typed fields, or ApiError that names the field: 422 for one that is
missing or unknown, 400 for a value of another type. Does not know: what fields mean.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from barnabas.rest.kafka_errors import refusal
from barnabas.services.errors import ApiError

ITEMS_MAX = 10_000
INT_MAX = 2**31 - 1


class Fields:
    """One object. `place` says where it is: `data[3]`."""

    __slots__ = ("_place", "_values")

    def __init__(self, value: object, known: Collection[str], place: str = "") -> None:
        if not isinstance(value, dict):
            raise wrong(place or "the body", "an object", value)
        for name in value:
            if name not in known:
                raise refusal(422, 422, f"Unrecognized field: {at(place, name)[:200]}")
        self._place = place
        self._values: dict[str, Any] = value

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        found = self.text_or_none(name)
        if found is None:
            raise self.missing(name)
        return found

    def text_or_none(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise wrong(at(self._place, name), "a string", value)

    def word(self, name: str, words: Collection[str]) -> str:
        return one_of(self.text(name), words, at(self._place, name))

    def integer(self, name: str) -> int:
        found = self.integer_or_none(name)
        if found is None:
            raise self.missing(name)
        return found

    def integer_or_none(self, name: str) -> int | None:
        value = self._values.get(name)
        return None if value is None else integer_of(value, at(self._place, name))

    def flag(self, name: str) -> bool:
        value = self._values.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise wrong(at(self._place, name), "a boolean", value)

    def items(self, name: str, *, required: bool = True) -> list[tuple[Any, str]]:
        """The items of an array, each with its place."""
        value = self._values.get(name)
        place = at(self._place, name)
        if value is None:
            if required:
                raise self.missing(name)
            return []
        if not isinstance(value, list):
            raise wrong(place, "an array", value)
        if len(value) > ITEMS_MAX:
            raise refusal(422, 42206, f"{place} has {len(value)} items: at most {ITEMS_MAX} are taken.")
        return [(each, f"{place}[{index}]") for index, each in enumerate(value)]

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise wrong(at(self._place, name), "an object", value)
        return value

    def missing(self, name: str) -> ApiError:
        return refusal(422, 42206, f"{at(self._place, name)} is required.")


def at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def integer_of(value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(place, "an integer", value)
    if not -INT_MAX - 1 <= value <= INT_MAX:
        raise refusal(400, 400, f"{place} does not fit into 32 bits.")
    return value


def one_of(text: str, words: Collection[str], place: str) -> str:
    if text not in words:
        raise refusal(400, 400, f"{place} is one of {', '.join(words)}, not {text[:100]!r}.")
    return text


def wrong(place: str, expected: str, value: object) -> ApiError:
    shown = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return refusal(400, 400, f"{place} is {expected}, not {shown.get(type(value), 'a number')}.")
