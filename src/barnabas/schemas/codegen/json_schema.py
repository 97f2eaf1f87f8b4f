"""JSON Schemas as Python classes: objects with properties become dataclasses.

In: a JSON Schema and those that it refers to. Out: classes as values. Does not know: printing. What has no
class of its own is Any.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from barnabas.schemas.codegen.model import (
    Attribute,
    Class,
    Module,
    Names,
    PythonType,
    listed,
    mapped,
    optional,
)
from barnabas.schemas.model import ResolvedReference

PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}
ANY = PythonType("Any")
LITERAL = frozenset({"from typing import Literal"})
DEPTH_MAX = 100


class JsonClasses:
    def __init__(self, references: Sequence[ResolvedReference] = ()) -> None:
        self.module = Module("Classes of a JSON Schema.")
        self._names = Names()
        self._known = {one.reference.name: json.loads(one.text) for one in references}
        self._types: dict[int, PythonType] = {}  # of objects with properties, by identity

    def add(self, root: Any) -> Module:
        self._type(root, root, _title(root) or "Root", 0)
        return self.module

    def _type(self, node: Any, root: Any, name: str, depth: int) -> PythonType:
        if not isinstance(node, dict) or depth > DEPTH_MAX:
            return ANY
        if isinstance(node.get("$ref"), str):
            target, its_root, its_name = self._target(node["$ref"], root)
            return ANY if target is None else self._type(target, its_root, its_name, depth + 1)
        if isinstance(node.get("enum"), list):
            return _literal(node["enum"])
        if "const" in node:
            return _literal([node["const"]])
        for word in ("oneOf", "anyOf"):
            if isinstance(node.get(word), list):
                kinds = [
                    self._type(one, root, f"{name}{i + 1}", depth + 1) for i, one in enumerate(node[word])
                ]
                return _union(kinds)
        kind = node.get("type", "object" if "properties" in node else None)
        if isinstance(kind, list):
            return _union([self._plain({**node, "type": one}, one, root, name, depth) for one in kind])
        return self._plain(node, kind, root, name, depth)

    def _plain(self, node: dict[str, Any], kind: Any, root: Any, name: str, depth: int) -> PythonType:
        if kind == "object" and isinstance(node.get("properties"), dict) and node["properties"]:
            return self._types.get(id(node["properties"])) or self._class(node, root, name, depth)
        if kind == "object" and isinstance(node.get("additionalProperties"), dict):
            return mapped(self._type(node["additionalProperties"], root, f"{name}Value", depth + 1))
        if kind == "array" and isinstance(node.get("items"), dict):
            return listed(self._type(node["items"], root, f"{name}Item", depth + 1))
        return PythonType(PLAIN[kind]) if isinstance(kind, str) and kind in PLAIN else ANY

    def _class(self, node: dict[str, Any], root: Any, name: str, depth: int) -> PythonType:
        name = self._names.unique(_title(node) or name)
        properties = node["properties"]
        found = self._types[id(properties)] = PythonType(name, f"{name}.from_dict({{}})", "{}.to_dict()")
        made = Class(name, _text(node, "description"))
        self.module.classes.append(made)
        required = node.get("required") or ()
        for key, inner in properties.items():
            kind = self._type(inner, root, f"{name}_{key}", depth + 1)
            default = _default(inner)
            is_optional = key not in required
            if is_optional and default is None:
                kind, default = optional(kind), "None"
            elif is_optional:
                kind = optional(kind)
            made.add(
                Attribute(key, kind, default, _text(inner, "description"), is_left_out_if_none=is_optional)
            )
        return found

    def _target(self, reference: str, root: Any) -> tuple[Any, Any, str]:
        """The meaning of a `$ref`, the schema that it is in, and a name for it."""
        place, _, pointer = reference.partition("#")
        if place:
            root = self._known.get(place)
        node, name = root, _title(root) or place.rpartition("/")[2].removesuffix(".json") or "Root"
        for part in pointer.split("/")[1:]:
            part = unquote(part).replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or part not in node:
                return None, root, name
            node, name = node[part], part
        return node, root, name


def _title(node: Any) -> str | None:
    return _text(node, "title")


def _text(node: Any, key: str) -> str | None:
    found = node.get(key) if isinstance(node, dict) else None
    return found if isinstance(found, str) and found.strip() else None


def _default(node: Any) -> str | None:
    if not isinstance(node, dict) or "default" not in node:
        return None
    default = node["default"]
    if isinstance(default, list | dict):
        return None if default else f"_field(default_factory={type(default).__name__})"
    return repr(default)


def _literal(values: list[Any]) -> PythonType:
    if values and all(isinstance(one, str | int | bool) or one is None for one in values):
        return PythonType(f"Literal[{', '.join(map(repr, values))}]", imports=LITERAL)
    return ANY


def _union(kinds: list[PythonType]) -> PythonType:
    others = [kind for kind in kinds if kind.annotation != "None"]
    if len(others) == 1:
        return optional(others[0]) if len(others) < len(kinds) else others[0]
    if any(kind.annotation == "Any" for kind in kinds) or not kinds:
        return ANY
    imports = frozenset().union(*(kind.imports for kind in kinds))
    annotation = " | ".join(dict.fromkeys(kind.annotation for kind in kinds))
    if all(kind.load is None for kind in kinds):
        return PythonType(annotation, imports=imports)
    return PythonType("Any")  # which class a value is of would have to be guessed
