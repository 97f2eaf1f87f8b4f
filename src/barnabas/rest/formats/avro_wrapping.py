"""Avro schemas prepared for reading and writing: same bytes, but every branch of a union can be told apart.

fastavro names the branch of a union only for named types. Where a union holds both int and long, or both
float and double, those branches become records of one field, which have the same bytes and a name.
Logical types are dropped, so that values stay numbers and bytes. Every name gets a namespace, which `shown`
drops.

In: a schema that fastavro parsed. Out: a schema for fastavro, its named types, whether it refers to itself.
ValueError: it holds arrays whose items take no bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import fastavro

WRAPPED = "__branch.b"
NO_NAMESPACE = "__none."  # a namespace for names without one, or they would take that of the type around them
ALIKE = ({"int", "long"}, {"float", "double"})
NESTING_MAX = 200
PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "string", "bytes"})
KEPT = ("type", "name", "size", "symbols", "default")


@dataclass(frozen=True, slots=True)
class Prepared:
    schema: Any
    named: dict[str, Any]
    is_recursive: bool


def prepared(schema: Any, named: dict[str, Any]) -> Prepared:
    walk = _Walk(named)
    rewritten = walk.of(schema, 0)
    kinds: dict[str, Any] = {}
    parsed = fastavro.parse_schema(rewritten, named_schemas=kinds)
    return Prepared(parsed, kinds, walk.is_recursive)


def primitive(schema: Any) -> str:
    """The kind of a type; empty for the name of a named type."""
    while isinstance(schema, dict):
        schema = schema["type"]
    return schema if isinstance(schema, str) and (schema in PRIMITIVES or schema in PYTHON_KINDS) else ""


PYTHON_KINDS = frozenset({"array", "map"})


def full(name: str) -> str:
    return name if "." in name else NO_NAMESPACE + name


def shown(name: str) -> str:
    """The name as the schema's author wrote it."""
    return name.removeprefix(NO_NAMESPACE)


class _Walk:
    """Copies a schema with references inlined where they are first used."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        self._open: list[str] = []  # the named types around the place of the walk
        self._done: set[str] = set()
        self._wrapped = 0
        self.is_recursive = False

    def of(self, schema: Any, depth: int) -> Any:
        if depth > NESTING_MAX:
            raise ValueError("the schema is nested too deeply")
        if isinstance(schema, list):
            return self._union(schema, depth)
        if isinstance(schema, str):
            return schema if schema in PRIMITIVES else self._name(schema, depth)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.of(kind, depth + 1)
        if kind == "array":
            if self._may_be_empty(schema["items"], set()):
                raise ValueError("items of an array take no bytes, so its length has no bound")
            return {"type": "array", "items": self.of(schema["items"], depth + 1)}
        if kind == "map":
            return {"type": "map", "values": self.of(schema["values"], depth + 1)}
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(schema, depth)
        return kind if kind in PRIMITIVES else self._name(kind, depth)

    def _name(self, name: str, depth: int) -> Any:
        if name in self._open:
            self.is_recursive = True
            return full(name)
        return full(name) if name in self._done else self._definition(self._named[name], depth)

    def _definition(self, schema: Any, depth: int) -> Any:
        name = schema["name"]
        self._done.add(name)
        copy = {key: schema[key] for key in KEPT if key in schema}
        copy["name"] = full(name)
        if schema["type"] in ("record", "error"):
            self._open.append(name)
            copy["fields"] = [
                {"name": field["name"], "type": self.of(field["type"], depth + 1)}
                for field in schema["fields"]
            ]
            self._open.pop()
        return copy

    def _union(self, branches: list[Any], depth: int) -> list[Any]:
        kinds = {primitive(branch) for branch in branches}
        alike = set().union(*(pair for pair in ALIKE if pair <= kinds))
        copies = []
        for branch in branches:
            copy = self.of(branch, depth + 1)
            if primitive(branch) in alike:
                self._wrapped += 1
                fields = [{"name": "v", "type": copy}]
                copy = {"type": "record", "name": f"{WRAPPED}{self._wrapped}", "fields": fields}
            copies.append(copy)
        return copies

    def _may_be_empty(self, schema: Any, seen: set[str]) -> bool:
        """Whether a value can take no bytes."""
        if isinstance(schema, list):
            return False  # the index of the branch is there
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return schema == "null"
            if schema in seen:
                return False  # a record that holds itself without end has no value at all
            return self._may_be_empty(self._named[schema], seen | {schema})
        kind = schema["type"]
        if kind in ("record", "error"):
            inner = seen | {schema["name"]}
            return all(self._may_be_empty(field["type"], inner) for field in schema["fields"])
        if kind == "fixed":
            return bool(schema["size"] == 0)
        if kind in ("array", "map", "enum"):
            return False
        return self._may_be_empty(kind, seen)
