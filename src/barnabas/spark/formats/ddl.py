"""Schemas in Spark's words, read without Spark: workers have no session that could read them.

In: `id INT, name STRING, tags ARRAY<STRING>, place STRUCT<x: DOUBLE, y: DOUBLE>`. Out: fields with types.
Does not know: Arrow; Spark itself reads the same text again to know the type of the column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([A-Za-z_][\w]*)|(\d+)|([<>(),:]))")
NAMES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "char": "string",
    "varchar": "string",
    "timestamp_ltz": "timestamp",
}
SIMPLE = {
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date",
    "timestamp", "timestamp_ntz", "decimal",
}  # fmt: skip
DEPTH_MAX = 32


class DdlError(ValueError):
    """The text is no schema; the message says where."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type; `inner` of arrays and maps, `fields` of structs."""

    name: str
    inner: tuple[Kind, ...] = ()
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind


def parse_columns(text: str) -> list[Field]:
    """The columns of a schema."""
    reader = Reader(text)
    fields = reader.fields(end="")
    if not fields:
        raise DdlError("it names no column")
    return fields


class Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._cut(text))
        self._at = 0

    def _cut(self, text: str) -> Iterator[str]:
        position = 0
        while text[position:].strip():
            match = TOKEN.match(text, position)
            if match is None:
                raise DdlError(f"{text[position:].strip()[:20]!r} is no part of a schema")
            yield match[0].strip()
            position = match.end()
        yield ""

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _pop_token(self, expected: str | None = None) -> str:
        token = self._next
        if expected is not None and token != expected:
            raise DdlError(f"{expected!r} is expected instead of {token or 'the end'!r}")
        self._at += 1
        return token

    def fields(self, end: str, depth: int = 0) -> list[Field]:
        found: list[Field] = []
        while self._next != end:
            if found:
                self._pop_token(",")
            name = self._pop_token()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            elif not name.isidentifier():
                raise DdlError(f"{name or 'the end'!r} stands where a column's name should")
            if self._next == ":":
                self._pop_token()
            kind = self.kind(depth + 1)
            self._skip_rest()
            if any(each.name == name for each in found):
                raise DdlError(f"the column {name} is there twice")
            found.append(Field(name, kind))
        return found

    def _skip_rest(self) -> None:
        if self._next.lower() == "not":
            self._pop_token()
            if self._pop_token().lower() != "null":
                raise DdlError("NOT must be followed by NULL")

    def kind(self, depth: int) -> Kind:
        if depth > DEPTH_MAX:
            raise DdlError(f"types are nested more than {DEPTH_MAX} deep")
        word = self._pop_token().lower()
        name = NAMES.get(word, word)
        if name in ("array", "map"):
            self._pop_token("<")
            inner = [self.kind(depth + 1)]
            if name == "map":
                self._pop_token(",")
                inner.append(self.kind(depth + 1))
            self._pop_token(">")
            return Kind(name, tuple(inner))
        if name == "struct":
            self._pop_token("<")
            fields = self.fields(">", depth + 1)
            self._pop_token(">")
            return Kind(name, fields=tuple(fields))
        if name not in SIMPLE:
            raise DdlError(f"there is no type {word or 'at the end'!r}")
        if self._next == "(":
            while self._pop_token() != ")":
                if not self._next:
                    raise DdlError("')' is missing")
        return Kind(name)
