"""Values of options set on descriptors.

In: syntax.Option values, and descriptors or options messages. Out: the options set; those that only an
extension explains are given back. InvalidSchema names the line of a value that does not fit.
Does not know: where extensions are declared; extending.py knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from barnabas.schemas.model import InvalidSchema
from barnabas.schemas.protobuf.option_reading import whole_number
from barnabas.schemas.protobuf.syntax import Braces, Many, NamePart, Number, Option, Text, Value, Word

# Finds the field that a key or an option's name means; none if nobody declares it.
Find = Callable[[Message, NamePart], FieldDescriptor | None]


class Pending(NamedTuple):
    """Options of one descriptor that need the declaration of an extension."""

    owner: Any  # a descriptor with a field `options`
    options: list[Option]
    scope: str


def refuse(line: int, problem: str) -> InvalidSchema:
    return InvalidSchema(f"line {line}: {problem}" if line else problem)


def set_options(owner: Any, options: Iterable[Option], scope: str, *, strict: bool) -> list[Pending]:
    """Sets the options that Protobuf itself declares; gives back the others.

    Strict: a value that does not fit is refused. Else it is given back too.
    """
    others: list[Option] = []
    for option in options:
        if all(not part.is_extension for part in option.name) and plain_field(owner.options, option.name[0]):
            try:
                set_option(owner.options, option, plain_field)
            except InvalidSchema:
                if strict:
                    raise
                others.append(option)
        else:
            others.append(option)
    return [Pending(owner, others, scope)] if others else []


def plain_field(message: Message, part: NamePart) -> FieldDescriptor | None:
    """The field of this name, if it is not an extension's."""
    field: FieldDescriptor | None = None
    if not part.is_extension:
        field = message.DESCRIPTOR.fields_by_name.get(part.text)
    return field


def set_option(message: Message, option: Option, find: Find) -> None:
    """Sets one option, whose name may lead into fields of fields."""
    for part in option.name[:-1]:
        field = find(message, part)
        if field is None or field.message_type is None or field.is_repeated:
            raise refuse(option.line, f"option {part.text!r} has no field of its own to set")
        message = child(message, field)
    field = find(message, option.name[-1])
    if field is None:
        raise refuse(option.line, f"option {option.name[-1].text!r} is unknown")
    try:
        _set(message, field, option.value, find)
    except (ValueError, TypeError, OverflowError) as problem:
        raise refuse(option.line, f"option {option.name[-1].text!r}: {problem}") from None


def child(message: Message, field: FieldDescriptor) -> Any:
    """The value of a field, extensions too: a message or a list that can be changed."""
    return message.Extensions[field] if field.is_extension else getattr(message, field.name)


def _set(message: Message, field: FieldDescriptor, value: Value, find: Find) -> None:
    if isinstance(value, Many):
        if not field.is_repeated:
            raise ValueError("a list is given for one value")
        for one in value.values:
            _set(message, field, one, find)
    elif field.message_type is not None:
        if not isinstance(value, Braces):
            raise ValueError("a message in braces is expected")
        inner = child(message, field)
        inner = inner.add() if field.is_repeated and hasattr(inner, "add") else inner
        if field.is_repeated and field.message_type.GetOptions().map_entry:
            _set_map_entry(inner, field, value)
            return
        if not field.is_repeated:
            inner.SetInParent()
        for key, one in value.entries:
            part = NamePart(key[1:-1], is_extension=True) if key.startswith("[") else NamePart(key)
            inner_field = find(inner, part)
            if inner_field is None:
                raise ValueError(f"{field.message_type.full_name} has no field {key}")
            _set(inner, inner_field, one, find)
    elif field.is_repeated:
        child(message, field).append(_scalar(field, value))
    elif field.is_extension:
        message.Extensions[field] = _scalar(field, value)
    else:
        setattr(message, field.name, _scalar(field, value))


def _set_map_entry(entries: Any, field: FieldDescriptor, value: Braces) -> None:
    given = dict(value.entries)
    fields = field.message_type.fields_by_name
    key_field, value_field = fields["key"], fields["value"]
    key = _scalar(key_field, given["key"]) if "key" in given else _zero(key_field)
    if value_field.message_type is not None:
        raise ValueError("maps of messages are not supported in options")
    entries[key] = _scalar(value_field, given["value"]) if "value" in given else _zero(value_field)


def _zero(field: FieldDescriptor) -> Any:
    return field.default_value


def _scalar(field: FieldDescriptor, value: Value) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if not isinstance(value, Text):
            raise ValueError("a string is expected")
        return value.value if field.type == FieldDescriptor.TYPE_BYTES else value.value.decode("utf-8")
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        if not isinstance(value, Word) or value.text not in ("true", "false"):
            raise ValueError("true or false is expected")
        return value.text == "true"
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return _enum_number(field, value)
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return real(value)
    return whole(value)


def _enum_number(field: FieldDescriptor, value: Value) -> int:
    if isinstance(value, Word):
        found = field.enum_type.values_by_name.get(value.text)
        if found is None:
            raise ValueError(f"{field.enum_type.full_name} has no value {value.text}")
        return int(found.number)
    return whole(value)


def whole(value: Value) -> int:
    """The integer of a value."""
    text = value.text if isinstance(value, Number) else ""
    number = whole_number(text.removeprefix("-"))
    if number is None:
        raise ValueError("a whole number is expected")
    return -number if text.startswith("-") else number


def real(value: Value) -> float:
    """The float of a value; inf and nan are words."""
    if isinstance(value, Word) and value.text in ("inf", "-inf", "nan", "-nan"):
        return float(value.text)
    if not isinstance(value, Number):
        raise ValueError("a number is expected")
    integer = whole_number(value.text.removeprefix("-"))
    if integer is not None:
        return float(-integer if value.text.startswith("-") else integer)
    return float(value.text.rstrip("fF"))
