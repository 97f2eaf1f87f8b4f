"""A record of `__transaction_state`: a transactional id and its state, or a tombstone.

In: the bytes of key and value. Two bytes precede each: the record type before the key, the version before the
value. Out: messages, and back the bytes that Apache Kafka 4.3.1 writes: version 1 once `transaction.version`
is at least 1.
Does not know: batches, offsets, what the records mean.
"""

from __future__ import annotations

from struct import Struct, pack
from typing import NamedTuple

from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.errors import EncodingError
from barnabas.protocol.log_records.transaction_state import TransactionLogKey, TransactionLogValue
from barnabas.transactions.states import State

TYPE_SIZE = 2
STATES = frozenset(State)
KEY_HEAD = Struct(">hh")  # type, length of the id
VALUE_HEAD = Struct(">hqhib")  # version, producer id, epoch, timeout, state
VALUE_TIMES = Struct(">qq")
ID_TAG = Struct(">BBq")
SHORT_TAG = Struct(">BBh")
KEY_TYPE = 0
STRING_BYTES_MAX = 2**15 - 1
VALUE_VERSION_MAX = 1
NO_PRODUCER_ID = -1
FLEXIBLE_SINCE = 1  # level of transaction.version


class Entry(NamedTuple):
    """A record. Without a value it is a tombstone and deletes the id. `version` is that of the value."""

    key: TransactionLogKey
    value: TransactionLogValue | None
    version: int = VALUE_VERSION_MAX


def value_version(transaction_version: int) -> int:
    """The version of values at a level of the feature `transaction.version`."""
    return 1 if transaction_version >= FLEXIBLE_SINCE else 0


def fitted(value: TransactionLogValue, version: int) -> TransactionLogValue:
    """The value as far as the version can hold it: version 0 has only the current producer id, and no
    transaction versions. Raises KafkaError if a producer id that was promised to a client would be lost."""
    if version >= VALUE_VERSION_MAX:
        return value
    if value.next_producer_id != NO_PRODUCER_ID:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "the cluster has not finalized transaction.version 1, which the record needs",
        )
    value.previous_producer_id, value.client_transaction_version = NO_PRODUCER_ID, 0
    return value


def encode(entry: Entry) -> tuple[bytes, bytes | None]:
    """Encode key and value as a record holds them."""
    key, value, version = entry
    name = key.transactional_id.encode()
    if len(name) > STRING_BYTES_MAX:
        raise EncodingError(
            "TransactionLogKey.transactional_id", f"{len(name)} bytes exceed the limit of {STRING_BYTES_MAX}"
        )
    key_bytes = KEY_HEAD.pack(KEY_TYPE, len(name)) + name
    if value is None:
        return key_bytes, None
    if version == VALUE_VERSION_MAX and value.unknown_tagged_fields is None:
        return key_bytes, value_bytes(value)
    return key_bytes, version.to_bytes(TYPE_SIZE, "big") + value.encode(version)


def value_bytes(value: TransactionLogValue) -> bytes:
    """Encode a value of version 1 by hand: every transaction writes three of them."""
    topics = value.transaction_partitions
    head = VALUE_HEAD.pack(
        VALUE_VERSION_MAX,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        value.transaction_status,
    )
    parts = [head, b"\0" if topics is None else varint(len(topics) + 1)]
    for topic in topics or ():
        name, numbers = topic.topic.encode(), topic.partition_ids
        count = len(numbers)
        parts += (varint(len(name) + 1), name, varint(count + 1), pack(f">{count}ix", *numbers))
    times = value.transaction_last_update_timestamp_ms, value.transaction_start_timestamp_ms
    parts.append(VALUE_TIMES.pack(*times))
    tags = []
    if value.previous_producer_id != NO_PRODUCER_ID:
        tags.append(ID_TAG.pack(0, 8, value.previous_producer_id))
    if value.next_producer_id != NO_PRODUCER_ID:
        tags.append(ID_TAG.pack(1, 8, value.next_producer_id))
    if value.client_transaction_version:
        tags.append(SHORT_TAG.pack(2, 2, value.client_transaction_version))
    if value.next_producer_epoch != -1:
        tags.append(SHORT_TAG.pack(3, 2, value.next_producer_epoch))
    return b"".join((*parts, bytes((len(tags),)), *tags))


def varint(number: int) -> bytes:
    """Encode an unsigned varint; most are below 128."""
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + varint(number >> 7)


def decode(key_bytes: bytes | memoryview, value_bytes: bytes | memoryview | None) -> Entry | None:
    """Decode a record; None if its type is unknown, because a newer version wrote it."""
    if len(key_bytes) < TYPE_SIZE:
        raise ProtocolError("key", "a record of __transaction_state begins with two bytes for its type")
    if int.from_bytes(key_bytes[:TYPE_SIZE], "big", signed=True) != KEY_TYPE:
        return None
    key = TransactionLogKey.decode(key_bytes[TYPE_SIZE:], KEY_TYPE)
    if value_bytes is None:
        return Entry(key, None)
    if len(value_bytes) < TYPE_SIZE:
        raise ProtocolError("TransactionLogValue", "the two bytes of the version are missing")
    version = int.from_bytes(value_bytes[:TYPE_SIZE], "big", signed=True)
    value = TransactionLogValue.decode(value_bytes[TYPE_SIZE:], version)
    if value.transaction_status not in STATES:
        raise ProtocolError("TransactionLogValue", f"unknown state {value.transaction_status}")
    return Entry(key, value, version)
