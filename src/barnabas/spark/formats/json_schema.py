"""Columns of a JSON Schema.

In: the schema and the texts that it refers to. Out: a type in Spark's words. An object with properties is a
struct, an array with one schema of items an array, an object with `additionalProperties` alone a map. What
no column type can hold (a choice of types, a schema that contains itself) is a string that holds JSON.
Does not know: values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

ANY = "string"  # JSON as text
SCALARS = {"boolean": "boolean", "integer": "bigint", "number": "double", "string": "string"}
STRINGS = {"date": "date", "date-time": "timestamp"}
DEPTH_MAX = 30


def ddl_of_json_schema(text: str, references: Mapping[str, str]) -> str:
    root = json.loads(text)
    return _Columns(root, references).of(root, root, 0)


class _Columns:
    def __init__(self, root: Any, references: Mapping[str, str]) -> None:
        self._documents: dict[str, Any] = {"": root}
        if isinstance(root, dict):
            for name in ("$id", "id"):
                if isinstance(root.get(name), str):
                    self._documents[root[name].rstrip("#")] = root
        self._texts = references

    def of(self, schema: Any, root: Any, depth: int) -> str:
        if depth > DEPTH_MAX or not isinstance(schema, dict):
            return ANY
        if isinstance(schema.get("$ref"), str):
            target, inside = self._target(schema["$ref"], root)
            return self.of(target, inside, depth + 1)
        for word in ("oneOf", "anyOf"):
            if word in schema:
                branches = schema[word] if isinstance(schema[word], list) else []
                others = [each for each in branches if each != {"type": "null"}]
                return self.of(others[0], root, depth + 1) if len(others) == 1 else ANY
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = [each for each in kind if each != "null"]
            kind = kinds[0] if len(kinds) == 1 else None
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, root, depth)
        if kind == "array":
            items = schema.get("items")
            return f"array<{self.of(items, root, depth + 1) if isinstance(items, dict) else ANY}>"
        if kind == "string":
            return STRINGS.get(str(schema.get("format")), "string")
        return SCALARS.get(str(kind), ANY)

    def _object(self, schema: dict[str, Any], root: Any, depth: int) -> str:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            fields = (
                (name.replace("`", "``"), self.of(each, root, depth + 1)) for name, each in properties.items()
            )
            return f"struct<{', '.join(f'`{name}`: {kind}' for name, kind in fields)}>"
        values = schema.get("additionalProperties")
        if isinstance(values, dict) and values:
            return f"map<string, {self.of(values, root, depth + 1)}>"
        return ANY

    def _target(self, reference: str, root: Any) -> tuple[Any, Any]:
        """The schema that a reference means, and its document; nothing known is any JSON."""
        name, _, pointer = reference.partition("#")
        document = root
        if name:
            if name not in self._documents and name in self._texts:
                self._documents[name] = json.loads(self._texts[name])
            document = self._documents.get(name)
        found = document
        for part in pointer.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        return found, document
