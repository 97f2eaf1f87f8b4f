"""Records of `__share_group_state`: encoded by hand as the declared messages are."""

from __future__ import annotations

import pytest

from barnabas.protocol import ProtocolError
from barnabas.protocol.errors import EncodingError
from barnabas.protocol.log_records.share_state import ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from barnabas.shares.state.batches import StateBatch
from barnabas.shares.state.keys import ShareKey, parse
from barnabas.shares.state.records import Entry, Snapshot, Update, decode, encode

KEY = ShareKey("grüppe", bytes(range(16)), 7)
BATCHES = [StateBatch(2**40 + 2 * number, 2**40 + 2 * number, number % 5, 4) for number in range(200)]
VALUES: list[Snapshot | Update] = [
    Snapshot(1, 2, 3, -1, -1, 1_700_000_000_000, 1_700_000_000_001),
    Snapshot(2**31 - 1, 0, 0, 2**62, 5, 0, 0, BATCHES[:3]),
    Update(0, -1, -1, -1),
    Update(3, 4, 5, 0, BATCHES[:1]),
    Update(3, 4, 5, 2**31 - 1, BATCHES),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_has_the_bytes_of_its_message(value: Snapshot | Update) -> None:
    message = ShareSnapshotValue if isinstance(value, Snapshot) else ShareUpdateValue
    fields = value._asdict() | {
        "state_batches": [message.StateBatch(**batch._asdict()) for batch in value.state_batches]
    }
    key_bytes, value_bytes = encode(Entry(KEY, value))
    assert value_bytes == b"\0\0" + message(**fields).encode(0)
    found = decode(key_bytes, value_bytes)
    assert found is not None
    assert found.key == KEY
    assert tuple(found.value or ())[:-1] == tuple(value)[:-1]
    assert list((found.value or value).state_batches) == list(value.state_batches)


def test_a_key_has_the_bytes_of_its_message() -> None:
    key = ShareUpdateKey(group_id=KEY.group_id, topic_id=KEY.topic_id, partition=KEY.partition)
    assert encode(Entry(KEY, VALUES[2]))[0] == b"\0\1" + key.encode(0)


def test_a_tombstone_has_the_key_of_a_snapshot() -> None:
    key_bytes, value = encode(Entry(KEY, None))
    assert value is None
    assert key_bytes[:2] == b"\0\0"
    assert decode(key_bytes, None) == Entry(KEY, None)


def test_records_of_unknown_types_are_skipped_and_broken_ones_named() -> None:
    assert decode(b"\0\2anything", b"") is None
    key_bytes, _ = encode(Entry(KEY, None))
    for key, value in (
        (b"", None),
        (b"\0", None),
        (b"\0\0\0", None),
        (key_bytes, b""),
        (key_bytes, b"\0\0\1"),
    ):
        with pytest.raises(ProtocolError):
            decode(key, value)


def test_a_group_id_that_is_too_long_is_named() -> None:
    with pytest.raises(EncodingError, match="32768 bytes"):
        encode(Entry(ShareKey("g" * 32768, bytes(16), 0), None))


def test_keys_are_read_from_the_right() -> None:
    key = ShareKey("a:b", bytes(range(16)), 3)
    assert parse(str(key)) == key
    for text in ("", "g", "g:0", "g::0", ":AAAAAAAAAAAAAAAAAAAAAA:0", f"{key}x", str(key).replace(":3", ":")):
        with pytest.raises(ValueError):
            parse(text)
