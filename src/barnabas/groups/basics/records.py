"""A record of `__consumer_offsets`: a key that names its type, and a value, or none for a tombstone.

In: the bytes of key and value. Two bytes precede each: the record type before the key, the version before the
value. Out: messages, and back the bytes that Apache Kafka 4.3.1 writes.
Does not know: batches, offsets, what the records mean.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import NamedTuple

from barnabas.protocol import Message, ProtocolError
from barnabas.protocol.log_records import consumer_offsets
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.types import NULL_UUID

TYPE_SIZE = 2
SHORT_MAX = 2**15 - 1
ONE_BYTE_VARINT_MAX = 127
TOPIC_ID_SIZE = 16
pack_size = Struct(">h").pack
pack_partition = Struct(">i").pack
pack_head = Struct(">hqiB").pack  # version, offset, leader epoch, size of the metadata
pack_tail = Struct(">qBBB").pack  # time, one tagged field, its number, its size
VALUE_VERSIONS = {"GroupMetadataValue": 3}  # all others use version 0, except offsets (below)
VALUE_VERSION_WITH_EXPIRY = 1
VALUE_VERSION_OF_OFFSETS = 3
VALUE_VERSION_WITH_TOPIC_ID = 4


KeyAndValue = tuple[bytes, bytes | None]


class Entry(NamedTuple):
    """A record. Without a value it is a tombstone and deletes the key."""

    key: Message
    value: Message | None


def encode(entry: Entry) -> KeyAndValue:
    """Encode key and value as a record holds them."""
    key, value = entry
    if type(value) is OffsetCommitValue and type(key) is OffsetCommitKey and value.expire_timestamp == -1:
        frame = offset_frame(key.group, key.topic, value.topic_id, value.commit_timestamp)
        if frame is not None:
            found = frame.encode(key.partition, value.offset, value.leader_epoch, value.metadata)
            if found is not None:
                return found
    return encode_any(entry)


class OffsetFrame:
    """The bytes that the records of one commit to one topic share. Most records are offsets, so this is
    worthwhile."""

    __slots__ = ("_head", "_tail")

    def __init__(self, head: bytes, tail: bytes) -> None:
        self._head = head  # of keys
        self._tail = tail  # of values

    def encode(self, partition: int, offset: int, leader_epoch: int, metadata: str) -> KeyAndValue | None:
        """Encode one offset; None if the metadata is long."""
        key = self._head + pack_partition(partition)
        if not metadata:
            return key, pack_head(VALUE_VERSION_WITH_TOPIC_ID, offset, leader_epoch, 1) + self._tail
        data = metadata.encode()
        size = len(data) + 1
        if size > ONE_BYTE_VARINT_MAX:
            return None
        return key, pack_head(VALUE_VERSION_WITH_TOPIC_ID, offset, leader_epoch, size) + data + self._tail


def offset_frame(group: str, topic: str, topic_id: bytes, commit_timestamp: int) -> OffsetFrame | None:
    """The frame of a commit; None for rare forms: without a topic id, or with very long names."""
    if topic_id == NULL_UUID:
        return None
    group_name, topic_name = group.encode(), topic.encode()
    if len(group_name) > SHORT_MAX or len(topic_name) > SHORT_MAX:
        return None
    return OffsetFrame(
        b"\0\1%b%b%b%b" % (pack_size(len(group_name)), group_name, pack_size(len(topic_name)), topic_name),
        pack_tail(commit_timestamp, 1, 0, TOPIC_ID_SIZE) + topic_id,
    )


def encode_any(entry: Entry) -> KeyAndValue:
    key, value = entry
    key_bytes = type_prefix(type(key)) + key.encode(0)
    if value is None:
        return key_bytes, None
    version = offset_version(value) if isinstance(value, OffsetCommitValue) else value_version(type(value))
    return key_bytes, version.to_bytes(TYPE_SIZE, "big") + value.encode(version)


def decode(key_bytes: bytes | memoryview, value_bytes: bytes | memoryview | None) -> Entry | None:
    """Decode a record; None if its type is unknown, because a newer version wrote it."""
    if len(key_bytes) < TYPE_SIZE:
        raise ProtocolError("key", "a record of __consumer_offsets begins with two bytes for its type")
    classes = record_types().get(int.from_bytes(key_bytes[:TYPE_SIZE], "big", signed=True))
    if classes is None:
        return None
    key_class, value_class = classes
    key = key_class.decode(key_bytes[TYPE_SIZE:], 0)
    if value_bytes is None:
        return Entry(key, None)
    if len(value_bytes) < TYPE_SIZE:
        raise ProtocolError(value_class.__name__, "the two bytes of the version are missing")
    version = int.from_bytes(value_bytes[:TYPE_SIZE], "big", signed=True)
    return Entry(key, value_class.decode(value_bytes[TYPE_SIZE:], version))


def offset_version(value: OffsetCommitValue) -> int:
    """Only version 1 has an expiry time, only version 4 a topic id."""
    if value.expire_timestamp != -1:
        return VALUE_VERSION_WITH_EXPIRY
    return VALUE_VERSION_OF_OFFSETS if value.topic_id == NULL_UUID else VALUE_VERSION_WITH_TOPIC_ID


@cache
def value_version(value_class: type[Message]) -> int:
    return VALUE_VERSIONS.get(value_class.__name__, 0)


@cache
def type_prefix(key_class: type[Message]) -> bytes:
    kind = key_class.schema.key
    assert kind is not None, f"{key_class.__name__} is no key of __consumer_offsets"
    return kind.to_bytes(TYPE_SIZE, "big")


@cache
def record_types() -> dict[int, tuple[type[Message], type[Message]]]:
    """Key and value classes by the number of the type."""
    found = {}
    for name, key_class in vars(consumer_offsets).items():
        if name.endswith("Key") and isinstance(key_class, type) and issubclass(key_class, Message):
            value_class: type[Message] = getattr(consumer_offsets, name.removesuffix("Key") + "Value")
            assert key_class.schema.key is not None
            found[key_class.schema.key] = (key_class, value_class)
    return found
