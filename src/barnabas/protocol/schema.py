"""Schemas of messages: versions and fields.

In: the annotations and default values of a message class. Out: a `Schema` with one `Field` for each of them.
It is built on first use, so that importing a declaration is cheap.
Does not know: the encoding.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.protocol.types import ZERO_VALUES

if TYPE_CHECKING:
    from barnabas.protocol.message import Struct

UNBOUNDED = 1 << 15
"""Above every version: they are 16-bit numbers."""


class Versions:
    """A range of versions, written `4`, `0-4`, `3+` or `none`."""

    __slots__ = ("first", "last")

    def __init__(self, text: str) -> None:
        low, dash, high = text.partition("-")
        if text == "none":
            self.first, self.last = 0, -1
        elif low.endswith("+"):
            self.first, self.last = int(low[:-1]), UNBOUNDED
        else:
            self.first, self.last = int(low), int(high) if dash else int(low)

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Versions) and (self.first, self.last) == (other.first, other.last)

    def __hash__(self) -> int:
        return hash((self.first, self.last))

    def __repr__(self) -> str:
        if self.last < self.first:
            return "none"
        if self.last == UNBOUNDED:
            return f"{self.first}+"
        return f"{self.first}-{self.last}" if self.first != self.last else str(self.first)


ALL = Versions("0+")
NO_VERSIONS = Versions("none")


class Options:
    """The arguments of `since` and `tag` for a field, until its schema is built."""

    __slots__ = ("default", "flexible", "ignorable", "nullable", "tag", "versions")

    def __init__(
        self,
        versions: str,
        default: Any,
        nullable: str | None,
        ignorable: bool,
        tag: int | None,
        flexible: str,
    ) -> None:
        self.versions = versions
        self.default = default
        self.nullable = nullable
        self.ignorable = ignorable
        self.tag = tag
        self.flexible = flexible


ZERO: Any = object()
"""No default given: the zero of the field's type, an empty list, or a struct of defaults."""


def since(
    versions: str,
    default: Any = ZERO,
    *,
    nullable: str | None = None,
    ignorable: bool = False,
    flexible: str = "0+",
) -> Any:
    """Declare a field that exists only in some versions. `nullable` names the versions in which it may be
    null, if not all.

    Encoding a version without the field drops an `ignorable` field; otherwise it refuses a message that sets
    the field. `flexible` limits compact encodings to some of the message's flexible versions.
    """
    return Options(versions, default, nullable, ignorable, None, flexible)


def tag(
    number: int, versions: str, default: Any = ZERO, *, nullable: str | None = None, ignorable: bool = False
) -> Any:
    """Declare a tagged field. It is encoded only if it differs from its default."""
    return Options(versions, default, nullable, ignorable, number, "0+")


class Field:
    """One field: `type` names its type, or that of its elements if it is an array."""

    __slots__ = (
        "default",
        "flexible",
        "ignorable",
        "is_array",
        "name",
        "nullable",
        "struct",
        "tag",
        "type",
        "versions",
    )

    def __init__(self, owner: type[Struct], name: str, annotation: str, declared: Any) -> None:
        options = declared if isinstance(declared, Options) else None
        default = options.default if options else declared
        text = annotation.removesuffix(" | None")
        self.name = name
        self.is_array = text.startswith("list[")
        self.type = text[5:-1] if self.is_array else text
        self.struct = None if self.type in ZERO_VALUES else named_struct(owner, self.type)
        self.versions = Versions(options.versions) if options else ALL
        self.tag = options.tag if options else None
        self.ignorable = options.ignorable if options else False
        self.flexible = Versions(options.flexible) if options else ALL
        if options and options.nullable:
            self.nullable = Versions(options.nullable)
        else:
            self.nullable = self.versions if text != annotation else NO_VERSIONS
        if default is ZERO and not self.is_array and self.struct is None:
            default = ZERO_VALUES[self.type]
        elif default == [] and self.is_array:
            default = ZERO
        self.default = default

    @property
    def null_marker(self) -> int:
        """The marker of a null struct; the marker of a present struct is 1."""
        return -1 if self.tag is None else 0

    @property
    def has_fresh_default(self) -> bool:
        """Whether each message needs its own default, because it is a list or a struct."""
        return self.default is ZERO


def named_struct(owner: type[Struct], name: str) -> type[Struct]:
    """The class that an annotation in `owner` names: nested in it, or from its module."""
    first, *rest = name.split(".")
    found = owner.__dict__.get(first) or getattr(sys.modules[owner.__module__], first)
    for part in rest:
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


class Schema:
    """The schema of one message or nested struct."""

    __slots__ = ("_declared", "_fields", "cls", "codecs", "flexible", "key", "versions")

    def __init__(
        self,
        cls: type[Struct],
        declared: dict[str, tuple[str, Any]],
        key: int | None,
        versions: str,
        flexible: str,
    ) -> None:
        self.cls = cls
        self.key = key
        self.versions = Versions(versions)
        self.flexible = Versions(flexible)
        self.codecs: dict[int, Any] = {}
        self._declared = declared
        self._fields: tuple[Field, ...] | None = None

    @property
    def name(self) -> str:
        return self.cls.__name__

    @property
    def fields(self) -> tuple[Field, ...]:
        if self._fields is None:
            self._fields = tuple(
                Field(self.cls, name, annotation, value)
                for name, (annotation, value) in self._declared.items()
            )
        return self._fields

    @property
    def is_plain(self) -> bool:
        """Whether no field is a list, at any depth. Then a struct of defaults can be shared."""
        return not any(
            field.is_array or (field.struct is not None and not field.struct.schema.is_plain)
            for field in self.fields
        )
