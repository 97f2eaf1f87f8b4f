"""The Avro schema of a dataclass or a pydantic model.

In: a class. Out: the text of a schema: the types are those from which `codegen` makes the same annotations.
`int` is a long, `float` a double. Does not know: registries, values.
"""

from __future__ import annotations

import datetime
import enum
import json
import re
import types
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from barnabas.schemas.deriving.classes import REQUIRED, UnknownType, is_described, members_of
from barnabas.schemas.deriving.values import plain

PLAIN: dict[Any, Any] = {
    type(None): "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    datetime.date: {"type": "int", "logicalType": "date"},
    datetime.time: {"type": "long", "logicalType": "time-micros"},
    datetime.datetime: {"type": "long", "logicalType": "timestamp-micros"},
    uuid.UUID: {"type": "string", "logicalType": "uuid"},
}
LISTS = (list, tuple, set, frozenset, Sequence, AbstractSet)
MAPS = (dict, Mapping)
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ABSENT: Final = object()
DECIMAL = "{}: a Decimal needs Annotated[Decimal, Field(max_digits=…, decimal_places=…)] of pydantic"


def avro_schema_of(kind: Any, namespace: str | None = None) -> str:
    """The schema as text. A field with a default gets it, so that readers know what a writer without the
    field means."""
    if not is_described(kind):
        raise UnknownType(f"{kind!r} is neither a dataclass nor a pydantic model")
    schema = _Deriving(namespace).type_of(kind, kind.__name__)
    return json.dumps(schema, separators=(",", ":"))


class _Deriving:
    """One schema in the making: a class and an enum are written out once, then named."""

    def __init__(self, namespace: str | None) -> None:
        self._namespace = namespace
        self._named: dict[str, type] = {}

    def type_of(self, kind: Any, place: str) -> Any:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(arguments, place)
        if kind is None:
            return "null"
        if isinstance(kind, type) and kind in PLAIN:
            return PLAIN[kind]
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return self._enum(kind, place)
        if origin in (Union, types.UnionType):
            return self._union(arguments, place)
        if origin is Literal:
            return self._literal(arguments, place)
        if origin in MAPS:
            return self._map(arguments, place)
        if origin in LISTS:
            return self._list(origin, arguments, place)
        if is_described(kind):
            return self._record(kind)
        if kind is Decimal:
            raise UnknownType(DECIMAL.format(place))
        raise UnknownType(f"{place}: {kind!r} has no Avro type; give the schema")

    def _annotated(self, arguments: Sequence[Any], place: str) -> Any:
        """Decimals need a precision: pydantic's `Field(max_digits=…, decimal_places=…)` has it."""
        kind, *notes = arguments
        if kind is not Decimal:
            return self.type_of(kind, place)
        found: dict[str, Any] = {}
        for note in notes:
            for each in (note, *getattr(note, "metadata", ())):
                for name in ("max_digits", "decimal_places"):
                    if getattr(each, name, None) is not None:
                        found[name] = getattr(each, name)
        if "max_digits" not in found:
            raise UnknownType(DECIMAL.format(place))
        scale = found.get("decimal_places", 0)
        return {"type": "bytes", "logicalType": "decimal", "precision": found["max_digits"], "scale": scale}

    def _record(self, kind: Any) -> Any:
        if self._is_named(kind):
            return kind.__name__
        record: dict[str, Any] = {"type": "record", "name": kind.__name__}
        if self._namespace is not None:
            record["namespace"], self._namespace = self._namespace, None  # types inside of it inherit it
        record["fields"] = []
        for member in members_of(kind):
            place = f"{kind.__name__}.{member.name}"
            field = {"name": member.name, "type": self.type_of(member.annotation, place)}
            default = ABSENT if member.default is REQUIRED else _as_json(member.default)
            if default is not ABSENT:
                field |= {"type": _beginning_with(field["type"], default), "default": default}
            record["fields"].append(field)
        return record

    def _is_named(self, kind: type) -> bool:
        """Whether a class was written out before; otherwise it is from now on."""
        is_known = kind.__name__ in self._named
        if self._named.setdefault(kind.__name__, kind) is not kind:
            raise UnknownType(f"two classes have the name {kind.__name__}; Avro needs a name for each")
        return is_known

    def _enum(self, kind: type[enum.Enum], place: str) -> Any:
        values = [member.value for member in kind]
        if not all(isinstance(value, str) and SYMBOL.fullmatch(value) for value in values):
            return self._literal(values, place)
        if self._is_named(kind):
            return kind.__name__
        return {"type": "enum", "name": kind.__name__, "symbols": values}

    def _literal(self, values: Sequence[Any], place: str) -> Any:
        kinds = {type(value) for value in values}
        if len(kinds) != 1:
            raise UnknownType(f"{place}: the values {list(values)} have no common Avro type; give the schema")
        return self.type_of(kinds.pop(), place)

    def _union(self, kinds: Sequence[Any], place: str) -> Any:
        branches: list[Any] = []
        for kind in kinds:
            branch = self.type_of(kind, place)
            if branch not in branches:
                branches.append(branch)
        return branches if len(branches) > 1 else branches[0]

    def _map(self, arguments: Sequence[Any], place: str) -> Any:
        if len(arguments) != 2 or arguments[0] is not str:
            raise UnknownType(f"{place}: keys of an Avro map are texts: annotate it as dict[str, …]")
        return {"type": "map", "values": self.type_of(arguments[1], place)}

    def _list(self, origin: Any, arguments: Sequence[Any], place: str) -> Any:
        if origin is tuple and (len(arguments) != 2 or arguments[1] is not Ellipsis):
            raise UnknownType(f"{place}: a tuple needs one type of items: tuple[…, ...]")
        return {"type": "array", "items": self.type_of(arguments[0], place)}


def _beginning_with(kind: Any, default: Any) -> Any:
    """A union begins with the type of its default; older readers look at the first type only."""
    if not isinstance(kind, list):
        return kind
    return sorted(kind, key=lambda branch: (branch == "null") is not (default is None))


def _as_json(value: Any) -> Any:
    """A default as JSON, or ABSENT: of dates and decimals a schema has numbers and bytes, which are left
    out."""
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, list | tuple | set | frozenset):
        items = [_as_json(each) for each in value]
        return ABSENT if ABSENT in items else items
    if is_described(type(value)):
        value = plain(value)
    if isinstance(value, dict):
        found = {key: _as_json(each) for key, each in value.items()}
        return ABSENT if ABSENT in found.values() else found
    return ABSENT
