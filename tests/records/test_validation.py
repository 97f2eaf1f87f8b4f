"""A leader's demands. The codes are those that Apache Kafka 4.3.1 answered to the same bytes."""

import struct
import zlib
from dataclasses import replace

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records import batch
from barnabas.records.batch import APPEND_TIME_FLAG, TRANSACTIONAL_FLAG, TimestampType
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch, read_records
from barnabas.records.validation import AppendRules, RecordsRejected, Validation, validate_produce
from records.samples import NOW_MS, patched, record, two_records

VERSION = 11
PLAIN = AppendRules()
COMPACTED = AppendRules(compacted=True)
APPEND_TIME = AppendRules(append_time=True)
UNCHECKED = AppendRules(validation=Validation.NONE)
STRICT = AppendRules(validation=Validation.STRICT)


def accept(records: bytes | bytearray, rules: AppendRules = PLAIN, version: int = VERSION):
    return validate_produce(memoryview(bytearray(records)), rules, version, NOW_MS, "topic-0")


def refuse(
    records: bytes | bytearray | None, rules: AppendRules = PLAIN, version: int = VERSION
) -> KafkaError:
    view = None if records is None else memoryview(bytearray(records))
    with pytest.raises(KafkaError) as refusal:
        validate_produce(view, rules, version, NOW_MS, "topic-0", in_a_thread)
    return refusal.value


def in_a_thread() -> None:
    """The pause of those who may take their time."""


def legacy(magic: int) -> bytes:
    body = (
        struct.pack(">bb", magic, 0)
        + (struct.pack(">q", NOW_MS) if magic else b"")
        + b"\0\0\0\x01k\0\0\0\x01v"
    )
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def int32(number: int) -> bytes:
    return struct.pack(">i", number)


def test_an_ordinary_batch_passes_as_it_is() -> None:
    sent = two_records()
    view = memoryview(bytearray(sent))
    accepted, header = validate_produce(view, PLAIN, VERSION, NOW_MS, "topic-0")
    assert accepted is view and accepted == sent
    assert header == batch.peek(sent)


@pytest.mark.parametrize(
    ("records", "code"),
    [
        pytest.param(None, ErrorCode.INVALID_RECORD, id="null"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="empty"),
        pytest.param(bytes(11), ErrorCode.INVALID_RECORD, id="eleven bytes"),
        pytest.param(bytes(40), ErrorCode.CORRUPT_MESSAGE, id="size zero"),
        pytest.param(bytes(100), ErrorCode.CORRUPT_MESSAGE, id="size zero in more bytes"),
        pytest.param(two_records()[:-1], ErrorCode.INVALID_RECORD, id="cut off"),
        pytest.param(two_records() + bytes(12), ErrorCode.CORRUPT_MESSAGE, id="nonsense behind"),
        pytest.param(two_records() * 2, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(two_records()[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE, id="checksum"),
        pytest.param(patched(two_records(), 16, b"\x03"), ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
        pytest.param(patched(two_records(), 16, b"\xff"), ErrorCode.CORRUPT_MESSAGE, id="magic -1"),
        pytest.param(
            patched(two_records(), 16, b"\x01"), ErrorCode.INVALID_RECORD, id="magic 1 in a v2 batch"
        ),
        pytest.param(legacy(0), ErrorCode.INVALID_RECORD, id="magic 0"),
        pytest.param(legacy(1), ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(patched(two_records(), 8, int32(13)), ErrorCode.CORRUPT_MESSAGE, id="size 13"),
        pytest.param(
            two_records()[:8] + int32(40) + two_records()[12:52], ErrorCode.CORRUPT_MESSAGE, id="size 40"
        ),
        pytest.param(patched(two_records(), 8, int32(2**31 - 1)), ErrorCode.INVALID_RECORD, id="huge size"),
    ],
)
def test_records_other_than_one_whole_batch_are_refused(records: bytes | None, code: ErrorCode) -> None:
    error = refuse(records)
    assert error.code == code
    assert not isinstance(error, RecordsRejected)


@pytest.mark.parametrize(
    ("records", "code"),
    [
        pytest.param(two_records(base_offset=5), ErrorCode.INVALID_RECORD, id="base offset"),
        pytest.param(
            patched(two_records(), 23, int32(-1)), ErrorCode.INVALID_RECORD, id="negative last offset"
        ),
        pytest.param(
            patched(two_records(), 23, int32(5)), ErrorCode.INVALID_RECORD, id="offsets and count differ"
        ),
        pytest.param(patched(two_records(), 57, int32(0)), ErrorCode.INVALID_RECORD, id="no records"),
        pytest.param(patched(two_records(), 57, int32(-3)), ErrorCode.INVALID_RECORD, id="negative count"),
        pytest.param(
            patched(patched(two_records(), 57, int32(-1)), 23, int32(-2)),
            ErrorCode.INVALID_RECORD,
            id="all negative",
        ),
        pytest.param(two_records(control=True), ErrorCode.INVALID_RECORD, id="control batch"),
        pytest.param(
            two_records(producer_id=5, producer_epoch=0), ErrorCode.INVALID_RECORD, id="no sequence"
        ),
    ],
)
def test_a_header_that_contradicts_itself_is_rejected_by_the_log(records: bytes, code: ErrorCode) -> None:
    error = refuse(records)
    assert error.code == code
    assert isinstance(error, RecordsRejected) and error.record_errors == ()


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(two_records() + bytes(5), id="five bytes behind"),
        pytest.param(two_records() + two_records()[:50], id="half a batch behind"),
    ],
)
def test_an_incomplete_batch_behind_the_first_is_dropped(records: bytearray) -> None:
    accepted, header = accept(records)
    assert accepted == two_records() and header.size == len(accepted)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(patched(two_records(), 21, b"\x41\x00"), id="unused attribute bits"),
        pytest.param(two_records(producer_id=55, producer_epoch=-1, base_sequence=0), id="epoch -1"),
        pytest.param(two_records(producer_id=-2, producer_epoch=0, base_sequence=0), id="producer id -2"),
        pytest.param(two_records(base_sequence=3), id="sequence without producer"),
        pytest.param(build_batch([record(timestamp=-5)]), id="timestamp before 1970"),
        pytest.param(build_batch([record(timestamp=-1)]), id="no timestamp"),
    ],
)
def test_batches_that_kafka_accepts_are_accepted(records: bytearray) -> None:
    assert accept(records)[0] == records


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    assert (
        refuse(patched(two_records(), 21, struct.pack(">h", codec))).code
        == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )


