"""Mappings of records to columns: `id=key, name=value.name, at=now(), __ttl=header.ttl`.

In: the text of a mapping. Out: columns with the part of a record, or the function, that fills each. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Map
from dataclasses import dataclass
from typing import Any

from barnabas.connect.data import Record
from barnabas.connect.plugins import ConnectError

TTL, TIMESTAMP = "__ttl", "__timestamp"
NAME = r'"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_]*'
ENTRY = re.compile(rf"\s*(?P<column>{NAME})\s*=\s*(?P<source>{NAME}(?:\.(?:{NAME}|[^\s,.()]+))*(?:\(\))?)\s*")
PART = re.compile(rf"{NAME}|[^.]+")
EXAMPLE = "write column=value.field, column=key, column=header.name or column=now()"


@dataclass(frozen=True, slots=True)
class Source:
    """A part of a record: its key, value or a header, and names of fields below it."""

    root: str  # key, value, header, or a function such as now()
    path: tuple[str, ...] = ()

    @property
    def is_function(self) -> bool:
        return self.root.endswith("()")

    def of(self, record: Record) -> Any:
        """The value; None where something on the way is missing."""
        if self.root == "header":
            found = [each.value for each in record.headers if each.name == self.path[0]]
            value, rest = (found[-1] if found else None), self.path[1:]
        else:
            value, rest = (record.key if self.root == "key" else record.value), self.path
        for name in rest:
            if not isinstance(value, Map):
                return None
            value = value.get(name)
        return value


@dataclass(frozen=True, slots=True)
class Mapping:
    """Columns and their sources, in the order of the text."""

    columns: Map[str, Source]
    ttl: Source | None = None
    timestamp: Source | None = None

    @property
    def bound(self) -> list[str]:
        """Columns that are filled from the record, not by functions."""
        return [name for name, source in self.columns.items() if not source.is_function]


def parse_mapping(text: str, setting: str) -> Mapping:
    columns: dict[str, Source] = {}
    at = 0
    while True:
        found = ENTRY.match(text, at)
        if found is None:
            raise ConnectError(f"{setting}: cannot read {text[at : at + 40]!r}; {EXAMPLE}")
        name = unquoted(found["column"])
        if name in columns:
            raise ConnectError(f"{setting}: the column {name} is there twice")
        columns[name] = source_of(found["source"], setting)
        at = found.end()
        if at == len(text):
            break
        if text[at] != ",":
            raise ConnectError(f"{setting}: a comma is missing before {text[at : at + 40]!r}")
        at += 1
    ttl, timestamp = columns.pop(TTL, None), columns.pop(TIMESTAMP, None)
    if not columns:
        raise ConnectError(f"{setting} names no column; {EXAMPLE}")
    return Mapping(columns, ttl, timestamp)


def source_of(text: str, setting: str) -> Source:
    if text.endswith("()"):
        return Source(text.lower())
    root, *path = [unquoted(each, folds=False) for each in PART.findall(text)]
    if root not in ("key", "value", "header") or (root == "header" and not path):
        raise ConnectError(f"{setting}: {text!r} is no part of a record; {EXAMPLE}")
    return Source(root, tuple(path))


def unquoted(text: str, *, folds: bool = True) -> str:
    """A name as CQL reads it: without quotes in small letters."""
    if text.startswith('"'):
        return text[1:-1].replace('""', '"')
    return text.lower() if folds and text not in (TTL, TIMESTAMP) else text


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
