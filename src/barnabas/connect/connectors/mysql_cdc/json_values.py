"""MySQL's binary form of JSON: values, their texts, and the differences that `PARTIAL_JSON` writes.

In: bytes of a column in the log. Out: a tree of dicts, lists and plain values, or its text. A document is
read in place: no part of it is copied before it is decoded. Pure.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from barnabas.connect.connectors.mysql_cdc.binlog import packed
from barnabas.connect.connectors.mysql_cdc.packed_values import datetime_of, decimals, time_of

OBJECTS, ARRAYS, LARGE = (0, 1), (2, 3), (1, 3)
LITERAL, TEXT, OPAQUE = 4, 12, 15
NUMBERS = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q", 11: "<d"}
LITERALS = (None, True, False)
DECIMALS, DATES, DATETIMES, TIMES = (0, 246), (10, 14), (7, 12, 17, 18), (11, 19)  # types of columns
REPLACE, INSERT, REMOVE = 0, 1, 2
LEG = re.compile(r'\.("(?:[^"\\]|\\.)*"|[^.\["]+)|\[(\d+)\]')
Leg = str | int


def text_of(value: Any) -> str:
    """A tree as JSON. Decimals keep all their digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(name)}:{text_of(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text_of, value)) + "]"
    return format(value, "f") if isinstance(value, Decimal) else quoted(value)


def quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def tree_of(data: bytes) -> Any:
    """The value of a whole document; an empty one is JSON's null."""
    return value_at(data[0], data, 1) if data else None


def value_at(kind: int, data: bytes, place: int) -> Any:
    if kind in OBJECTS or kind in ARRAYS:
        return members(data, place, is_object=kind in OBJECTS, is_large=kind in LARGE)
    if kind == LITERAL:
        return LITERALS[data[place]]
    if kind in NUMBERS:
        return struct.unpack_from(NUMBERS[kind], data, place)[0]
    if kind == TEXT:
        start, stop = span(data, place)
        return data[start:stop].decode("utf-8", "replace")
    if kind == OPAQUE:
        start, stop = span(data, place + 1)
        return opaque(data[place], data[start:stop])
    raise ValueError(f"a JSON value has the type {kind}, which is not known")


def members(data: bytes, start: int, *, is_object: bool, is_large: bool) -> Any:
    """An object or an array: its entries say where keys and values are, counted from its start."""
    width = 4 if is_large else 2
    offset = "<I" if is_large else "<H"
    (count,) = struct.unpack_from(offset, data, start)
    keys = start + 2 * width
    values = keys + count * (width + 2) if is_object else keys
    found = []
    for number in range(count):
        entry = values + number * (width + 1)
        kind = data[entry]
        is_inline = kind in (LITERAL, 5, 6) or (is_large and kind in (7, 8))
        place = entry + 1 if is_inline else start + struct.unpack_from(offset, data, entry + 1)[0]
        found.append(value_at(kind, data, place))
    if not is_object:
        return found
    names = []
    for number in range(count):
        entry = keys + number * (width + 2)
        (place,) = struct.unpack_from(offset, data, entry)
        (length,) = struct.unpack_from("<H", data, entry + width)
        names.append(data[start + place : start + place + length].decode("utf-8", "replace"))
    return dict(zip(names, found, strict=True))


def span(data: bytes, place: int) -> tuple[int, int]:
    """The place of content whose length stands before it, seven bits in each byte."""
    length = shift = 0
    while True:
        byte = data[place]
        place += 1
        length |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return place, place + length
        shift += 7


def opaque(kind: int, data: bytes) -> Any:
    """A value of a type that JSON does not have."""
    if kind in DECIMALS:
        return decimals(data[0], data[1])(data, 2)[0]
    if kind in DATES:
        return datetime_of(int.from_bytes(data, "little"))[:10]
    if kind in DATETIMES:
        return datetime_of(int.from_bytes(data, "little"))
    if kind in TIMES:
        return time_of(int.from_bytes(data, "little", signed=True))
    return base64.b64encode(data).decode()


# -- differences -----------------------------------------------------------------------------------


def changed(value: Any, differences: bytes) -> Any:
    """A tree after the differences that an update wrote into the log. The tree itself is changed."""
    place = 0
    while place < len(differences):
        operation = differences[place]
        length, start = packed(differences, place + 1)
        path = legs_of(differences[start : start + length].decode())
        place = start + length
        new: Any = None
        if operation != REMOVE:
            length, start = packed(differences, place)
            new = tree_of(differences[start : start + length])
            place = start + length
        value = applied(value, operation, path, new)
    return value


def legs_of(path: str) -> list[Leg]:
    """The names and numbers of a path such as `$.a."b c"[2]`."""
    found: list[Leg] = []
    place = 1
    while place < len(path):
        match = LEG.match(path, place)
        if match is None:
            raise ValueError(f"the log has the JSON path {path!r}, which cannot be read")
        name, number = match.groups()
        if number is not None:
            found.append(int(number))
        else:
            found.append(json.loads(name) if name.startswith('"') else name)
        place = match.end()
    return found


def applied(value: Any, operation: int, path: Sequence[Leg], new: Any) -> Any:
    if not path:
        return new
    holder = value
    for leg in path[:-1]:
        holder = holder[leg]
    last = path[-1]
    if operation == REMOVE:
        del holder[last]
    elif operation == INSERT and isinstance(holder, list):
        assert isinstance(last, int)
        holder.insert(last, new)
    else:
        holder[last] = new
    return value
