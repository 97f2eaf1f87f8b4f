"""The function of fastavro that reads payloads of a schema safely.

In: a schema with all its named types inside. Out: fastavro's reader. Payloads come from others, and two kinds
of schemas would let a small payload cost a lot. A recursive schema is read by fastavro's Python reader, which
stops at Python's recursion limit: the compiled one has none and would end the process. Arrays whose items
take no bytes are refused: a few bytes declare billions of them.
Does not know: references, prefixes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
RECORDS = frozenset({"record", "error"})

Reader = Callable[..., Any]


def payload_reader(schema: Any) -> Reader:
    """A reader with the arguments of `fastavro.schemaless_reader`."""
    import fastavro

    shape = _Shape()
    shape.walk(schema, "")
    if shape.has_endless_arrays:
        return refuse
    if shape.is_recursive:
        from fastavro._read_py import schemaless_reader

        careful: Reader = schemaless_reader
        return careful
    return fastavro.schemaless_reader


def refuse(*_: Any, **__: Any) -> Any:
    raise ValueError("items of an array take no bytes, so its length has no bound")


class _Shape:
    """Finds types that contain themselves, and arrays of items without bytes."""

    def __init__(self) -> None:
        self.is_recursive = False
        self.has_endless_arrays = False
        self._open: set[str] = set()  # records around the place of the walk
        self._is_empty: dict[str, bool] = {}  # by full name

    def walk(self, schema: Any, namespace: str) -> bool:
        """Whether values of this type take no bytes."""
        if isinstance(schema, list):
            for branch in schema:
                self.walk(branch, namespace)
            return False  # the number of the branch is there
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return schema == "null"
            name = schema if "." in schema or not namespace else f"{namespace}.{schema}"
            name = name if name in self._open or name in self._is_empty else schema
            self.is_recursive = self.is_recursive or name in self._open
            return self._is_empty.get(name, False)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.walk(kind, namespace)
        if kind == "array":
            if self.walk(schema["items"], namespace):
                self.has_endless_arrays = True
            return False
        if kind == "map":
            self.walk(schema["values"], namespace)
            return False
        if kind in RECORDS:
            return self._record(schema, namespace)
        if kind in ("enum", "fixed"):
            name, _ = full_name(schema, namespace)
            self._is_empty[name] = kind == "fixed" and schema["size"] == 0
            return self._is_empty[name]
        return self.walk(kind, namespace)

    def _record(self, schema: Any, namespace: str) -> bool:
        name, own = full_name(schema, namespace)
        self._open.add(name)
        empty = [self.walk(field["type"], own) for field in schema["fields"]]
        self._open.discard(name)
        self._is_empty[name] = all(empty)
        return self._is_empty[name]


def full_name(schema: Any, namespace: str) -> tuple[str, str]:
    """The full name of a named type, and the namespace inside of it."""
    name: str = schema["name"]
    if "." in name:
        return name, name.rpartition(".")[0]
    own = schema.get("namespace", namespace)
    return (f"{own}.{name}" if own else name), own
