"""A record of `__share_group_state`: a snapshot of a share partition, an update to it, or a tombstone.

In: the bytes of key and value. Two bytes precede each: the record type before the key, the version before the
value. Out: entries, and back the bytes that Apache Kafka 4.3.1 writes.
Does not know: batches, offsets, what the records mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from barnabas.protocol import ProtocolError
from barnabas.protocol.errors import EncodingError
from barnabas.protocol.log_records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from barnabas.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from barnabas.shares.state.batches import StateBatch
from barnabas.shares.state.keys import ShareKey

TYPE_SIZE = 2
SNAPSHOT_TYPE, UPDATE_TYPE = 0, 1
VERSION = 0
KEY_HEAD = Struct(">hh")  # type, length of the group id
KEY_TAIL = Struct(">16si")
SNAPSHOT_HEAD = Struct(">hiiiqqq")  # version, epochs, start offset, timestamps
UPDATE_HEAD = Struct(">hiiq")  # version, epochs, start offset
BATCH = Struct(">qqbhx")  # without tagged fields
COUNT_TAG = Struct(">BBBi")  # one tagged field: its number, size and value
NO_COUNT = -1
STRING_BYTES_MAX = 2**15 - 1


class Snapshot(NamedTuple):
    """The whole state of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    state_batches: Sequence[StateBatch] = ()


class Update(NamedTuple):
    """A change since the snapshot with this epoch."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[StateBatch] = ()


class Entry(NamedTuple):
    """A record. Without a value it is a tombstone, which has the key of a snapshot."""

    key: ShareKey
    value: Snapshot | Update | None


def encode(entry: Entry) -> tuple[bytes, bytes | None]:
    """Encode key and value as a record holds them; by hand, since each acknowledgement writes one."""
    key, value = entry
    group_id = key.group_id.encode()
    if len(group_id) > STRING_BYTES_MAX:
        raise EncodingError("group_id", f"{len(group_id)} bytes exceed the limit of {STRING_BYTES_MAX}")
    value_bytes = None
    if type(value) is Update:
        head = UPDATE_HEAD.pack(VERSION, value.snapshot_epoch, value.leader_epoch, value.start_offset)
        value_bytes = with_batches(head, value)
    elif type(value) is Snapshot:
        epochs = value.snapshot_epoch, value.state_epoch, value.leader_epoch
        times = value.create_timestamp, value.write_timestamp
        value_bytes = with_batches(SNAPSHOT_HEAD.pack(VERSION, *epochs, value.start_offset, *times), value)
    kind = UPDATE_TYPE if type(value) is Update else SNAPSHOT_TYPE
    tail = KEY_TAIL.pack(key.topic_id, key.partition)
    return b"%b%b%b" % (KEY_HEAD.pack(kind, len(group_id)), group_id, tail), value_bytes


def with_batches(head: bytes, value: Snapshot | Update) -> bytes:
    pack, batches = BATCH.pack, value.state_batches
    parts = [head, unsigned_varint(len(batches) + 1)]
    parts += [pack(first, last, state, count) for first, last, count, state in batches]
    count = value.delivery_complete_count
    parts.append(b"\0" if count == NO_COUNT else COUNT_TAG.pack(1, 0, 4, count))
    return b"".join(parts)


def unsigned_varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + unsigned_varint(number >> 7)


def decode(key_bytes: bytes | memoryview, value_bytes: bytes | memoryview | None) -> Entry | None:
    """Decode a record; None if its type is unknown, because a newer version wrote it."""
    if len(key_bytes) < TYPE_SIZE:
        raise ProtocolError("key", "a record of __share_group_state begins with two bytes for its type")
    kind = int.from_bytes(key_bytes[:TYPE_SIZE], "big", signed=True)
    found: ShareSnapshotKey | ShareUpdateKey
    if kind == SNAPSHOT_TYPE:
        found = ShareSnapshotKey.decode(key_bytes[TYPE_SIZE:], VERSION)
    elif kind == UPDATE_TYPE:
        found = ShareUpdateKey.decode(key_bytes[TYPE_SIZE:], VERSION)
    else:
        return None
    key = ShareKey(found.group_id, found.topic_id, found.partition)
    if value_bytes is None:
        return Entry(key, None)
    if len(value_bytes) < TYPE_SIZE:
        raise ProtocolError("value", "the two bytes of the version are missing")
    version = int.from_bytes(value_bytes[:TYPE_SIZE], "big", signed=True)
    decoded = decode_snapshot if kind == SNAPSHOT_TYPE else decode_update
    return Entry(key, decoded(value_bytes[TYPE_SIZE:], version))


def decode_snapshot(data: bytes | memoryview, version: int) -> Snapshot:
    value = ShareSnapshotValue.decode(data, version)
    return Snapshot(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        value.create_timestamp,
        value.write_timestamp,
        batches_of(value.state_batches),
    )


def decode_update(data: bytes | memoryview, version: int) -> Update:
    value = ShareUpdateValue.decode(data, version)
    return Update(
        value.snapshot_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        batches_of(value.state_batches),
    )


StateBatchItem = (
    ShareSnapshotValue.StateBatch
    | ShareUpdateValue.StateBatch
    | WriteShareGroupStateRequest.WriteStateData.PartitionData.StateBatch
)


def batches_of(items: Iterable[StateBatchItem]) -> list[StateBatch]:
    """Batches of a record or of a request."""
    return [
        StateBatch(item.first_offset, item.last_offset, item.delivery_count, item.delivery_state)
        for item in items
    ]
