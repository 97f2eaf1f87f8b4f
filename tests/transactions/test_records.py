"""Records of `__transaction_state`: the bytes of Apache Kafka 4.3.1, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.errors import EncodingError
from barnabas.protocol.log_records.transaction_state import TransactionLogKey, TransactionLogValue
from barnabas.transactions.records import Entry, decode, encode, fitted, value_version
from barnabas.transactions.states import State

KEY = TransactionLogKey(transactional_id="tx")
ONGOING = TransactionLogValue(
    producer_id=7,
    previous_producer_id=7,
    producer_epoch=3,
    transaction_timeout_ms=60_000,
    transaction_status=1,
    transaction_partitions=[TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[0, 2])],
    transaction_last_update_timestamp_ms=1_000,
    transaction_start_timestamp_ms=900,
    client_transaction_version=2,
)
ONGOING_BYTES = (
    "0001"  # version
    "0000000000000007" "0003" "0000ea60" "01"
    "02" "0274" "03" "00000000" "00000002" "00"  # one topic, two partitions
    "00000000000003e8" "0000000000000384"
    "02" "00" "08" "0000000000000007" "02" "02" "0002"  # tags: the id before, the client's version
)  # fmt: skip


def test_keys_and_values_are_written_as_by_apache_kafka() -> None:
    key, value = encode(Entry(KEY, ONGOING, 1))
    assert key.hex() == "000000027478"
    assert value is not None
    assert value.hex() == ONGOING_BYTES


def test_what_is_written_is_read() -> None:
    assert decode(*encode(Entry(KEY, ONGOING, 1))) == Entry(KEY, ONGOING, 1)


def test_an_empty_state_has_no_partitions_at_all() -> None:
    empty = TransactionLogValue(producer_id=7, transaction_status=0, transaction_partitions=None)
    entry = decode(*encode(Entry(KEY, empty, 0)))
    assert entry is not None and entry.value is not None
    assert entry.value.transaction_partitions is None


def test_a_tombstone_has_a_key_alone() -> None:
    assert encode(Entry(KEY, None)) == (b"\0\0\0\2tx", None)
    assert decode(b"\0\0\0\2tx", None) == Entry(KEY, None)


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_the_feature_decides_on_the_version(level: int, version: int) -> None:
    assert value_version(level) == version


def test_the_first_version_leaves_out_fields_that_it_lacks() -> None:
    value = TransactionLogValue(producer_id=7, previous_producer_id=7, client_transaction_version=2)
    assert fitted(value, 0) == TransactionLogValue(producer_id=7)


def test_the_first_version_does_not_lose_a_producer_id() -> None:
    with pytest.raises(KafkaError) as refused:
        fitted(TransactionLogValue(producer_id=7, next_producer_id=8), 0)
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_records_of_a_newer_type_are_not_known() -> None:
    assert decode(b"\0\1\0\2tx", b"\0\0") is None


BAD: list[tuple[str, str | None]] = [
    ("", None),
    ("00", None),
    ("0000", None),
    ("00000005747874", None),
    ("000000027478", ""),
    ("000000027478", "0001"),
    ("000000027478", "0007" + ONGOING_BYTES[4:]),
    ("000000027478", ONGOING_BYTES[:-8]),
    ("000000027478", ONGOING_BYTES.replace("0000ea6001", "0000ea6009")),
]


@pytest.mark.parametrize(("key", "value"), BAD)
def test_bad_bytes_are_refused(key: str, value: str | None) -> None:
    with pytest.raises((ProtocolError, KafkaError)):
        decode(bytes.fromhex(key), None if value is None else bytes.fromhex(value))


@settings(deadline=None)
@given(
    topics=st.none()
    | st.lists(st.tuples(st.text(max_size=300), st.lists(st.integers(0, 2**31 - 1), max_size=200))),
    ids=st.tuples(*[st.integers(-1, 2**63 - 1)] * 3),
    shorts=st.tuples(*[st.integers(-1, 2**15 - 1)] * 3),
    times=st.tuples(*[st.integers(-1, 2**63 - 1)] * 2),
    timeout_ms=st.integers(-(2**31), 2**31 - 1),
    state=st.sampled_from(State),
)
def test_values_packed_by_hand_are_those_of_the_codec(
    topics: list[tuple[str, list[int]]] | None,
    ids: tuple[int, int, int],
    shorts: tuple[int, int, int],
    times: tuple[int, int],
    timeout_ms: int,
    state: State,
) -> None:
    schema = TransactionLogValue.PartitionsSchema
    value = TransactionLogValue(
        producer_id=ids[0],
        previous_producer_id=ids[1],
        next_producer_id=ids[2],
        producer_epoch=shorts[0],
        next_producer_epoch=shorts[1],
        client_transaction_version=shorts[2],
        transaction_timeout_ms=timeout_ms,
        transaction_status=state,
        transaction_partitions=None
        if topics is None
        else [schema(topic=name, partition_ids=numbers) for name, numbers in topics],
        transaction_last_update_timestamp_ms=times[0],
        transaction_start_timestamp_ms=times[1],
    )
    assert encode(Entry(KEY, value, 1))[1] == b"\0\1" + value.encode(1)


def test_keys_packed_by_hand_are_those_of_the_codec() -> None:
    for name in ("", "tx", "ü" * 300, "x" * 32_767):
        key = TransactionLogKey(transactional_id=name)
        assert encode(Entry(key, None))[0] == b"\0\0" + key.encode(0)


def test_an_id_that_is_too_long_is_refused() -> None:
    with pytest.raises(EncodingError):
        encode(Entry(TransactionLogKey(transactional_id="ü" * 20_000), None))
