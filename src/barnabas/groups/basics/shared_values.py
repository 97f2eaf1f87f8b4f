"""Keeps one object for equal values, because thousands of members send the same values.

In: immutable values (names, subscriptions, timeouts). Out: an equal value, the same object for all. It is
bounded: when it holds too many values it starts anew, which only loses sharing.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

VALUES_MAX = 4096

Value = TypeVar("Value", bound=Hashable)


class SharedValues:
    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Hashable] = {}

    def get(self, value: Value) -> Value:
        known = self._known
        if len(known) >= VALUES_MAX and value not in known:
            known.clear()
        return known.setdefault(value, value)  # type: ignore[return-value]
