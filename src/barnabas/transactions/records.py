"""One record of `__transaction_state`: a transactional id, and all that is known of it, or nothing any more.

In: the bytes of key and value, each behind two bytes: the type of the record in front of a key, the version
in front of a value. Out: messages, and back to the bytes that Apache Kafka 4.3.1 writes: version 1 once
`transaction.version` is at least 1.
Does not know: batches, offsets, what the records mean.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.log_records.transaction_state import TransactionLogKey, TransactionLogValue
from barnabas.transactions.states import State

TYPE_SIZE = 2
STATES = frozenset(State)
KEY_TYPE = 0
VALUE_VERSION_MAX = 1
NO_PRODUCER_ID = -1
FLEXIBLE_SINCE = 1  # level of transaction.version


class Entry(NamedTuple):
    """A record; without a value it is a tombstone, and the id is gone. `version` is the one of the value."""

    key: TransactionLogKey
    value: TransactionLogValue | None
    version: int = VALUE_VERSION_MAX


def value_version(transaction_version: int) -> int:
    """The version of values that a level of the feature `transaction.version` asks for."""
    return 1 if transaction_version >= FLEXIBLE_SINCE else 0


def fitted(value: TransactionLogValue, version: int) -> TransactionLogValue:
    """The value as the version can say it: the first one knows no producer id but the current, and no
    transaction versions. KafkaError: an id would be lost that was promised to a producer."""
    if version >= VALUE_VERSION_MAX:
        return value
    if value.next_producer_id != NO_PRODUCER_ID:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the cluster has not finalized transaction versions")
    value.previous_producer_id, value.client_transaction_version = NO_PRODUCER_ID, 0
    return value


def encode(entry: Entry) -> tuple[bytes, bytes | None]:
    """Key and value as they stand in a record."""
    key, value, version = entry
    key_bytes = KEY_TYPE.to_bytes(TYPE_SIZE, "big") + key.encode(KEY_TYPE)
    if value is None:
        return key_bytes, None
    return key_bytes, version.to_bytes(TYPE_SIZE, "big") + value.encode(version)


def decode(key_bytes: bytes | memoryview, value_bytes: bytes | memoryview | None) -> Entry | None:
    """A record's messages, or None when its type is not known: written by something newer."""
    if len(key_bytes) < TYPE_SIZE:
        raise ProtocolError("key", "a record of __transaction_state needs two bytes that say its type")
    if int.from_bytes(key_bytes[:TYPE_SIZE], "big", signed=True) != KEY_TYPE:
        return None
    key = TransactionLogKey.decode(key_bytes[TYPE_SIZE:], KEY_TYPE)
    if value_bytes is None:
        return Entry(key, None)
    if len(value_bytes) < TYPE_SIZE:
        raise ProtocolError("TransactionLogValue", "two bytes with the version are missing")
    version = int.from_bytes(value_bytes[:TYPE_SIZE], "big", signed=True)
    value = TransactionLogValue.decode(value_bytes[TYPE_SIZE:], version)
    if value.transaction_status not in STATES:
        raise ProtocolError("TransactionLogValue", f"no state has the number {value.transaction_status}")
    return Entry(key, value, version)
