"""A .proto file without extensions and custom options: the format `ignore_extensions`.

In: a syntax.File. Out: the same file without extends, extension ranges and custom options. Confluent's own
options stay. Does not know: text, descriptors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from barnabas.schemas.protobuf.syntax import Enum, Field, File, Message, Option


def without_extensions(file: File) -> File:
    services = tuple(
        replace(
            service,
            methods=tuple(replace(method, options=_options(method.options)) for method in service.methods),
            options=_options(service.options),
        )
        for service in file.services
    )
    return replace(
        file,
        options=_options(file.options),
        messages=tuple(_message(one) for one in file.messages),
        enums=tuple(_enum(one) for one in file.enums),
        extends=(),
        services=services,
    )


def _message(message: Message) -> Message:
    oneofs = tuple(
        replace(oneof, fields=_fields(oneof.fields), options=_options(oneof.options))
        for oneof in message.oneofs
    )
    return replace(
        message,
        fields=_fields(message.fields),
        oneofs=oneofs,
        messages=tuple(_message(one) for one in message.messages),
        enums=tuple(_enum(one) for one in message.enums),
        options=_options(message.options),
        extensions=(),
        extends=(),
    )


def _fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(
        replace(field, options=_options(field.options), body=_message(field.body) if field.body else None)
        for field in fields
    )


def _enum(enum: Enum) -> Enum:
    values = tuple(replace(value, options=_options(value.options)) for value in enum.values)
    return replace(enum, values=values, options=_options(enum.options))


def _options(options: Iterable[Option]) -> tuple[Option, ...]:
    def stays(option: Option) -> bool:
        first = option.name[0]
        return not first.is_extension or first.text.lstrip(".").startswith("confluent.")

    return tuple(option for option in options if stays(option))
