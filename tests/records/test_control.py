import struct
from pathlib import Path

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.kraft_version_record import KRaftVersionRecord
from barnabas.protocol.messages.leader_change_message import LeaderChangeMessage
from barnabas.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from barnabas.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from barnabas.protocol.messages.voters_record import VotersRecord
from barnabas.records import batch
from barnabas.records.control import (
    ControlType,
    EndMarker,
    build_end_marker,
    build_quorum_batch,
    read_control,
    read_end_marker,
)
from barnabas.records.record import Record, build_batch

RECORDED = Path(__file__).parent / "recorded"
TRANSACTIONS = Path(__file__).parents[1] / "replication" / "recorded" / "transactions.log"


@pytest.mark.parametrize("marker", [EndMarker(False, 3), EndMarker(True, 0)])
def test_an_end_marker_says_how_the_transaction_ended(marker: EndMarker) -> None:
    built = build_end_marker(marker, 7, 2, 1000, base_offset=55, partition_leader_epoch=4)
    header = batch.validate(built)
    assert header.is_control and header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
    assert read_end_marker(built) == marker


def test_our_end_markers_are_the_bytes_of_apache_kafka() -> None:
    log = TRANSACTIONS.read_bytes()
    found = [(at, header) for at, header in batch.headers(log) if header.is_control]
    assert len(found) == 2
    for position, header in found:
        marker = read_end_marker(log, position=position)
        assert marker is not None
        ours = build_end_marker(
            marker,
            header.producer_id,
            header.producer_epoch,
            header.max_timestamp,
            base_offset=header.base_offset,
            partition_leader_epoch=header.partition_leader_epoch,
        )
        assert ours == log[position : position + header.size]


def test_a_leader_change_is_the_bytes_of_apache_kafka() -> None:
    log = (RECORDED / "cluster_metadata.log").read_bytes()
    [found] = read_control(log)
    assert found.control_type == ControlType.LEADER_CHANGE
    assert isinstance(found.content, LeaderChangeMessage) and found.content.leader_id == 1
    header = batch.peek(log)
    ours = build_quorum_batch(
        [found.content], header.max_timestamp, partition_leader_epoch=header.partition_leader_epoch
    )
    assert ours == log


def test_a_snapshot_begins_with_a_header_and_ends_with_a_footer() -> None:
    snapshot = (RECORDED / "bootstrap.checkpoint").read_bytes()
    controls = [
        (header, read_control(snapshot, position=at)[0])
        for at, header in batch.headers(snapshot)
        if header.is_control
    ]
    assert [type(found.content) for _, found in controls] == [SnapshotHeaderRecord, SnapshotFooterRecord]
    for header, found in controls:
        ours = build_quorum_batch(
            [found.content],  # type: ignore[list-item]
            header.max_timestamp,
            base_offset=header.base_offset,
            partition_leader_epoch=header.partition_leader_epoch,
        )
        assert batch.peek(ours) == header


def test_messages_of_the_quorum_come_back() -> None:
    voter = VotersRecord.Voter(
        voter_id=1,
        voter_directory_id=b"d" * 16,
        endpoints=[VotersRecord.Voter.Endpoint(name="CONTROLLER", host="localhost", port=9093)],
    )
    change = LeaderChangeMessage(
        version=1, leader_id=2, voters=[LeaderChangeMessage.Voter(voter_id=2, voter_directory_id=b"e" * 16)]
    )
    messages = [KRaftVersionRecord(kraft_version=1), VotersRecord(voters=[voter]), change]
    built = build_quorum_batch(messages, 1000, base_offset=5)
    assert [found.content for found in read_control(built)] == messages
    assert [found.offset for found in read_control(built)] == [5, 6, 7]


def test_a_control_type_of_the_future_is_passed_over() -> None:
    built = build_batch([Record(timestamp=0, key=struct.pack(">hh", 0, 99), value=b"?")], control=True)
    [found] = read_control(built)
    assert (found.control_type, found.content) == (99, None)
    assert read_end_marker(built) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\0\0", b"\0" * 6),
        (None, None),
        (struct.pack(">hh", -1, 0), b"\0" * 6),
        (struct.pack(">hh", 0, 1), b"\0" * 5),
        (struct.pack(">hh", 0, 1), b"\xff\xff\0\0\0\0"),
        (struct.pack(">hh", 0, 2), b""),
        (struct.pack(">hh", 0, 2), b"\0\0\0"),
        (struct.pack(">hh", 0, 6), b"\0\0\xff\xff\xff"),
    ],
)
def test_a_malformed_control_record_is_invalid(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(KafkaError, match="control record") as refusal:
        read_control(build_batch([Record(timestamp=0, key=key, value=value)], control=True))
    assert refusal.value.code == ErrorCode.INVALID_RECORD