def test_zstd_needs_version_7() -> None:
    sent = two_records(compression=Compression.ZSTD)
    assert refuse(sent, version=6).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert accept(sent, version=7)[0] == sent


@pytest.mark.parametrize("codec", list(Compression))
def test_without_validation_the_records_are_not_opened(codec: Compression) -> None:
    sent = patched(two_records(compression=codec), 62, b"\xff\xff\xff")
    assert accept(sent, UNCHECKED)[0] == sent


def test_a_batch_larger_than_the_topic_allows_is_too_large() -> None:
    size = len(two_records())
    assert accept(two_records(), AppendRules(max_message_bytes=size))
    assert refuse(two_records(), AppendRules(max_message_bytes=size - 1)).code == ErrorCode.MESSAGE_TOO_LARGE
    assert refuse(two_records(), AppendRules(segment_bytes=size - 1)).code == ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("codec", list(Compression))
def test_a_compacted_topic_needs_keys(codec: Compression) -> None:
    sent = build_batch([record(), record(key=None), record(key=None)], compression=codec)
    error = refuse(sent, COMPACTED)
    assert isinstance(error, RecordsRejected) and error.code == ErrorCode.INVALID_RECORD
    problem = "Compacted topic cannot accept message without key in topic partition topic-0"
    assert error.record_errors == ((1, problem), (2, problem))
    keyed = two_records(compression=codec)
    assert accept(keyed, COMPACTED)[0] == keyed


def test_records_from_the_future_are_named() -> None:
    late = NOW_MS + 3_600_001
    error = refuse(build_batch([record(), record(timestamp=late), record(timestamp=late + 1)]))
    assert isinstance(error, RecordsRejected) and error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1, 2]
    assert f"Timestamp {late} of message with offset 1 is out of range" in error.record_errors[0][1]
    assert accept(build_batch([record(timestamp=NOW_MS + 3_600_000)]))


def test_records_from_the_past_are_named_where_the_topic_limits_it() -> None:
    rules = AppendRules(timestamp_before_max_ms=1000)
    error = refuse(build_batch([record(), record(timestamp=NOW_MS - 1001)]), rules)
    assert isinstance(error, RecordsRejected) and error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1]
    assert accept(build_batch([record(timestamp=NOW_MS - 1000)]), rules)
    assert accept(build_batch([record(timestamp=-1), record(timestamp=-1)]), rules)
    assert accept(build_batch([record(timestamp=0)]))


def test_a_bad_timestamp_outweighs_a_missing_key() -> None:
    error = refuse(build_batch([record(key=None), record(timestamp=NOW_MS * 2)]), COMPACTED)
    assert isinstance(error, RecordsRejected) and error.code == ErrorCode.INVALID_TIMESTAMP
    assert len(error.record_errors) == 2


