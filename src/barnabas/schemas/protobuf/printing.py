"""Prints a .proto file in the layout that registries store.

In: a syntax.File. Out: text, with two spaces of indent and without comments, in a fixed order of kinds:
syntax, package, imports, options, messages, enums, extends, services.
Does not know: names and descriptors. Sorting is done by rendering.py; only messages keep their order always,
because message indexes count them.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.schemas.protobuf.syntax import (
    ENUM_NUMBER_MAX,
    NUMBER_MAX,
    Braces,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Many,
    Message,
    Method,
    OneOf,
    Option,
    Range,
    Reserved,
    Service,
    Text,
    Value,
)
from barnabas.schemas.protobuf.tokens import quoted

INDENT = "  "
LAST_OPTIONS = ("default", "json_name")  # they print after the others, in this order


def print_file(file: File) -> str:
    lines: list[str] = []
    if file.syntax is not None:
        lines.append(f'syntax = "{file.syntax}";')
    elif file.edition is not None:
        lines.append(f'edition = "{file.edition}";')
    if file.package:
        lines.append(f"package {file.package};")
    imports = [one for kind in ("", "public", "weak") for one in file.imports if one.kind == kind]
    bare_names = file.edition is not None
    _section(
        lines, [f"import {one.kind + ' ' if one.kind else ''}{quoted(one.path.encode())};" for one in imports]
    )
    _section(lines, _option_lines(file.options))
    _section(lines, [*_messages(file.messages, bare_names), *_enums(file.enums, bare_names)])
    _section(lines, [line for extend in file.extends for line in _extend(extend, bare_names)])
    _section(lines, [line for service in file.services for line in _service(service)])
    return "".join(f"{line}\n" for line in lines)


def _section(lines: list[str], more: list[str]) -> None:
    """Adds lines after an empty one."""
    if more:
        lines.append("")
        lines += more


def _indented(lines: Iterable[str]) -> list[str]:
    return [INDENT + line for line in lines]


def _block(head: str, sections: Iterable[list[str]]) -> list[str]:
    """A declaration with the sections of its body, an empty line between them.

    Empty lines of inner blocks are indented like all other lines: stored texts have these spaces.
    """
    lines = [head + " {"]
    for section in sections:
        if section:
            if len(lines) > 1:
                lines.append("")
            lines += _indented(section)
    if len(lines) == 1:
        return [head + " {}"]
    return [*lines, "}"]


def _messages(messages: Iterable[Message], bare_names: bool) -> list[str]:
    return [line for message in messages for line in _message(f"message {message.name}", message, bare_names)]


def _message(head: str, message: Message, bare_names: bool) -> list[str]:
    fields = [one for one in message.fields if one.body is None]
    groups = [one for one in message.fields if one.body is not None]
    return _block(
        head,
        [
            [_reserved(one, NUMBER_MAX, bare_names) for one in message.reserved],
            _option_lines(message.options),
            [line for one in fields for line in _field(one, bare_names)],
            [line for one in message.oneofs for line in _oneof(one, bare_names)],
            [line for one in groups for line in _field(one, bare_names)],
            [line for one in message.extensions for line in _extensions(one)],
            [line for one in message.extends for line in _extend(one, bare_names)],
            [*_messages(message.messages, bare_names), *_enums(message.enums, bare_names)],
        ],
    )


def _field(field: Field, bare_names: bool) -> list[str]:
    label = f"{field.label} " if field.label is not None else ""
    if field.body is not None:
        head = _with_options(f"{label}group {field.body.name} = {field.number}", field.options)
        return [*head[:-1], *_message(head[-1], field.body, bare_names)]
    type_name = field.type if field.key_type is None else f"map<{field.key_type}, {field.type}>"
    return _ended(_with_options(f"{label}{type_name} {field.name} = {field.number}", field.options))


def _oneof(oneof: OneOf, bare_names: bool) -> list[str]:
    fields = sorted(oneof.fields, key=lambda one: one.body is not None)  # groups last
    groups = [line for one in fields if one.body is not None for line in _field(one, bare_names)]
    plain = [line for one in fields if one.body is None for line in _field(one, bare_names)]
    return _block(f"oneof {oneof.name}", [_option_lines(oneof.options), plain, groups])


def _extend(extend: Extend, bare_names: bool) -> list[str]:
    fields = [line for field in extend.fields for line in _field(field, bare_names)]
    return _block(f"extend {extend.extendee}", [fields])


def _enums(enums: Iterable[Enum], bare_names: bool) -> list[str]:
    found: list[str] = []
    for enum in enums:
        reserved = [_reserved(one, ENUM_NUMBER_MAX, bare_names) for one in enum.reserved]
        values = [line for value in enum.values for line in _enum_value(value)]
        # No empty line inside an enum.
        found += _block(f"enum {enum.name}", [[*reserved, *_option_lines(enum.options), *values]])
    return found


def _enum_value(value: EnumValue) -> list[str]:
    return _ended(_with_options(f"{value.name} = {value.number}", value.options))


def _service(service: Service) -> list[str]:
    methods = [line for method in service.methods for line in _method(method)]
    return _block(f"service {service.name}", [_option_lines(service.options), methods])


def _method(method: Method) -> list[str]:
    taken = f"({'stream ' if method.client_streaming else ''}{method.input_type})"
    given = f"({'stream ' if method.server_streaming else ''}{method.output_type})"
    head = f"rpc {method.name} {taken} returns {given}"
    if not method.options:
        return [head + ";"]
    return [head + " {", *_indented(_option_lines(method.options)), "};"]


def _reserved(reserved: Reserved, most: int, bare_names: bool) -> str:
    names = [name if bare_names else quoted(name.encode()) for name in reserved.names]
    return f"reserved {', '.join([*(_range(one, most) for one in reserved.ranges), *names])};"


def _extensions(extensions: Extensions) -> list[str]:
    ranges = ", ".join(_range(one, NUMBER_MAX) for one in extensions.ranges)
    return _ended(_with_options(f"extensions {ranges}", extensions.options))


def _range(numbers: Range, most: int) -> str:
    if numbers.single:
        return str(numbers.start)
    return f"{numbers.start} to {'max' if numbers.end >= most else numbers.end}"


def _option_lines(options: Iterable[Option]) -> list[str]:
    return [line for option in options for line in _ended(_option(option, "option "))]


def _with_options(head: str, options: tuple[Option, ...]) -> list[str]:
    """A declaration with its options in brackets: one on the same line, several on lines of their own."""
    if not options:
        return [head]
    ordered = sorted(
        options, key=lambda one: LAST_OPTIONS.index(one.plain_name) if one.plain_name in LAST_OPTIONS else -1
    )
    if len(ordered) == 1:
        lines = _option(ordered[0], f"{head} [")
        return [*lines[:-1], lines[-1] + "]"]
    return [f"{head} [", *_indented(_listed([_option(option) for option in ordered])), "]"]


def _ended(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1] + ";"]


def _option(option: Option, before: str = "") -> list[str]:
    name = ".".join(f"({part.text})" if part.is_extension else part.text for part in option.name)
    value = option.value
    if isinstance(value, Many) and len(value.values) == 1:
        lines = _value(value.values[0])  # a list of one stays on the line of its option
        lines = ["[" + lines[0], *lines[1:]]
        lines[-1] += "]"
    else:
        lines = _value(value)
    return [f"{before}{name} = {lines[0]}", *lines[1:]]


def _value(value: Value) -> list[str]:
    if isinstance(value, Text):
        return [quoted(value.value)]
    if isinstance(value, Many):
        return ["[", *_indented(_listed([_value(one) for one in value.values])), "]"]
    if isinstance(value, Braces):
        entries = [(key, _value(one)) for key, one in value.entries]
        return ["{", *_indented(_listed([[f"{key}: {lines[0]}", *lines[1:]] for key, lines in entries])), "}"]
    return [value.text]


def _listed(items: list[list[str]]) -> list[str]:
    """Lines of several items, a comma after each but the last."""
    for item in items[:-1]:
        item[-1] += ","
    return [line for item in items for line in item]


def print_value(value: Value) -> str:
    """A value alone, as it stands in options."""
    return "\n".join(_value(value))
