"""Protobuf messages as Python classes, with values in Protobuf's JSON form.

In: a file's descriptor. Out: classes as values. `to_dict` gives what json_format.ParseDict takes,
`from_dict` takes what json_format.MessageToDict gives with names of fields preserved. Does not know: texts,
printing.
"""

from __future__ import annotations

from typing import Any

from barnabas.schemas.codegen.model import (
    Attribute,
    Class,
    EnumClass,
    Module,
    Names,
    PythonType,
    class_name,
    listed,
    mapped,
    member_name,
    optional,
)

INT64 = PythonType("int", "int({})")  # JSON has 64-bit numbers as texts
FLOAT = PythonType("float", "float({})")  # and NaN and Infinity
BASE64 = frozenset({"import base64"})
BYTES = PythonType("bytes", "base64.b64decode({})", "base64.b64encode({}).decode()", BASE64)
SCALARS = {
    1: (FLOAT, "0.0"),
    2: (FLOAT, "0.0"),
    3: (INT64, "0"),
    4: (INT64, "0"),
    5: (PythonType("int"), "0"),
    6: (INT64, "0"),
    7: (PythonType("int"), "0"),
    8: (PythonType("bool"), "False"),
    9: (PythonType("str"), "''"),
    12: (BYTES, "b''"),
    13: (PythonType("int"), "0"),
    15: (PythonType("int"), "0"),
    16: (INT64, "0"),
    17: (PythonType("int"), "0"),
    18: (INT64, "0"),
}
REPEATED, MESSAGE, GROUP, ENUM = 3, 11, 10, 14


class ProtobufClasses:
    """Classes of the messages and enums of one file. Messages of other files stay as dicts or texts."""

    def __init__(self, file: Any) -> None:
        self.module = Module(f"Classes of the Protobuf package {file.package or '(none)'}.")
        self._messages: dict[str, tuple[str, Any]] = {}  # full name: name of the class, descriptor
        self._enums: dict[str, tuple[str, int]] = {}  # name of the class, first number
        self._names = Names()
        prefix = f".{file.package}" if file.package else ""
        self._collect(file.message_type, file.enum_type, prefix, "")

    def _collect(self, messages: Any, enums: Any, prefix: str, outer: str) -> None:
        for enum in enums:
            name = self._names.unique(outer + class_name(enum.name))
            self._enums[f"{prefix}.{enum.name}"] = (name, enum.value[0].number)
            members = [(member_name(value.name), str(value.number)) for value in enum.value]
            self.module.classes.append(EnumClass(name, members, base="IntEnum"))
        for message in messages:
            name = self._names.unique(outer + class_name(message.name))
            self._messages[f"{prefix}.{message.name}"] = (name, message)
            self._collect(message.nested_type, message.enum_type, f"{prefix}.{message.name}", name)

    def add(self) -> Module:
        for name, message in self._messages.values():
            if not message.options.map_entry:
                self.module.classes.append(self._class(name, message))
        return self.module

    def _class(self, name: str, message: Any) -> Class:
        made = Class(name, f"The Protobuf message {message.name}.")
        for field in message.field:
            kind, default = self._field(field)
            has_presence = field.HasField("oneof_index") or field.type in (MESSAGE, GROUP)
            if field.label != REPEATED and has_presence:
                kind, default = optional(kind), "None"
            made.add(Attribute(field.name, kind, default, is_left_out_if_none=default == "None"))
        return made

    def _field(self, field: Any) -> tuple[PythonType, str]:
        entry = self._messages.get(field.type_name)
        if entry is not None and entry[1].options.map_entry:
            key, value = entry[1].field
            of_key = self._field(key)[0].annotation
            kind = mapped(self._field(value)[0], of_key if of_key != "bool" else "str")
            return kind, "_field(default_factory=dict)"
        kind, default = self._single(field)
        return (listed(kind), "_field(default_factory=list)") if field.label == REPEATED else (kind, default)

    def _single(self, field: Any) -> tuple[PythonType, str]:
        if field.type in (MESSAGE, GROUP):
            entry = self._messages.get(field.type_name)
            if entry is None:  # a message of another file, such as a Timestamp
                return PythonType("Any"), "None"
            return PythonType(entry[0], f"{entry[0]}.from_dict({{}})", "{}.to_dict()"), "None"
        if field.type == ENUM:
            known = self._enums.get(field.type_name)
            if known is None:
                return PythonType("Any"), "0"
            name, first = known
            load = f"({name}[{{}}] if isinstance({{}}, str) else {name}({{}}))"
            return PythonType(name, load, "int({})"), f"{name}({first})"
        return SCALARS[field.type]