def test_a_header_that_exaggerates_its_largest_timestamp_is_corrected() -> None:
    accepted, header = accept(patched(two_records(), 35, struct.pack(">q", NOW_MS * 2)))
    assert header.max_timestamp == NOW_MS
    assert batch.validate(accepted) == header


def test_a_header_cannot_hide_that_its_records_are_from_the_future() -> None:
    hidden = patched(build_batch([record(timestamp=NOW_MS * 2)]), 35, struct.pack(">q", NOW_MS))
    assert refuse(hidden).code == ErrorCode.INVALID_TIMESTAMP


def test_append_time_replaces_the_producers_time() -> None:
    accepted, header = accept(build_batch([record(timestamp=1), record(timestamp=NOW_MS * 2)]), APPEND_TIME)
    assert batch.validate(accepted) == header
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [found.timestamp for found in read_records(accepted)] == [NOW_MS, NOW_MS]


@pytest.mark.parametrize("rules", [APPEND_TIME, replace(APPEND_TIME, compacted=True)])
def test_append_time_is_not_for_producers_to_set(rules: AppendRules) -> None:
    error = refuse(two_records(append_time_ms=NOW_MS), rules)
    assert isinstance(error, RecordsRejected) and error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]


def test_a_producers_append_time_is_taken_back_on_a_create_time_topic() -> None:
    accepted, header = accept(two_records(append_time_ms=NOW_MS))
    assert batch.validate(accepted) == header
    assert not header.attributes & APPEND_TIME_FLAG


@pytest.mark.parametrize("target", list(Compression))
@pytest.mark.parametrize("source", list(Compression))
def test_the_topics_codec_replaces_the_producers(source: Compression, target: Compression) -> None:
    sent = build_batch(
        [record(value=b"v" * 100)] * 50,
        compression=source,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
        transactional=True,
    )
    accepted, header = accept(sent, AppendRules(compression=target))
    assert batch.validate(accepted) == header and header.compression == target
    assert read_records(accepted) == read_records(sent)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 3)
    assert header.attributes & TRANSACTIONAL_FLAG
    if source == target:
        assert accepted == sent


def test_recompression_and_append_time_go_together() -> None:
    accepted, header = accept(two_records(), replace(APPEND_TIME, compression=Compression.ZSTD))
    assert batch.validate(accepted) == header
    assert (header.compression, header.timestamp_type) == (Compression.ZSTD, TimestampType.LOG_APPEND_TIME)
    assert header.max_timestamp == NOW_MS


def test_a_batch_that_grows_too_large_uncompressed_is_refused() -> None:
    sent = build_batch([record(value=bytes(5000))], compression=Compression.GZIP)
    rules = AppendRules(compression=Compression.NONE, max_message_bytes=1000)
    assert refuse(sent, rules).code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_records_that_do_not_decompress_are_invalid_and_not_retried(codec: Compression) -> None:
    sent = patched(two_records(), 21, struct.pack(">h", codec))
    assert refuse(sent, COMPACTED).code == ErrorCode.INVALID_RECORD


def test_wrong_offsets_are_corrected_when_records_are_compressed_again() -> None:
    sent = build_batch(
        [Record(4, NOW_MS, b"a", b"1"), Record(9, NOW_MS, b"b", b"2")], compression=Compression.GZIP
    )
    sent = patched(sent, 23, int32(1))
    assert refuse(sent, COMPACTED).code == refuse(sent, STRICT).code == ErrorCode.INVALID_RECORD
    accepted, header = accept(sent, AppendRules(compression=Compression.LZ4))
    assert batch.validate(accepted) == header
    assert [(found.offset, found.key) for found in read_records(accepted)] == [(0, b"a"), (1, b"b")]


def test_only_so_many_record_errors_are_listed() -> None:
    error = refuse(build_batch([record(key=None)] * 2000), COMPACTED)
    assert isinstance(error, RecordsRejected) and len(error.record_errors) == 1000


@pytest.mark.parametrize(
    "rules", [replace(APPEND_TIME, compacted=True), AppendRules(timestamp_after_max_ms=2**63 - 1)]
)
def test_timestamps_beyond_64_bits_are_refused(rules: AppendRules) -> None:
    sent = build_batch([record(timestamp=0), record(timestamp=5)], append_time_ms=None)
    sent = patched(sent, 27, struct.pack(">qq", 2**63 - 1, 2**63 - 1))
    assert refuse(sent, replace(rules, compacted=True)).code == ErrorCode.INVALID_TIMESTAMP
