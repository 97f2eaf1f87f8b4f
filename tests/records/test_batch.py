import struct

import pytest
from kafka.record.default_records import DefaultRecordBatch

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records import batch
from barnabas.records.batch import BATCH_OVERHEAD, BatchHeader, TimestampType, peek
from barnabas.records.record import build_batch
from records.samples import NOW_MS, patched, record, two_records


def test_a_header_shows_every_field_that_was_written() -> None:
    built = build_batch(
        [record(), record(timestamp=NOW_MS + 5)],
        base_offset=7,
        producer_id=11,
        producer_epoch=3,
        base_sequence=40,
        partition_leader_epoch=9,
        transactional=True,
    )
    header = peek(built)
    assert header.size == len(built) == header.batch_length + 12
    assert (header.base_offset, header.last_offset, header.next_offset) == (7, 8, 9)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 5)
    assert (header.producer_id, header.producer_epoch) == (11, 3)
    assert (header.base_sequence, header.last_sequence) == (40, 41)
    assert (header.partition_leader_epoch, header.magic, header.record_count) == (9, 2, 2)
    assert header.is_transactional and not header.is_control
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.compression == 0 and header.delete_horizon_ms is None


def test_the_last_sequence_starts_again_at_zero_after_the_largest() -> None:
    header = peek(two_records(producer_id=1, producer_epoch=0, base_sequence=2**31 - 1))
    assert header.last_sequence == 0
    assert peek(two_records()).last_sequence == -1


def test_assigning_an_offset_keeps_the_checksum_right() -> None:
    built = two_records()
    batch.assign(built, 0, 1234, 56)
    header = batch.validate(built)
    assert (header.base_offset, header.partition_leader_epoch) == (1234, 56)
    assert DefaultRecordBatch(bytes(built)).validate_crc()


def test_a_header_assigns_itself_and_its_buffer() -> None:
    built = bytearray(b"..") + two_records()
    header = peek(built, 2)
    header.assign(memoryview(built), 99, 3, 2)
    assert batch.validate(built, 2) == header
    assert (header.base_offset, header.partition_leader_epoch) == (99, 3)


def test_append_time_is_stamped_with_a_new_checksum() -> None:
    built = two_records()
    batch.stamp_append_time(built, 0, 77)
    header = batch.validate(built)
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 77)
    assert [found.timestamp for found in DefaultRecordBatch(bytes(built))] == [77, 77]


def test_headers_walks_over_all_whole_batches() -> None:
    one, two = two_records(), two_records(base_offset=2)
    buffer = one + two + two[:70]
    assert [(at, header.base_offset) for at, header in batch.headers(buffer)] == [(0, 0), (len(one), 2)]
    assert list(batch.headers(b"")) == []


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda b: b[:-1], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:60], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b"", ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:16] + b"\x03" + b[17:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:16] + b"\xff" + b[17:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:16] + b"\x01" + b[17:], ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (lambda b: b[:8] + struct.pack(">i", 13) + b[12:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:8] + struct.pack(">i", -5) + b[12:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:8] + struct.pack(">i", 40) + b[12:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:8] + struct.pack(">i", 2**31 - 1) + b[12:], ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_a_damaged_batch_does_not_validate(damage, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refusal:
        batch.validate(damage(bytes(two_records())))
    assert refusal.value.code == code


def test_a_header_needs_all_its_bytes() -> None:
    with pytest.raises(KafkaError, match="60 are left"):
        BatchHeader(bytes(two_records())[: BATCH_OVERHEAD - 1])


def test_headers_refuses_a_batch_smaller_than_its_header() -> None:
    with pytest.raises(KafkaError) as refusal:
        list(batch.headers(patched(two_records(), 8, struct.pack(">i", 20))))
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
