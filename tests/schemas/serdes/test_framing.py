"""Both wire formats, byte by byte, and against confluent-kafka's own code."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from barnabas.schemas.serdes.framing import BadFrame, SchemaId, add_header, header_of, read_prefix

GUID = "89791762-2336-4186-9674-299b90a802e2"


def test_the_prefix_has_the_id_or_the_guid() -> None:
    assert SchemaId(id=258).id_prefix() == b"\x00\x00\x00\x01\x02"
    assert SchemaId(guid=GUID).guid_prefix().hex() == "01" + GUID.replace("-", "")
    assert read_prefix(b"\x00\x00\x00\x01\x02abc") == (SchemaId(id=258), 5)
    assert read_prefix(SchemaId(guid=GUID).guid_prefix() + b"abc") == (SchemaId(guid=GUID), 17)


@pytest.mark.parametrize(
    "indexes, written",
    [((0,), "00"), ((1,), "0202"), ((0, 1), "040002"), ((2, 0, 64), "0604008001")],
)
def test_message_indexes_are_zigzag_varints(indexes: tuple[int, ...], written: str) -> None:
    prefix = SchemaId(id=1, indexes=indexes).id_prefix()

    assert prefix[5:].hex() == written
    assert read_prefix(prefix + b"x", with_indexes=True) == (SchemaId(id=1, indexes=indexes), len(prefix))


def test_indexes_that_old_clients_wrote_are_plain_varints() -> None:
    found, at = read_prefix(
        bytes.fromhex("00000000010201 02ff".replace(" ", "")), with_indexes=True, zigzag=False
    )

    assert found.indexes == (1, 2) and at == 8


@settings(max_examples=100, deadline=None, database=None)
@given(some.lists(some.integers(0, 2**31 - 1), min_size=1, max_size=5), some.integers(0, 2**32 - 1))
def test_prefixes_are_those_of_confluent_kafka(indexes: list[int], schema_id: int) -> None:
    from confluent_kafka.schema_registry.serde import SchemaId as Theirs

    theirs = Theirs("PROTOBUF", schema_id, GUID, indexes)
    ours = SchemaId(schema_id, GUID, tuple(indexes))

    assert ours.id_prefix() == theirs.id_to_bytes()
    assert ours.guid_prefix() == theirs.guid_to_bytes()
    back = Theirs("PROTOBUF")
    back.from_bytes(io.BytesIO(ours.guid_prefix()))
    assert str(back.guid) == GUID and back.message_indexes == indexes


@pytest.mark.parametrize(
    "data, reason",
    [
        ("", "it is empty"),
        ("00", "too few for a schema id"),
        ("00000001", "it has 4 bytes"),
        ("01000000", "too few for a schema's GUID"),
        ("7b7d", "begins with byte 123"),
        ("0000000001", "ends within its message indexes"),
        ("000000000102", "ends within its message indexes"),
        ("0000000001" + "ff" * 12, "ends within its message indexes"),
        ("000000000101", "-1 message indexes"),
        ("0000000001" + "a08d06", "50000 message indexes"),
    ],
)
def test_bytes_that_are_no_frame_are_refused(data: str, reason: str) -> None:
    with pytest.raises(BadFrame, match=reason):
        read_prefix(bytes.fromhex(data), with_indexes=len(data) >= 10)


@settings(max_examples=200, deadline=None, database=None)
@given(some.binary(max_size=40), some.booleans())
def test_no_bytes_break_the_reader(data: bytes, with_indexes: bool) -> None:
    try:
        _, at = read_prefix(data, with_indexes=with_indexes)
    except BadFrame:
        return
    assert 5 <= at <= len(data)


@pytest.mark.parametrize("headers", [[], {}])
def test_headers_are_a_list_or_a_dict(headers: Any) -> None:
    assert header_of(headers, "h") is None
    add_header(headers, "h", b"1")
    assert header_of(headers, "h") == b"1"
    assert header_of(None, "h") is None
    with pytest.raises(BadFrame, match="needs headers"):
        add_header(None, "h", b"1")
