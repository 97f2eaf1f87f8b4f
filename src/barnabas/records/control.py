"""Control batches: end markers of transactions, and control records of the quorum.

In: a marker or messages of the quorum. Out: a control batch. Also the reverse.
Does not know: who may write a control batch, what readers do with it.
"""

from collections.abc import Iterable
from enum import IntEnum
from importlib import import_module
from struct import Struct
from typing import NamedTuple

from barnabas.protocol import ErrorCode, KafkaError, Message, ProtocolError
from barnabas.records.batch import CONTROL_FLAG, HEADER, MAGIC, NO_SEQUENCE, TRANSACTIONAL_FLAG, seal
from barnabas.records.crc32c import Buffer
from barnabas.records.record import Record, build_batch, iter_records

KEY_VERSION = 0
MARKER_VERSION = 0

_key = Struct(">hh")  # version, control type
_marker = Struct(">hi")  # version, coordinator epoch
_version = Struct(">h")

# The record of an end marker up to its value: size, attributes, two deltas of 0, size and bytes of the key,
# size.
_ABORT = bytes.fromhex("20 00 00 00 08 0000 0000 0c")
_COMMIT = bytes.fromhex("20 00 00 00 08 0000 0001 0c")
_NO_HEADERS = b"\0"


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


# These classes are imported on demand: ending transactions needs none of them.
QUORUM_MESSAGES = {
    ControlType.LEADER_CHANGE: ("leader_change_message", "LeaderChangeMessage"),
    ControlType.SNAPSHOT_HEADER: ("snapshot_header_record", "SnapshotHeaderRecord"),
    ControlType.SNAPSHOT_FOOTER: ("snapshot_footer_record", "SnapshotFooterRecord"),
    ControlType.KRAFT_VERSION: ("kraft_version_record", "KRaftVersionRecord"),
    ControlType.KRAFT_VOTERS: ("voters_record", "VotersRecord"),
}
VERSION_MAX = {ControlType.LEADER_CHANGE: 1}  # of the quorum's messages; the others have one version only
CONTROL_TYPES = {name: control_type for control_type, (_, name) in QUORUM_MESSAGES.items()}


class EndMarker(NamedTuple):
    """The end of a producer's transaction."""

    aborted: bool
    coordinator_epoch: int


class ControlRecord(NamedTuple):
    offset: int
    control_type: int  # a `ControlType`, or a newer one that readers skip
    content: EndMarker | Message | None


def build_end_marker(
    marker: EndMarker,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytearray:
    """Build the control batch of an end marker. All have the same size, so it is packed with one call."""
    header = HEADER.pack(
        base_offset,
        0,
        partition_leader_epoch,
        MAGIC,
        0,
        TRANSACTIONAL_FLAG | CONTROL_FLAG,
        0,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        1,
    )
    key = _ABORT if marker.aborted else _COMMIT
    value = _marker.pack(MARKER_VERSION, marker.coordinator_epoch)
    return seal(bytearray(header + key + value + _NO_HEADERS))


def build_quorum_batch(
    messages: Iterable[Message], timestamp_ms: int, *, base_offset: int = 0, partition_leader_epoch: int = -1
) -> bytearray:
    """LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord, KRaftVersionRecord, VotersRecord.

    Each is written in the version that its own `version` field names.
    """
    records = [
        Record(
            timestamp=timestamp_ms,
            key=_key.pack(KEY_VERSION, CONTROL_TYPES[type(message).__name__]),
            value=message.encode(message.version),  # type: ignore[attr-defined]
        )
        for message in messages
    ]
    return build_batch(
        records, base_offset=base_offset, partition_leader_epoch=partition_leader_epoch, control=True
    )


def read_control(batch: Buffer, *, position: int = 0) -> list[ControlRecord]:
    """Read the records of a control batch. Empty if compaction has removed them."""
    return [_read(record) for record in iter_records(batch, position=position)]


def read_end_marker(batch: Buffer, *, position: int = 0) -> EndMarker | None:
    """Read the end marker of a control batch; None if it has none."""
    for record in read_control(batch, position=position):
        if isinstance(record.content, EndMarker):
            return record.content
    return None


def _read(record: Record) -> ControlRecord:
    key, value = record.key or b"", record.value or b""
    if len(key) < _key.size:
        raise _invalid(record, f"its key has {len(key)} bytes, {_key.size} are needed")
    version, number = _key.unpack_from(key)
    if version < 0:
        raise _invalid(record, f"its key has version {version}")
    if number not in ControlType.__members__.values():
        return ControlRecord(record.offset, number, None)
    control_type = ControlType(number)
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        if len(value) < _marker.size:
            raise _invalid(record, f"a marker of {len(value)} bytes, {_marker.size} are needed")
        version, coordinator_epoch = _marker.unpack_from(value)
        if version < 0:
            raise _invalid(record, f"a marker of version {version}")
        marker = EndMarker(control_type == ControlType.ABORT, coordinator_epoch)
        return ControlRecord(record.offset, control_type, marker)
    return ControlRecord(record.offset, control_type, _read_quorum_message(record, control_type, value))


def _read_quorum_message(record: Record, control_type: ControlType, value: bytes) -> Message:
    if len(value) < _version.size:
        raise _invalid(record, "it has no version")
    module, name = QUORUM_MESSAGES[control_type]
    message_class: type[Message] = getattr(import_module(f"barnabas.protocol.messages.{module}"), name)
    version = min(_version.unpack_from(value)[0], VERSION_MAX.get(control_type, 0))
    try:
        return message_class.decode(value, max(version, 0))
    except ProtocolError as error:
        raise _invalid(record, str(error)) from None


def _invalid(record: Record, problem: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"bad control record at offset {record.offset}: {problem}")
