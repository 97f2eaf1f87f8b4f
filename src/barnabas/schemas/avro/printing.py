"""Avro's text of a type: the order of attributes, namespaces and names of Avro's Java library.

In: a type, names that are known without their definition. Out: the text, without spaces.
Does not know: how the type was written before.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from barnabas.schemas.avro.json_text import quoted, written
from barnabas.schemas.avro.types import (
    Absent,
    Array,
    Attributes,
    Enum,
    Field,
    Fixed,
    Json,
    Map,
    Name,
    Named,
    Order,
    Primitive,
    Record,
    Type,
    Union,
)

DOUBLE_MAX = sys.float_info.max
LOGICAL_TYPES = {
    "bytes": {"decimal", "big-decimal"},
    "fixed": {"decimal", "duration", "uuid"},
    "string": {"uuid"},
    "int": {"date", "time-millis"},
    "long": {
        "time-micros",
        *(f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros", "nanos")),
    },
}


def printed(root: Type, known: Iterable[str] = (), *, normal: bool = False) -> str:
    """The text of a type. `normal` sorts what has no order: unknown attributes and aliases."""
    return _Printer(set(known), normal).text(root)


# A piece of the text, or a type that is still to be printed inside of a namespace.
Piece = str | tuple[Type, str | None]


@dataclass(slots=True)
class _Printer:
    seen: set[str]  # full names that are printed as names from here on
    normal: bool
    out: list[str] = field(default_factory=list)

    def text(self, root: Type) -> str:
        # A stack instead of recursion: references make the whole deeper than any single text may be.
        waiting: list[Iterator[Piece]] = [iter([(root, None)])]
        while waiting:
            piece = next(waiting[-1], None)
            if piece is None:
                waiting.pop()
            elif isinstance(piece, str):
                self.out.append(piece)
            else:
                waiting.append(self._pieces(*piece))
        return "".join(self.out)

    def _pieces(self, node: Type, space: str | None) -> Iterator[Piece]:
        match node:
            case Primitive():
                if node.attributes:
                    yield f'{{"type":"{node.kind}"'
                    yield self._attributes(node.attributes, node.kind)
                    yield "}"
                else:
                    yield f'"{node.kind}"'
            case Array() | Map():
                inner = node.items if isinstance(node, Array) else node.values
                yield '{"type":"array","items":' if isinstance(node, Array) else '{"type":"map","values":'
                yield inner, space
                yield self._attributes(node.attributes)
                yield "}"
            case Union():
                yield "["
                for index, branch in enumerate(node.branches):
                    if index:
                        yield ","
                    yield branch, space
                yield "]"
            case _:
                yield from self._named(node, space)

    def _named(self, node: Named, space: str | None) -> Iterator[Piece]:
        if node.name.full in self.seen:
            yield quoted(node.name.seen_from(space))
            return
        self.seen.add(node.name.full)
        is_error = isinstance(node, Record) and node.is_error and not self.normal
        yield f'{{"type":"{"error" if is_error else node.kind}","name":{quoted(node.name.last)}'
        if node.name.space != space:
            yield f',"namespace":{quoted(node.name.space or "")}'
        if node.doc is not None and not (self.normal and not node.doc):
            yield f',"doc":{quoted(node.doc)}'
        match node:
            case Record():
                yield ',"fields":['
                for index, one in enumerate(node.fields):
                    yield f'{"," if index else ""}{{"name":{quoted(one.name)},"type":'
                    yield one.type, node.name.space
                    yield self._rest_of(one)
                yield "]"
            case Enum():
                yield f',"symbols":{written(list(node.symbols))}'
                if node.default is not None:
                    yield f',"default":{quoted(node.default)}'
            case Fixed():
                yield f',"size":{node.size}'
        yield self._attributes(node.attributes, node.kind)
        if node.aliases:
            yield f',"aliases":{self._aliases(node)}'
        yield "}"

    def _aliases(self, node: Named) -> str:
        aliases: Iterable[Name] = node.aliases
        if self.normal:
            aliases = sorted(aliases, key=lambda alias: alias.full)
        return written([alias.seen_from(node.name.space) for alias in aliases])

    def _rest_of(self, one: Field) -> str:
        text = ""
        if one.doc is not None:
            text += f',"doc":{quoted(one.doc)}'
        if not isinstance(one.default, Absent):
            text += f',"default":{written(self._default(one.type, one.default))}'
        if one.order is not Order.ASCENDING:
            text += f',"order":"{one.order}"'
        if one.aliases:
            text += f',"aliases":{written(list(sorted(one.aliases) if self.normal else one.aliases))}'
        return text + self._attributes(one.attributes) + "}"

    def _default(self, node: Type, value: Json) -> Json:
        return normal_default(node, value) if self.normal else value

    def _attributes(self, attributes: Attributes, kind: str = "") -> str:
        if not attributes:
            return ""
        if self.normal:
            attributes = normal_attributes(attributes, kind)
        return "," + written(attributes)[1:-1]


def normal_attributes(attributes: Attributes, kind: str) -> Attributes:
    """Attributes by name, those of a logical type that Avro knows first."""
    first: list[str] = []
    logical = attributes.get("logicalType")
    if isinstance(logical, str) and logical in LOGICAL_TYPES.get(kind, ()):
        first = ["logicalType"]
        if logical == "decimal":
            first += [name for name in ("precision", "scale") if attributes.get(name)]
    names = first + sorted(attributes.keys() - set(first))
    return {name: sorted_keys(attributes[name]) for name in names if name in attributes}


def sorted_keys(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sorted_keys(one) for one in value]
    return value


def normal_default(node: Type, value: Json) -> Json:
    """A default with numbers as their type has them (0 of a double is 0.0), and keys sorted."""
    if isinstance(node, Union):
        node = node.branches[0] if node.branches else node
    if isinstance(node, Primitive) and isinstance(value, int | float) and not isinstance(value, bool):
        if node.kind in {"float", "double"} and abs(value) <= DOUBLE_MAX:
            return nearest_float(float(value)) if node.kind == "float" else float(value)
        return value
    if isinstance(node, Array) and isinstance(value, list):
        return [normal_default(node.items, one) for one in value]
    if isinstance(node, Map) and isinstance(value, dict):
        return {key: normal_default(node.values, value[key]) for key in sorted(value)}
    if isinstance(node, Record) and isinstance(value, dict):
        types = {one.name: one.type for one in node.fields}
        return {
            key: normal_default(types[key], value[key]) if key in types else sorted_keys(value[key])
            for key in sorted(value)
        }
    return sorted_keys(value)


def nearest_float(number: float) -> float:
    """The double with the fewest digits that is the same 32-bit number."""
    try:
        packed = struct.pack(">f", number)
    except OverflowError:
        return number
    number = struct.unpack(">f", packed)[0]
    for digits in range(1, 10):
        candidate = float(f"{number:.{digits}g}")
        try:
            if struct.pack(">f", candidate) == packed:
                return candidate
        except OverflowError:  # rounded up past the largest one
            continue
    return number
