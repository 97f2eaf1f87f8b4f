from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.log_records.storage import ProducerSnapshot
from barnabas.records.crc32c import crc32c
from barnabas.replication import producer_snapshot
from barnabas.replication.producer_state import BatchMetadata, ProducerState

RECORDED = Path(__file__).parent / "recorded"
int16 = st.integers(-1, 2**15 - 1)
int32 = st.integers(-1, 2**31 - 1)
int64 = st.integers(-1, 2**63 - 1)


@st.composite
def states(draw: st.DrawFn) -> ProducerState:
    timestamp = draw(int64)
    batch = st.builds(
        BatchMetadata, int32, st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1), st.just(timestamp)
    )
    return ProducerState(
        draw(int64), draw(int16), draw(int32), timestamp, draw(int64), draw(st.none() | batch)
    )


@given(st.lists(states(), max_size=5))
def test_states_come_back_from_a_snapshot(written: list[ProducerState]) -> None:
    read = producer_snapshot.decode(producer_snapshot.encode(written))
    assert list(map(repr, read)) == list(map(repr, written))


@pytest.mark.parametrize("name", ["sequences", "transactions"])
def test_a_snapshot_of_apache_kafka_is_read_and_written_again_byte_for_byte(name: str) -> None:
    recorded = (RECORDED / f"{name}.snapshot").read_bytes()
    assert producer_snapshot.encode(producer_snapshot.decode(recorded)) == recorded


def test_a_snapshot_of_no_producers_has_ten_bytes() -> None:
    assert producer_snapshot.decode(producer_snapshot.encode([])) == []
    assert len(producer_snapshot.encode([])) == 10


@given(st.integers(0, 240), st.integers(0, 255))
def test_a_damaged_snapshot_is_noticed(at: int, value: int) -> None:
    recorded = bytearray((RECORDED / "sequences.snapshot").read_bytes())
    at %= len(recorded)
    if recorded[at] == value:
        value ^= 1
    recorded[at] = value
    with pytest.raises(ValueError, match="producer snapshot"):
        producer_snapshot.decode(recorded)


@given(st.integers(0, 239))
def test_a_snapshot_that_is_cut_off_is_noticed(length: int) -> None:
    recorded = (RECORDED / "sequences.snapshot").read_bytes()
    with pytest.raises(ValueError, match="producer snapshot"):
        producer_snapshot.decode(recorded[:length])


def test_a_right_checksum_over_nonsense_does_not_help() -> None:
    body = b"\xff\xff\xff\xfe"
    with pytest.raises(ValueError, match="malformed"):
        producer_snapshot.decode(b"\x00\x01" + crc32c(body).to_bytes(4, "big") + body)


@given(st.lists(states(), max_size=5))
def test_a_snapshot_is_the_message_that_kafka_defines(written: list[ProducerState]) -> None:
    data = producer_snapshot.encode(written)
    message = ProducerSnapshot.decode(data[2:], producer_snapshot.VERSION)
    assert message.encode(producer_snapshot.VERSION) == data[2:]
    assert [
        (each.producer_id, each.epoch, each.coordinator_epoch, each.timestamp, each.current_txn_first_offset)
        for each in message.producer_entries
    ] == [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_timestamp,
            each.txn_first_offset,
        )
        for each in written
    ]
    assert [(each.last_sequence, each.last_offset) for each in message.producer_entries] == [
        (each.last_sequence, each.last_offset) for each in written
    ]


@pytest.mark.parametrize("body", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\2" + bytes(91), b"\x7f\xff\xff\xff"])
def test_a_right_checksum_over_too_few_producers_does_not_help(body: bytes) -> None:
    with pytest.raises(ValueError, match="malformed"):
        producer_snapshot.decode(b"\x00\x01" + crc32c(body).to_bytes(4, "big") + body)
