"""The text of a Python module with dataclasses.

In: classes as values. Out: source that imports nothing but the standard library. Does not know: schemas.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.schemas.codegen.model import Attribute, Class, EnumClass, Module

WIDTH = 100


def printed(module: Module) -> str:
    lines = [_docstring(module.doc, ""), "", "from __future__ import annotations", ""]
    imports = module.imports | {"from dataclasses import dataclass", "from typing import Any"}
    for one in module.classes:
        if isinstance(one, EnumClass):
            imports.add(f"from enum import {one.base}")
        else:
            imports |= {text for attribute in one.attributes for text in attribute.type.imports}
    if any("_field(" in (attribute.default or "") for attribute in _attributes(module)):
        imports.add("from dataclasses import field as _field")
    plain = sorted(text for text in imports if text.startswith("import "))
    named = sorted(text for text in imports if text.startswith("from "))
    lines += [*plain, *named]
    # Defaults of classes name members of enums, so enums come first.
    for one in sorted(module.classes, key=lambda one: isinstance(one, Class)):
        lines += ["", "", *(_enum(one) if isinstance(one, EnumClass) else _class(one))]
    return "\n".join(lines) + "\n"


def _attributes(module: Module) -> Iterator[Attribute]:
    for one in module.classes:
        if isinstance(one, Class):
            yield from one.attributes


def _docstring(text: str, indent: str) -> str:
    safe = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if safe.endswith('"'):
        safe += " "
    return f'{indent}"""{safe}"""'


def _enum(one: EnumClass) -> Iterator[str]:
    yield f"class {one.name}({one.base}):"
    if one.doc:
        yield _docstring(one.doc, "    ")
        yield ""
    for name, value in one.members:
        yield f"    {name} = {value}"
    if not one.members:
        yield "    pass"


def _class(one: Class) -> Iterator[str]:
    yield "@dataclass(kw_only=True, slots=True)"
    yield f"class {one.name}:"
    if one.doc:
        yield _docstring(one.doc, "    ")
        yield ""
    for attribute in one.attributes:
        for line in (attribute.doc or "").strip().splitlines():
            yield f"    # {line.rstrip()}".rstrip()
        default = "" if attribute.default is None else f" = {attribute.default}"
        yield f"    {attribute.python_name}: {attribute.type.annotation}{default}"
    if one.attributes:
        yield ""
    yield "    def to_dict(self) -> dict[str, Any]:"
    yield from _to_dict(one)
    yield ""
    yield "    @classmethod"
    yield f"    def from_dict(cls, data: dict[str, Any]) -> {one.name}:"
    yield from _from_dict(one)


def _to_dict(one: Class) -> Iterator[str]:
    kept = [each for each in one.attributes if not each.is_left_out_if_none]
    yield "        found: dict[str, Any] = {"
    for each in kept:
        yield f"            {each.name!r}: {each.type.dumped(f'self.{each.python_name}')},"
    yield "        }"
    for each in one.attributes:
        if each.is_left_out_if_none:
            yield f"        if self.{each.python_name} is not None:"
            yield f"            found[{each.name!r}] = {each.type.dumped(f'self.{each.python_name}')}"
    yield "        return found"


def _from_dict(one: Class) -> Iterator[str]:
    """Attributes that the data lacks keep their defaults."""
    yield "        found: dict[str, Any] = {}"
    for each in one.attributes:
        value = f"data[{each.name!r}]"
        if each.default is not None:
            yield f"        if {each.name!r} in data:"
            yield f"            found[{each.python_name!r}] = {each.type.loaded(value)}"
        else:
            yield f"        found[{each.python_name!r}] = {each.type.loaded(value)}"
    yield "        return cls(**found)"
