"""Events of a MySQL 9.7's binary log, as bytes that it wrote: parts of JSON, compressed transactions."""

from __future__ import annotations

import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from barnabas.connect.connectors.mysql_cdc import binlog, json_values, payloads
from barnabas.connect.connectors.mysql_cdc.binlog import Event, TableMap
from barnabas.connect.connectors.mysql_cdc.packed_values import decimals
from barnabas.connect.connectors.mysql_cdc.row_values import images, readers_of
from barnabas.connect.connectors.mysql_cdc.settings import CONFIG
from barnabas.connect.connectors.mysql_cdc.tables import ColumnDef
from barnabas.connect.connectors.mysql_cdc.types import Modes, typed
from barnabas.connect.data import Column
from barnabas.connect.plugins import ConnectError

GIVEN = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u"}

MAPPED = TableMap(109, "shop", "t", bytes((3, 15, 245)), (0, 400, 4))
COLUMNS = (ColumnDef("id", "INT"), ColumnDef("v", "VARCHAR", 100, charset="utf8mb4"), ColumnDef("j", "JSON"))
HEAD = b"m\0\0\0\0\0\x11\0\x02\0\x03\xff\xff"
# {"a": {"b": [1, 20, 3]}, "long": "yy"}, whose old text is still there behind the new one
DOCUMENT = (
    b"\0\x02\0q\0\x12\0\x01\0\x13\0\x04\0\0\x17\0\x0c0\0along\x01\0\x19\0\x0b\0\x01\0\x02\x0c\0b\x03\0\r\0\x05"
    b"\x01\0\x05\x14\0\x05\x03\0\x02yy" + b"x" * 62
)
BEFORE = b"\0\x01\0\0\0\x01\0ar\0\0\0" + DOCUMENT
WHOLE = '{"a":{"b":[1,20,3]},"long":"yy"}'


def event(kind: int, body: bytes) -> Event:
    return Event(1, kind, 1, len(body) + 19, 1000, 0, body)


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (b"\x01\x01\0\x01\0\0\0\x01\0b\x0a\0\0\0\x02\x08$.a.b[0]", '{"a":{"b":[20,3]},"long":"yy"}'),
        (b"\x01\x01\0\x01\0\0\0\x01\0b\0\0\0\0", WHOLE),
        (b"\x01\0\0\x01\0\0\0\x01\0b\x03\0\0\0\x05\x07\0", "7"),
        (b"\0\0\x01\0\0\0\x01\0b\x03\0\0\0\x05\x07\0", "7"),
        (b"\x01\x01\x04\x01\0\0\0\x01\0b", None),
    ],
    ids=["removed", "unchanged", "whole", "without parts", "null"],
)
def test_a_part_of_a_document_is_applied_to_the_one_before(after: bytes, found: str | None) -> None:
    rows = binlog.rows_of(event(binlog.PARTIAL_UPDATE, HEAD + BEFORE + after))
    [(old, new)] = images(rows, MAPPED, readers_of(MAPPED, COLUMNS))
    assert old == (1, "a", WHOLE)
    assert new == (1, "b", found)


def test_differences_replace_insert_and_remove() -> None:
    tree = json_values.tree_of(DOCUMENT)
    changes = (
        b"\x00\x08$.a.b[1]\x03\x05\x14\0" + b"\x01\x08$.a.b[0]\x02\x04\x01" + b'\x01\x07$."a b"\x02\x04\0'
    )
    changes += b"\x02\x06$.long"
    assert json_values.changed(tree, changes) == {"a": {"b": [True, 1, 20, 3]}, "a b": None}


def test_a_path_that_cannot_be_read_is_told() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        json_values.legs_of("$.a[last]")


def test_decimals_keep_all_their_digits() -> None:
    digits = "12345678901234567890123456789.0123456789"  # more than Python's own 28
    whole, part = digits.split(".")
    groups = [whole[:2], whole[2:11], whole[11:20], whole[20:], part[:9], part[9:]]
    widths = [1, 4, 4, 4, 4, 1]
    packed = b"".join(int(text).to_bytes(width, "big") for text, width in zip(groups, widths, strict=True))
    raw = bytes([packed[0] | 0x80]) + packed[1:]
    assert decimals(39, 10)(raw, 0) == (Decimal(digits), len(raw))
    assert json_values.text_of({"d": Decimal(digits)}) == f'{{"d":{digits}}}'
    schema, read = typed(ColumnDef("d", "DECIMAL", 39, 10), Modes.of(CONFIG.parse(GIVEN)))
    assert Column.of([read(digits)], schema).pylist() == [Decimal(digits)]


def test_vectors_are_lists_of_numbers() -> None:
    column = ColumnDef("v", "VECTOR", 8)
    mapped = TableMap(1, "shop", "t", bytes((242,)), (4,))
    packed = struct.pack("<I3f", 12, 1, -2.5, 0)
    [reader] = readers_of(mapped, (column,))
    raw, end = reader(packed, 0)
    schema, read = typed(column, Modes.of(CONFIG.parse(GIVEN)))
    assert (read(raw), end, schema.name) == ([1.0, -2.5, 0.0], 16, "io.debezium.data.FloatVector")


def inside(kind: int, body: bytes) -> bytes:
    return struct.pack("<IBIIIH", 7, kind, 1, len(body) + 19, 0, 0) + body


@pytest.mark.parametrize(("algorithm", "codec"), [(b"\x02\x01\0", "zstd"), (b"\x02\x03\xfc\xff\0", None)])
def test_events_of_a_compressed_transaction_have_its_place(algorithm: bytes, codec: str | None) -> None:
    data = b"".join(inside(kind, body) for kind, body in ((2, b"BEGIN"), (30, b"rows" * 1000), (16, b"")))
    held = data if codec is None else pa.compress(data, codec, asbytes=True)
    sizes = [b"\x03\x03\xfc" + struct.pack("<H", len(data)), b"\x01\x03\xfc" + struct.pack("<H", len(held))]
    outer = event(binlog.TRANSACTION_PAYLOAD, algorithm + b"".join(sizes) + b"\0" + held)
    found = list(payloads.events_inside(outer))
    assert [(each.kind, each.body) for each in found] == [(2, b"BEGIN"), (30, b"rows" * 1000), (16, b"")]
    assert {(each.start, each.end) for each in found} == {(outer.start, outer.end)}


def test_an_unknown_compression_is_told() -> None:
    with pytest.raises(ConnectError, match="algorithm 9, not zstd"):
        list(payloads.events_inside(event(binlog.TRANSACTION_PAYLOAD, b"\x02\x01\x09\0")))
