"""Differences of two Protobuf files in words.

In: two descriptors. Out: sentences; fields are matched by their numbers. Does not know: compatibility, texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# By the numbers that descriptors have for types, from 1 on.
TYPES = [
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group"),
    *("message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
]
LABELS = {1: "", 2: "required ", 3: "repeated "}


def differences(old: Any, new: Any) -> Iterator[str]:
    if old.package != new.package:
        yield f"the package {old.package or '(none)'} became {new.package or '(none)'}"
    if old.syntax != new.syntax:
        yield f"the syntax {old.syntax or 'proto2'} became {new.syntax or 'proto2'}"
    yield from _names("import", set(old.dependency), set(new.dependency))
    yield from _types(old, new, "")
    before, after = {one.name: one for one in old.service}, {one.name: one for one in new.service}
    yield from _names("service", before.keys(), after.keys())


def _types(old: Any, new: Any, outer: str) -> Iterator[str]:
    """Messages and enums of a file, or nested in a message."""
    enums = (old.enum_type, new.enum_type)
    inner = "message_type" if hasattr(old, "message_type") else "nested_type"
    messages = (getattr(old, inner), getattr(new, inner))
    for what, (before_list, after_list), compare in (
        ("message", messages, _messages),
        ("enum", enums, _enums),
    ):
        before = {one.name: one for one in before_list if what == "enum" or not one.options.map_entry}
        after = {one.name: one for one in after_list if what == "enum" or not one.options.map_entry}
        yield from _names(what, before.keys(), after.keys(), outer)
        for name in before:
            if name in after:
                yield from compare(before[name], after[name], f"{outer}{name}")


def _messages(old: Any, new: Any, name: str) -> Iterator[str]:
    before, after = {one.number: one for one in old.field}, {one.number: one for one in new.field}
    for number, one in after.items():
        if number not in before:
            yield f"field {name}.{one.name} = {number} was added, of type {_shown(one, new)}"
            continue
        earlier = before[number]
        if earlier.name != one.name:
            yield f"field {name}.{earlier.name} = {number} is now named {one.name}"
        if _shown(earlier, old) != _shown(one, new):
            yield f"field {name}.{one.name} = {number}: {_shown(earlier, old)} became {_shown(one, new)}"
        if _oneof(earlier, old) != _oneof(one, new):
            yield (
                f"field {name}.{one.name} = {number} moved from {_oneof(earlier, old) or 'the message'}"
                f" to {_oneof(one, new) or 'the message'}"
            )
    for number, one in before.items():
        if number not in after:
            yield f"field {name}.{one.name} = {number} was removed"
    yield from _types(old, new, f"{name}.")


def _enums(old: Any, new: Any, name: str) -> Iterator[str]:
    before, after = {one.number: one.name for one in old.value}, {one.number: one.name for one in new.value}
    for number, text in after.items():
        if number not in before:
            yield f"constant {name}.{text} = {number} was added"
        elif before[number] != text:
            yield f"constant {name}.{before[number]} = {number} is now named {text}"
    for number, text in before.items():
        if number not in after:
            yield f"constant {name}.{text} = {number} was removed"


def _names(what: str, old: Any, new: Any, outer: str = "") -> Iterator[str]:
    for one in sorted(new - old):
        yield f"{what} {outer}{one} was added"
    for one in sorted(old - new):
        yield f"{what} {outer}{one} was removed"


def _shown(field: Any, message: Any) -> str:
    for entry in message.nested_type:
        if entry.options.map_entry and field.type_name.endswith(f".{entry.name}"):
            return f"map<{_shown(entry.field[0], entry)}, {_shown(entry.field[1], entry)}>"
    kind: str = field.type_name.lstrip(".") or TYPES[field.type - 1]
    return LABELS[field.label] + kind


def _oneof(field: Any, message: Any) -> str | None:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return f"oneof {message.oneof_decl[field.oneof_index].name}"
