"""Default values of proto2 fields, as descriptors hold them.

In: the option `default`, the type of its field. Out: the text of FieldDescriptorProto.default_value.
Does not know: other options.
"""

from __future__ import annotations

import struct

from google.protobuf.descriptor_pb2 import EnumDescriptorProto, FieldDescriptorProto

from barnabas.schemas.protobuf.names import Declared
from barnabas.schemas.protobuf.options import real, refuse, whole
from barnabas.schemas.protobuf.syntax import Number, Option, Text, Value, Word
from barnabas.schemas.protobuf.tokens import octal_escaped, unquoted

_BITS = {
    FieldDescriptorProto.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptorProto.TYPE_SINT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptorProto.TYPE_SFIXED32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptorProto.TYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptorProto.TYPE_FIXED32: (0, (1 << 32) - 1),
    FieldDescriptorProto.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptorProto.TYPE_SINT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptorProto.TYPE_SFIXED64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptorProto.TYPE_UINT64: (0, (1 << 64) - 1),
    FieldDescriptorProto.TYPE_FIXED64: (0, (1 << 64) - 1),
}
_REALS = (FieldDescriptorProto.TYPE_DOUBLE, FieldDescriptorProto.TYPE_FLOAT)


def default_text(option: Option, type_number: int, enum: Declared | None, *, strict: bool) -> str:
    """The default as a descriptor holds it; the value must fit the type.

    If not strict, strings may lack quotes: some registries store them so.
    """
    value = option.value
    try:
        if type_number == FieldDescriptorProto.TYPE_STRING:
            return _string(value, strict).decode("utf-8")
        if type_number == FieldDescriptorProto.TYPE_BYTES:
            return octal_escaped(_string(value, strict))
        if type_number == FieldDescriptorProto.TYPE_BOOL:
            if not isinstance(value, Word) or value.text not in ("true", "false"):
                raise ValueError("true or false is expected")
            return value.text
        if type_number == FieldDescriptorProto.TYPE_ENUM:
            names = [one.name for one in enum.value] if isinstance(enum, EnumDescriptorProto) else []
            # The values of an enum of this file may come later; the descriptor pool checks them.
            if not isinstance(value, Word) or (names and value.text not in names):
                raise ValueError("the name of a value of the enum is expected")
            return value.text
        if type_number in _REALS:
            return real_text(real(value), single=type_number == FieldDescriptorProto.TYPE_FLOAT)
        return _integer(value, *_BITS[type_number])
    except (ValueError, OverflowError) as problem:
        raise refuse(option.line, f"the default does not fit its field: {problem}") from None


def default_value(field: FieldDescriptorProto) -> Value:
    """The default that a descriptor holds, as a value to print."""
    text = field.default_value
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return Text(text.encode("utf-8", "surrogatepass"))
    if field.type == FieldDescriptorProto.TYPE_BYTES:
        return Text(unquoted(f'"{text}"'))
    if field.type in _BITS or field.type in _REALS:
        return Word(text) if text.lstrip("-") in ("inf", "nan") else Number(text)
    return Word(text)


def real_text(value: float, *, single: bool) -> str:
    """The shortest decimal that gives the same float, as protoc writes it."""
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    if single and abs(value) > 3.4028235677973366e38:
        return "inf" if value > 0 else "-inf"
    digits = (6, 7, 8, 9) if single else (15, 16, 17)
    for count in digits:
        text = f"{value:.{count}g}"
        if (_single(float(text)) == _single(value)) if single else (float(text) == value):
            return text
    return text


def _single(value: float) -> bytes:
    return struct.pack("<f", value)


def _string(value: Value, strict: bool) -> bytes:
    if not strict and isinstance(value, Word | Number):
        return value.text.encode()
    if not isinstance(value, Text):
        raise ValueError("a string is expected")
    return value.value


def _integer(value: Value, least: int, most: int) -> str:
    number = whole(value)
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
    return str(number)
