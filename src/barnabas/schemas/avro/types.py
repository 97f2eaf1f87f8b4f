"""Avro types as a tree: one class for each kind of type, names resolved to the types that they mean.

In: values that building made. Out: the tree that printing and comparing walk. A recursive record occurs
inside itself, so nodes compare by identity. Does not know: JSON, texts, references.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Attributes = dict[str, Json]  # those that Avro does not know: kept, printed, of no meaning

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
TYPE_WORDS = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


class Order(StrEnum):
    ASCENDING = "ascending"
    DESCENDING = "descending"
    IGNORE = "ignore"


class Absent:
    """Stands for a default that a field does not have; null is a default."""


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Name:
    """A name and its namespace; `space` is None for the null namespace."""

    last: str
    space: str | None

    @property
    def full(self) -> str:
        return f"{self.space}.{self.last}" if self.space else self.last

    def seen_from(self, space: str | None) -> str:
        """The shortest form that means this name inside of a namespace."""
        is_near = self.space == space if self.space else space is None
        # A type that is named like one of Avro's own words is only found by its full name.
        return self.last if is_near and not (self.space and self.last in TYPE_WORDS) else self.full


@dataclass(slots=True, eq=False)
class Primitive:
    kind: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Array:
    items: Type
    attributes: Attributes = field(default_factory=dict)
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    values: Type
    attributes: Attributes = field(default_factory=dict)
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    branches: list[Type]
    kind: str = "union"


@dataclass(slots=True, eq=False)
class Enum:
    name: Name
    symbols: list[str]
    default: str | None = None
    doc: str | None = None
    aliases: list[Name] = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)
    kind: str = "enum"


@dataclass(slots=True, eq=False)
class Fixed:
    name: Name
    size: int
    doc: str | None = None
    aliases: list[Name] = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)
    kind: str = "fixed"


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: Type
    doc: str | None = None
    default: Json | Absent = ABSENT
    order: Order = Order.ASCENDING
    aliases: list[str] = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Record:
    name: Name
    is_error: bool = False
    doc: str | None = None
    fields: list[Field] = field(default_factory=list)  # filled after the record is known by its name
    aliases: list[Name] = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)
    kind: str = "record"


Named = Record | Enum | Fixed
Type = Primitive | Array | Map | Union | Record | Enum | Fixed
