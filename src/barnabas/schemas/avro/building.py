"""From JSON to Avro types: names resolved, attributes sorted into known and unknown ones, rules checked.

In: JSON values of one text, types that other texts defined. Out: the type, and the names that it defines, or
InvalidSchema with the place as a JSON pointer. Does not know: texts of references, printing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from barnabas.schemas.avro.defaults import misfit, number_of
from barnabas.schemas.avro.json_text import written
from barnabas.schemas.avro.types import (
    ABSENT,
    PRIMITIVES,
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
from barnabas.schemas.model import InvalidSchema

NESTING_MAX = 200  # types inside of types: each takes up to three levels of Python's stack
SHOWN_MAX = 200  # characters of a value in a message

RESERVED = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
RESERVED_IN_ENUMS = RESERVED | {"default"}
RESERVED_IN_FIELDS = frozenset({"default", "doc", "name", "order", "type", "aliases"})

STRICT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LOOSE_NAME = re.compile(r"[^\W\d]\w*")  # letters of any language: stored by registries that checked less
INT32_MAX = 2**31 - 1


def shown(value: Json) -> str:
    text = written(value)
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a named type in a text."""

    value: dict[str, Json]
    space: str | None  # the namespace around it
    place: str


def definitions(root: Json) -> dict[str, Definition]:
    """The first definition of each full name in a text."""
    found: dict[str, Definition] = {}
    waiting: list[tuple[Json, str | None, str]] = [(root, None, "")]
    while waiting:
        value, space, place = waiting.pop()
        if isinstance(value, list):
            waiting += [(one, space, f"{place}/{index}") for index, one in enumerate(value)]
        elif isinstance(value, dict):
            inner = space
            name, given = value.get("name"), value.get("namespace")
            if value.get("type") in ("record", "error", "enum", "fixed") and isinstance(name, str):
                named = _name_of(name, given if isinstance(given, str) else space)
                found.setdefault(named.full, Definition(value, space, place))
                inner = named.space
            for key in ("items", "values", "type", "fields"):
                waiting.append((value.get(key), inner, f"{place}/{key}"))
    return found


