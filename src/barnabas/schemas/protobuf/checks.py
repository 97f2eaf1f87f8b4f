"""Rules of Protobuf that a single declaration can break.

In: syntax values. Out: nothing, or InvalidSchema that names the line.
Does not know: other files, descriptors; names of types are checked where they are resolved.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

from barnabas.schemas.protobuf.option_reading import IDENTIFIER
from barnabas.schemas.protobuf.options import refuse
from barnabas.schemas.protobuf.syntax import NUMBER_MAX, Enum, EnumValue, Field, Message, Range, Reserved

RESERVED_BY_PROTOBUF = range(19000, 20000)


def check_name(name: str, line: int) -> None:
    if not IDENTIFIER.match(name):
        raise refuse(line, f"{name!r} is no name")


def check_number(number: int, line: int) -> None:
    if not 1 <= number <= NUMBER_MAX:
        raise refuse(line, f"field number {number} is not between 1 and {NUMBER_MAX}")
    if number in RESERVED_BY_PROTOBUF:
        raise refuse(line, f"field numbers 19000 to 19999 belong to Protobuf itself, among them {number}")


def check_message(message: Message, proto3: bool, strict: bool) -> None:
    """Numbers used once; if strict, none of them reserved or left to extensions, no name reserved."""
    fields = [*message.fields, *(field for oneof in message.oneofs for field in oneof.fields)]
    _check_once(fields)
    if not strict:
        return
    of_reserved = [(one, each.line) for each in message.reserved for one in each.ranges]
    of_extensions = [(one, each.line) for each in message.extensions for one in each.ranges]
    Ranges(of_reserved + of_extensions)  # they may not overlap each other either
    reserved, extensions = Ranges(of_reserved), Ranges(of_extensions)
    if proto3 and message.extensions:
        raise refuse(message.extensions[0].line, "proto3 has no extension ranges")
    for field in fields:
        if field.number in reserved:
            raise refuse(field.line, f"field {field.name!r} uses the reserved number {field.number}")
        if field.number in extensions:
            raise refuse(
                field.line, f"field {field.name!r} uses number {field.number}, which is left to extensions"
            )
    _check_names(fields, message.reserved)


def check_enum(enum: Enum, allow_alias: bool, proto3: bool, strict: bool) -> None:
    if not enum.values:
        raise refuse(enum.line, f"enum {enum.name!r} has no value")
    if proto3 and enum.values[0].number != 0:
        raise refuse(enum.values[0].line, f"enum {enum.name!r}: the first value must be 0 in proto3")
    if not allow_alias:
        _check_once(enum.values)
    if not strict:
        return
    reserved = Ranges((one, each.line) for each in enum.reserved for one in each.ranges)
    for value in enum.values:
        if value.number in reserved:
            raise refuse(value.line, f"value {value.name!r} uses the reserved number {value.number}")
    _check_names(enum.values, enum.reserved)


def _check_once(declared: Iterable[Field | EnumValue]) -> None:
    seen: dict[int, str] = {}
    for one in declared:
        if one.number in seen:
            hint = "" if isinstance(one, Field) else " (allow_alias permits it)"
            raise refuse(
                one.line, f"{one.name!r} and {seen[one.number]!r} have the same number {one.number}{hint}"
            )
        seen[one.number] = one.name


def _check_names(declared: Iterable[Field | EnumValue], reserved: Iterable[Reserved]) -> None:
    names = {name for each in reserved for name in each.names}
    for one in declared:
        if one.name in names:
            raise refuse(one.line, f"the name {one.name!r} is reserved")


class Ranges:
    """Ranges that do not overlap; finds a number in time that grows with their logarithm."""

    def __init__(self, ranges: Iterable[tuple[Range, int]]) -> None:
        ordered = sorted(ranges, key=lambda one: one[0].start)
        for (before, _), (after, line) in pairwise(ordered):
            if after.start <= before.end:
                raise refuse(line, f"the range from {after.start} overlaps the one from {before.start}")
        self._starts = [numbers.start for numbers, _ in ordered]
        self._ends = [numbers.end for numbers, _ in ordered]

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number) - 1
        return at >= 0 and number <= self._ends[at]
