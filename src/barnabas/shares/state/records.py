"""A record of `__share_group_state`: a snapshot of a share partition, an update to it, or a tombstone.

In: the bytes of key and value. Two bytes precede each: the record type before the key, the version before the
value. Out: entries, and back the bytes that Apache Kafka 4.3.1 writes.
Does not know: batches, offsets, what the records mean.
"""

from __future__ import annotations

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
from barnabas.shares.state.keys import ShareKey

TYPE_SIZE = 2
SNAPSHOT_TYPE, UPDATE_TYPE = 0, 1
VERSION = 0
VERSION_BYTES = VERSION.to_bytes(TYPE_SIZE, "big")
KEY_HEAD = Struct(">hh")  # type, length of the group id
KEY_TAIL = Struct(">16si")
STRING_BYTES_MAX = 2**15 - 1

Value = ShareSnapshotValue | ShareUpdateValue


class Entry(NamedTuple):
    """A record. Without a value it is a tombstone, which has the key of a snapshot."""

    key: ShareKey
    value: Value | None


def encode(entry: Entry) -> tuple[bytes, bytes | None]:
    """Encode key and value as a record holds them."""
    key, value = entry
    group_id = key.group_id.encode()
    if len(group_id) > STRING_BYTES_MAX:
        raise EncodingError("group_id", f"{len(group_id)} bytes exceed the limit of {STRING_BYTES_MAX}")
    kind = UPDATE_TYPE if isinstance(value, ShareUpdateValue) else SNAPSHOT_TYPE
    head = KEY_HEAD.pack(kind, len(group_id))
    key_bytes = b"%b%b%b" % (head, group_id, KEY_TAIL.pack(key.topic_id, key.partition))
    return key_bytes, None if value is None else VERSION_BYTES + value.encode(VERSION)


def decode(key_bytes: bytes | memoryview, value_bytes: bytes | memoryview | None) -> Entry | None:
    """Decode a record; None if its type is unknown, because a newer version wrote it."""
    if len(key_bytes) < TYPE_SIZE:
        raise ProtocolError("key", "a record of __share_group_state begins with two bytes for its type")
    kind = int.from_bytes(key_bytes[:TYPE_SIZE], "big", signed=True)
    value_type: type[ShareSnapshotValue] | type[ShareUpdateValue]
    found: ShareSnapshotKey | ShareUpdateKey
    if kind == SNAPSHOT_TYPE:
        found, value_type = ShareSnapshotKey.decode(key_bytes[TYPE_SIZE:], VERSION), ShareSnapshotValue
    elif kind == UPDATE_TYPE:
        found, value_type = ShareUpdateKey.decode(key_bytes[TYPE_SIZE:], VERSION), ShareUpdateValue
    else:
        return None
    key = ShareKey(found.group_id, found.topic_id, found.partition)
    if value_bytes is None:
        return Entry(key, None)
    if len(value_bytes) < TYPE_SIZE:
        raise ProtocolError(value_type.__name__, "the two bytes of the version are missing")
    version = int.from_bytes(value_bytes[:TYPE_SIZE], "big", signed=True)
    return Entry(key, value_type.decode(value_bytes[TYPE_SIZE:], version))