@dataclass(slots=True)
class Builder:
    """Builds the types of one text. `known` maps full names to types of the texts before it."""

    known: dict[str, Named]
    strict: bool
    own: dict[str, Named] = field(default_factory=dict)  # defined by this text
    _root: Json = None
    _later: dict[str, Definition] | None = None  # definitions of the whole text, sought on demand
    _built: dict[int, Named] = field(default_factory=dict)  # definitions that a name before them asked for

    def build_text(self, value: Json) -> Type:
        """The type of a whole text. A name may stand before its definition."""
        self._root = value
        return self.build(value)

    def build(self, value: Json, space: str | None = None, place: str = "", depth: int = 0) -> Type:
        if depth > NESTING_MAX:
            raise _wrong(place, f"types are nested more than {NESTING_MAX} levels deep")
        if isinstance(value, str):
            return self._by_name(value, space, place, depth)
        if isinstance(value, list):
            return self._union(value, space, place, depth)
        if not isinstance(value, dict):
            raise _wrong(place, f"{shown(value)} is no type: a type is a name, an object or a list")
        kind = value.get("type")
        if not isinstance(kind, str):
            raise _wrong(place, f"No type: {shown(value)}")
        if id(value) in self._built:
            return self._built[id(value)]
        match kind:
            case "record" | "error":
                return self._record(value, kind == "error", space, place, depth)
            case "enum":
                return self._enum(value, space, place)
            case "fixed":
                return self._fixed(value, space, place)
            case "array" | "map":
                word = "items" if kind == "array" else "values"
                if word not in value:
                    raise _wrong(place, f"{kind.capitalize()} has no {word} type: {shown(value)}")
                inner = self.build(value[word], space, f"{place}/{word}", depth + 1)
                attributes = unknown(value, RESERVED)
                return Array(inner, attributes) if kind == "array" else Map(inner, attributes)
            case _ if kind in PRIMITIVES:
                return Primitive(kind, unknown(value, RESERVED))
            case _:
                return self._by_name(kind, space, f"{place}/type", depth)

    def _by_name(self, text: str, space: str | None, place: str, depth: int) -> Type:
        if text in PRIMITIVES:
            return Primitive(text)
        names = (text,) if "." in text or not space else (f"{space}.{text}", text)
        for full in names:
            found = self.own.get(full) or self.known.get(full)
            if found is not None:
                return found
        if self._later is None:
            self._later = definitions(self._root)
        for full in names:
            if full in self._later:
                later = self._later[full]
                built = self.build(later.value, later.space, later.place, depth + 1)
                assert isinstance(built, Named)
                self._built[id(later.value)] = built
                return built
        raise _wrong(place, f'Undefined name: "{text}". Neither this schema nor a reference defines it')

    def _union(self, value: list[Json], space: str | None, place: str, depth: int) -> Union:
        branches = [self.build(one, space, f"{place}/{index}", depth + 1) for index, one in enumerate(value)]
        names: set[str] = set()
        for index, branch in enumerate(branches):
            if isinstance(branch, Union):
                raise _wrong(f"{place}/{index}", "a union holds a union")
            name = branch.name.full if isinstance(branch, Named) else branch.kind
            if name in names:
                raise _wrong(f"{place}/{index}", f"Duplicate in union: {name}")
            names.add(name)
        return Union(branches)

    def _record(
        self, value: dict[str, Json], is_error: bool, space: str | None, place: str, depth: int
    ) -> Record:
        record = Record(self._name(value, space, place), is_error, _text(value, "doc"))
        self._define(record, place)
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise _wrong(place, f"Record has no fields: {shown(value)}")
        names: set[str] = set()
        for index, one in enumerate(fields):
            built = self._field(one, record.name.space, f"{place}/fields/{index}", depth)
            if built.name in names:
                raise _wrong(f"{place}/fields/{index}", f"Duplicate field {built.name} in {record.name.full}")
            names.add(built.name)
            record.fields.append(built)
        record.attributes = unknown(value, RESERVED)
        record.aliases = self._type_aliases(value, record.name, place)
        return record

    def _field(self, value: Json, space: str | None, place: str, depth: int) -> Field:
        if not isinstance(value, dict) or not isinstance(name := value.get("name"), str):
            raise _wrong(place, f"No field name: {shown(value)}")
        self._check_name(name, place)
        if "type" not in value:
            raise _wrong(place, f"No field type: {shown(value)}")
        node = self.build(value["type"], space, f"{place}/type", depth + 1)
        default: Json | Absent = value.get("default", ABSENT)
        if isinstance(default, str) and isinstance(node, Primitive) and node.kind in {"float", "double"}:
            default = number_of(default, f"{place}/default")
        if self.strict and not isinstance(default, Absent) and misfit(node, default):
            raise _wrong(
                f"{place}/default", f"Invalid default for field {name}: {shown(default)} not a {_word(node)}"
            )
        order = value.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in set(Order):
            raise _wrong(f"{place}/order", f"{shown(order)} is none of {', '.join(Order)}")
        return Field(
            name,
            node,
            _text(value, "doc"),
            default,
            Order(order.lower()),
            _aliases(value, place),
            unknown(value, RESERVED_IN_FIELDS),
        )

    def _enum(self, value: dict[str, Json], space: str | None, place: str) -> Enum:
        name = self._name(value, space, place)
        symbols = value.get("symbols")
        if not isinstance(symbols, list):
            raise _wrong(place, f"Enum has no symbols: {shown(value)}")
        texts: list[str] = []
        seen: set[str] = set()
        for index, symbol in enumerate(symbols):
            if not isinstance(symbol, str):
                raise _wrong(f"{place}/symbols/{index}", f"the symbol {shown(symbol)} is no text")
            self._check_name(symbol, f"{place}/symbols/{index}")
            if symbol in seen:
                raise _wrong(f"{place}/symbols/{index}", f"Duplicate enum symbol: {symbol}")
            seen.add(symbol)
            texts.append(symbol)
        default = _text(value, "default")
        if default is not None and default not in seen:
            raise _wrong(f"{place}/default", f"The Enum Default: {default} is not in the enum symbol set")
        enum = Enum(name, texts, default, _text(value, "doc"))
        enum.attributes = unknown(value, RESERVED_IN_ENUMS)
        enum.aliases = self._type_aliases(value, name, place)
        self._define(enum, place)
        return enum

    def _fixed(self, value: dict[str, Json], space: str | None, place: str) -> Fixed:
        name = self._name(value, space, place)
        size = value.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= INT32_MAX:
            raise _wrong(place, f"Invalid or no size: {shown(value)}")
        fixed = Fixed(name, size, _text(value, "doc"))
        fixed.attributes = unknown(value, RESERVED)
        fixed.aliases = self._type_aliases(value, name, place)
        self._define(fixed, place)
        return fixed

    def _define(self, node: Named, place: str) -> None:
        full = node.name.full
        if full in PRIMITIVES:
            raise _wrong(place, f"Schemas may not be named after primitives: {full}")
        if full in self.own:
            raise _wrong(place, f"Can't redefine: {full}")
        self.own[full] = node

    def _name(self, value: dict[str, Json], space: str | None, place: str) -> Name:
        text = _text(value, "name")
        if text is None:
            raise _wrong(place, f"No name in schema: {shown(value)}")
        given = _text(value, "namespace")
        name = _name_of(text, space if given is None else given)
        self._check_name(name.last, place)
        for part in (name.space or "").split(".") if name.space else ():
            self._check_name(part, place)
        return name

    def _type_aliases(self, value: dict[str, Json], name: Name, place: str) -> list[Name]:
        return [_name_of(alias, name.space) for alias in _aliases(value, place)]

    def _check_name(self, name: str, place: str) -> None:
        if not (STRICT_NAME if self.strict else LOOSE_NAME).fullmatch(name):
            raise _wrong(
                place, f'Illegal name "{name}": a name is letters, digits and _, and starts with no digit'
            )


def _name_of(text: str, space: str | None) -> Name:
    """A name that may be written with its namespace."""
    if "." in text:
        space, _, text = text.rpartition(".")
    return Name(text, space or None)


def unknown(value: dict[str, Json], reserved: frozenset[str]) -> Attributes:
    return {key: one for key, one in value.items() if key not in reserved}


def _text(value: dict[str, Json], key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) else None


def _aliases(value: dict[str, Json], place: str) -> list[str]:
    aliases = value.get("aliases", [])
    if not isinstance(aliases, list):
        raise _wrong(f"{place}/aliases", f"aliases not an array: {shown(aliases)}")
    texts = [alias for alias in aliases if isinstance(alias, str)]
    if len(texts) != len(aliases):
        raise _wrong(f"{place}/aliases", f"alias not a string: {shown(aliases)}")
    return list(dict.fromkeys(texts))


def _word(node: Type) -> str:
    return node.name.full if isinstance(node, Named) else node.kind


def _wrong(place: str, text: str) -> InvalidSchema:
    return InvalidSchema(f"{text} (at {place or '/'})")
