"""Source text of a generated function: lines, indentation, constants, and runs of fixed-width values.

Consecutive values of fixed size are collected in a run, together with the length of the next variable value,
and become a single `struct` call. Both code generators use this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.protocol.message import default_struct
from barnabas.protocol.schema import Field
from barnabas.protocol.types import FIXED_SIZES


class Source:
    """Collects a function body for one version of one message."""

    def __init__(self, version: int, flexible: bool, *, in_steps: bool = False) -> None:
        """`in_steps` makes the function a generator that yields after every element of an array. It yields a
        number where one step reads several elements."""
        self.in_steps = in_steps
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.run: list[tuple[str, str]] = []
        self._indent = "    "
        self._count = 0

    def emit(self, line: str) -> None:
        self.lines.append(self._indent + line)

    def end_of_element(self) -> None:
        if self.in_steps:
            self.emit("yield")

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.emit(header)
        self._indent += "    "
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.emit("pass")
        self._indent = self._indent[:-4]

    def variable(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, prefix: str, value: Any) -> str:
        """A name for an object that the generated code refers to."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.variable(prefix)
        self.names[name] = value
        return name

    def is_compact(self, field: Field) -> bool:
        """Whether lengths of this field are varints."""
        return self.flexible and self.version in field.flexible

    def is_nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def default(self, field: Field) -> str:
        """An expression for the default of a field; a new object if it is mutable."""
        if not field.has_fresh_default:
            if field.default is None or isinstance(field.default, (bool, int, float, str)):
                return repr(field.default)
            return self.constant("default", field.default)
        if field.is_array:
            return "[]"
        assert field.struct is not None
        if field.struct.schema.is_plain:
            return self.constant("default", default_struct(field.struct))
        return self.constant("struct", field.struct) + "()"

    def differs(self, field: Field, value: str) -> str:
        """A condition that is true if the field differs from its default."""
        if not field.has_fresh_default:
            return f"{value} is not None" if field.default is None else f"{value} != {self.default(field)}"
        if field.is_array:
            return f"({value} or {value} is None)"
        assert field.struct is not None
        default = self.default(field)
        if not field.struct.schema.is_plain:
            return f"{value} != {default}"
        parts = [self.differs(each, f"{value}.{each.name}") for each in field.struct.schema.fields]
        different = " or ".join([f"{value} is None", *parts, f"{value}.unknown_tagged_fields"])
        return f"({value} is not {default} and ({different}))"


def minimum_size(field: Field, version: int, flexible: bool, *, element: bool = False) -> int:
    """The minimum size of a value of the field, or of one of its elements, in bytes."""
    compact = flexible and version in field.flexible
    if field.is_array and not element:
        return 1 if compact else 4
    if field.struct is None:
        return FIXED_SIZES.get(field.type) or (1 if compact else 2 if field.type == "String" else 4)
    if not element and version in field.nullable:
        return 1
    return struct_minimum_size(field.struct.schema.fields, version, flexible)


def struct_minimum_size(fields: tuple[Field, ...], version: int, flexible: bool) -> int:
    present = (f for f in fields if version in f.versions and f.tag is None)
    return sum(minimum_size(field, version, flexible) for field in present) + flexible
