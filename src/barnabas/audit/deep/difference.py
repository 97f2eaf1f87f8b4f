"""Differences between two topics, as values.

In: rows that Spark found. Out: differences with the coordinates of the record on both sides, and the result
of a whole comparison. Does not know: Spark, topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    MISSING = "missing"  # the source has it, the target does not
    EXTRA = "extra"  # the target has it, the source does not
    CHANGED = "changed"  # both have a record of this key at this place, with another content
    ORDER = "order"  # both have it, behind another record of the same key


@dataclass(frozen=True, slots=True)
class Place:
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


@dataclass(frozen=True, slots=True)
class Difference:
    kind: Kind
    key: bytes | None
    source: Place | None
    target: Place | None
    parts: tuple[str, ...] = ()  # of a record that changed: value, headers, timestamp

    def __str__(self) -> str:
        key = "no key" if self.key is None else f"key {self.key[:50]!r}"
        where = [
            f"{name} at {place}"
            for name, place in (("source", self.source), ("target", self.target))
            if place
        ]
        what = f" {' and '.join(self.parts)}" if self.parts else ""
        return f"{self.kind.value}{what}: {key}, {', '.join(where)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "key": None if self.key is None else self.key.decode("utf-8", "backslashreplace"),
            "source": None if self.source is None else str(self.source),
            "target": None if self.target is None else str(self.target),
            **({"parts": list(self.parts)} if self.parts else {}),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a comparison. `ranges_differing` of `ranges` of keys have other digests."""

    source_records: int
    target_records: int
    ranges: int
    ranges_differing: int
    differences: tuple[Difference, ...]
    counts: dict[str, int]  # all differences by kind, also those that are not listed

    @property
    def is_equal(self) -> bool:
        return not self.ranges_differing

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.is_equal,
            "source_records": self.source_records,
            "target_records": self.target_records,
            "ranges": self.ranges,
            "ranges_differing": self.ranges_differing,
            "counts": self.counts,
            "differences": [each.to_json() for each in self.differences],
        }
