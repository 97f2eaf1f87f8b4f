"""Projections of documents: fields that stay (an allow list) or go (a block list), by their paths.

`*` in a path is one name, `**` at its end everything below, and a name that ends with `*` a beginning. Paths
lead through the documents of lists. Does not know: ids, records.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

ONE, ALL = "*", "**"
Document = dict[str, Any]


@dataclass(frozen=True)
class Projection:
    """`kind` is none, allowlist or blocklist."""

    kind: str
    paths: tuple[str, ...] = ()

    def of(self, document: Document) -> Document:
        if self.kind == "allowlist":
            return document if ALL in self.paths else self._allowed(document, "")
        if self.kind == "blocklist":
            for path in self.paths:
                document = blocked(document, path)
        return document

    @cached_property
    def _kept(self) -> frozenset[str]:
        """The paths, and all that lead to them."""
        return frozenset(
            ".".join(parts[:count])
            for parts in (path.split(".") for path in self.paths)
            for count in range(1, len(parts) + 1)
        )

    def _allowed(self, document: Mapping[str, Any], before: str) -> Document:
        found: Document = {}
        for name, value in document.items():
            path = f"{before}.{name}" if before else name
            if not self._keeps(path):
                continue
            if f"{path}.{ALL}" in self._kept:
                found[name] = value
            else:
                found[name] = inside(value, partial(self._allowed, before=path))
        return found

    def _keeps(self, path: str) -> bool:
        beginnings = (
            each[:-1] for each in self._kept if each.endswith(ONE) and "." not in each and each != ONE
        )
        if path in self._kept or any(path.startswith(each) for each in beginnings):
            return True
        if not any(ONE in each for each in self._kept):
            return False
        forms = itertools.product(*((part, ONE) for part in path.split(".")))
        return any(".".join(form) in self._kept for form in forms)


def inside(value: Any, project: Callable[[Mapping[str, Any]], Document]) -> Any:
    """Project a document, and the documents of a list."""
    if isinstance(value, Mapping):
        return project(value)
    if isinstance(value, list):
        return [project(each) if isinstance(each, Mapping) else each for each in value]
    return value


def blocked(document: Mapping[str, Any], path: str) -> Document:
    """A document without what the path names."""
    first, point, rest = path.partition(".")
    if first == ALL:
        return {}
    if first == ONE:  # fields that are no documents go, others lose what the rest names
        inner = {name: value for name, value in document.items() if isinstance(value, Mapping)}
        return {name: blocked(value, rest) if rest else value for name, value in inner.items()}
    if not point:
        if first.endswith(ONE):
            return {name: value for name, value in document.items() if not name.startswith(first[:-1])}
        return {name: value for name, value in document.items() if name != first}
    return {
        name: inside(value, lambda inner: blocked(inner, rest)) if name == first else value
        for name, value in document.items()
    }
