"""Avro types as Python classes, with the values that fastavro reads and writes.

In: the tree of an Avro schema. Out: classes as values. Does not know: texts, printing.
"""

from __future__ import annotations

from barnabas.schemas.avro.types import (
    ABSENT,
    Absent,
    Array,
    Enum,
    Fixed,
    Json,
    Map,
    Primitive,
    Record,
    Type,
    Union,
)
from barnabas.schemas.codegen.model import (
    Attribute,
    Class,
    EnumClass,
    Module,
    Names,
    PythonType,
    listed,
    mapped,
    member_name,
    optional,
)

PLAIN = {
    "null": "None",
    "boolean": "bool",
    "int": "int",
    "long": "int",
    "float": "float",
    "double": "float",
    "bytes": "bytes",
    "string": "str",
}
DATETIME = frozenset({"import datetime"})
LOGICAL = {
    ("int", "date"): PythonType("datetime.date", imports=DATETIME),
    ("int", "time-millis"): PythonType("datetime.time", imports=DATETIME),
    ("long", "time-micros"): PythonType("datetime.time", imports=DATETIME),
    **{
        ("long", f"{local}timestamp-{unit}"): PythonType("datetime.datetime", imports=DATETIME)
        for local in ("", "local-")
        for unit in ("millis", "micros")
    },
    **{
        (kind, "decimal"): PythonType("Decimal", imports=frozenset({"from decimal import Decimal"}))
        for kind in ("bytes", "fixed")
    },
    ("string", "uuid"): PythonType("uuid.UUID", imports=frozenset({"import uuid"})),
}
# Defaults of these types are no values of their Python types, so that they would need a conversion.
SIMPLE_DEFAULTS = {"null", "boolean", "int", "long", "float", "double", "string"}


class AvroClasses:
    """Makes a class for each record and enum, once."""

    def __init__(self) -> None:
        self.module = Module("Classes of an Avro schema.")
        self._names = Names()
        self._types: dict[int, PythonType] = {}  # of named types, by identity

    def add(self, root: Type) -> Module:
        self._type(root)
        return self.module

    def _type(self, node: Type) -> PythonType:
        match node:
            case Primitive() | Fixed():
                logical = (node.kind, str(node.attributes.get("logicalType", "")))
                return LOGICAL.get(logical) or PythonType(PLAIN.get(node.kind, "bytes"))
            case Array():
                return listed(self._type(node.items))
            case Map():
                return mapped(self._type(node.values))
            case Union():
                return self._union(node)
            case Enum():
                return self._types.get(id(node)) or self._enum(node)
            case Record():
                return self._types.get(id(node)) or self._record(node)

    def _enum(self, node: Enum) -> PythonType:
        name = self._names.unique(node.name.last)
        found = self._types[id(node)] = PythonType(name, f"{name}({{}})", "{}.value")
        members = [(member_name(symbol), repr(symbol)) for symbol in node.symbols]
        self.module.classes.append(EnumClass(name, members, node.doc))
        return found

    def _record(self, node: Record) -> PythonType:
        name = self._names.unique(node.name.last)
        found = self._types[id(node)] = PythonType(name, f"{name}.from_dict({{}})", "{}.to_dict()")
        made = Class(name, node.doc or f"The Avro record {node.name.full}.")
        self.module.classes.append(made)
        for field in node.fields:
            kind = self._type(field.type)
            made.add(Attribute(field.name, kind, self._default(field.type, kind, field.default), field.doc))
        return found

    def _union(self, node: Union) -> PythonType:
        """A union is read by the kind of the value; of several records, the first that fits is taken."""
        kinds = [self._type(branch) for branch in node.branches]
        others = [kind for branch, kind in zip(node.branches, kinds, strict=True) if branch.kind != "null"]
        if len(others) == 1:
            return optional(others[0]) if len(kinds) == 2 else others[0]
        annotation = " | ".join(dict.fromkeys(kind.annotation for kind in kinds)) or "None"
        imports = frozenset().union(*(kind.imports for kind in kinds)) if kinds else frozenset()
        if all(kind.load is None for kind in kinds):
            return PythonType(annotation, imports=imports)
        records = [self._type(one).annotation for one in node.branches if isinstance(one, Record)]
        load = "{}"
        for name in reversed(records):
            test = f"isinstance({{}}, dict) and {{}}.keys() <= set({name}.__slots__)"
            load = (
                f"({name}.from_dict({{}}) if {test} else {load})"
                if len(records) > 1
                else (f"({name}.from_dict({{}}) if isinstance({{}}, dict) else {load})")
            )
        enums = [self._type(one).annotation for one in node.branches if isinstance(one, Enum)]
        dump = "{}"
        for name in enums:
            dump = f"({{}}.value if isinstance({{}}, {name}) else {dump})"
        for name in records:
            dump = f"({{}}.to_dict() if isinstance({{}}, {name}) else {dump})"
        return PythonType(annotation, load if load != "{}" else None, dump, imports)

    def _default(self, node: Type, kind: PythonType, default: Json | Absent) -> str | None:
        """The default as a Python expression. Lists, dicts and records are made anew for each object."""
        if default is ABSENT or isinstance(default, Absent):
            return None
        if isinstance(node, Union):
            fitting = [branch for branch in node.branches if _fits(branch, default)]
            if not fitting:
                return None
            node = fitting[0]
            kind = self._type(node)
        match node:
            case Primitive() if node.kind in SIMPLE_DEFAULTS and not node.attributes.get("logicalType"):
                return repr(default)
            case Primitive("bytes") | Fixed() if not node.attributes.get("logicalType"):
                return repr(str(default).encode("latin-1", "replace"))
            case Enum():
                return f"{kind.annotation}.{member_name(str(default))}"
            case Array() | Map() if not default:
                return (
                    "_field(default_factory=list)"
                    if isinstance(node, Array)
                    else "_field(default_factory=dict)"
                )
            case Array() | Map() | Record():
                return f"_field(default_factory=lambda: {kind.loaded(repr(default))})"
            case _:
                return None  # a logical type: its default is a number, which Python's type does not take


def _fits(node: Type, value: Json) -> bool:
    from barnabas.schemas.avro.defaults import misfit

    return not misfit(node, value)
