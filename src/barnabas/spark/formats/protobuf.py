"""Protocol buffers: messages by a descriptor that the query names.

In: `value.schema`, the path of a descriptor set (`protoc --descriptor_set_out --include_imports`), and
`value.message`, the message's full name. Out: values, and back, by the package protobuf. Types become those
of Spark's own `from_protobuf`: messages are structs, enums are strings, maps are maps.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.spark.formats.formats import Format

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

TIMESTAMP = "google.protobuf.Timestamp"


class ProtobufCodec:
    def __init__(self, declared: Format) -> None:
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        except ImportError:
            raise declared.wrong("format", "is protobuf, which needs the package protobuf") from None
        if not declared.schema or not declared.message:
            missing = "schema" if not declared.schema else "message"
            raise declared.wrong(missing, "is missing: give a descriptor set and the name of a message in it")
        files = descriptor_pb2.FileDescriptorSet()
        try:
            files.ParseFromString(descriptor_bytes(declared.schema))
            pool = descriptor_pool.DescriptorPool()
            for each in files.file:
                pool.Add(each)
        except Exception as error:
            raise declared.wrong("schema", f"is no descriptor set: {error}") from None
        try:
            self._descriptor: Descriptor = pool.FindMessageTypeByName(declared.message)
        except KeyError:
            raise declared.wrong("message", f"is {declared.message!r}, which the descriptors lack") from None
        self._class = message_factory.GetMessageClass(self._descriptor)
        try:
            self.ddl = struct_of(self._descriptor, ())
        except ValueError as error:
            raise declared.wrong("message", f"has no column type: {error}") from None

    def decode(self, data: bytes) -> Any:
        message = self._class()
        message.ParseFromString(data)
        return value_of(message)

    def encode(self, value: Any) -> bytes:
        message = self._class()
        fill(message, value)
        data: bytes = message.SerializeToString(deterministic=True)
        return data


def descriptor_bytes(text: str) -> bytes:
    """A path, or the descriptor set itself in base64: paths need not exist on executors."""
    path = Path(text)
    if len(text) < 4096 and path.exists():
        return path.read_bytes()
    return base64.b64decode(text, validate=True)


def struct_of(descriptor: Descriptor, above: tuple[str, ...]) -> str:
    if descriptor.full_name in above:
        raise ValueError(f"{descriptor.full_name} contains itself")
    inside = (*above, descriptor.full_name)
    return f"struct<{', '.join(f'`{each.name}`: {type_of(each, inside)}' for each in descriptor.fields)}>"


def type_of(field: FieldDescriptor, above: tuple[str, ...]) -> str:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return f"map<{one_type(key, above)}, {one_type(value, above)}>"
    return f"array<{one_type(field, above)}>" if field.is_repeated else one_type(field, above)


def one_type(field: FieldDescriptor, above: tuple[str, ...]) -> str:
    kind = field.cpp_type
    if kind == field.CPPTYPE_MESSAGE:
        return (
            "timestamp" if field.message_type.full_name == TIMESTAMP else struct_of(field.message_type, above)
        )
    if kind == field.CPPTYPE_STRING:
        return "binary" if field.type == field.TYPE_BYTES else "string"
    return {
        field.CPPTYPE_INT32: "int",
        field.CPPTYPE_INT64: "bigint",
        field.CPPTYPE_UINT32: "bigint",
        field.CPPTYPE_UINT64: "decimal(20,0)",
        field.CPPTYPE_DOUBLE: "double",
        field.CPPTYPE_FLOAT: "float",
        field.CPPTYPE_BOOL: "boolean",
        field.CPPTYPE_ENUM: "string",
    }[kind]


def is_map(field: FieldDescriptor) -> bool:
    message = field.message_type
    return message is not None and message.GetOptions().map_entry


def value_of(message: Any) -> Any:
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if is_map(field):
            value_field = field.message_type.fields_by_name["value"]
            items = getattr(message, field.name).items()
            found[field.name] = [(key, one_value(each, value_field)) for key, each in items]
        elif field.is_repeated:
            found[field.name] = [one_value(each, field) for each in getattr(message, field.name)]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = one_value(getattr(message, field.name), field)
    return found


def one_value(value: Any, field: FieldDescriptor) -> Any:
    if field.cpp_type == field.CPPTYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        if field.message_type.full_name == TIMESTAMP:
            import datetime

            return value.ToDatetime(tzinfo=datetime.UTC)
        return value_of(value)
    return value


def fill(message: Any, value: Any) -> None:
    for field in message.DESCRIPTOR.fields:
        given = value.get(field.name)
        if given is None:
            continue
        if is_map(field):
            target = getattr(message, field.name)
            value_field = field.message_type.fields_by_name["value"]
            for key, each in given.items() if isinstance(given, dict) else given:
                if value_field.cpp_type == field.CPPTYPE_MESSAGE:
                    put(target[key], each)
                else:
                    target[key] = plain(each, value_field)
        elif field.is_repeated:
            target = getattr(message, field.name)
            for each in given:
                if field.cpp_type == field.CPPTYPE_MESSAGE:
                    put(target.add(), each)
                else:
                    target.append(plain(each, field))
        elif field.cpp_type == field.CPPTYPE_MESSAGE:
            put(getattr(message, field.name), given)
        else:
            setattr(message, field.name, plain(given, field))


def put(message: Any, value: Any) -> None:
    if message.DESCRIPTOR.full_name == TIMESTAMP:
        message.FromDatetime(value)
    else:
        message.SetInParent()
        fill(message, value)


def plain(value: Any, field: FieldDescriptor) -> Any:
    if field.cpp_type == field.CPPTYPE_ENUM:
        known = field.enum_type.values_by_name.get(value)
        if known is None:
            raise ValueError(f"{field.enum_type.full_name} has no {value!r}")
        return known.number
    return int(value) if field.cpp_type == field.CPPTYPE_UINT64 else value
