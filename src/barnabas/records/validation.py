"""Validation of produced records by a leader, before they are appended to a log.

In: the records of one partition of a Produce request, the topic's rules, the time. Out: the batch to append
(the same bytes, or rebuilt with another codec) and its header, or a KafkaError with Kafka's error code. An
ordinary batch needs a header, a checksum and a check of both ends. All records are read if a rule requires
it: strict validation, compacted topics (keys), `compression.type`, a limit on old timestamps, ids of schemas,
a header with a future timestamp. If that takes long, `NeedsThread` tells the loop to call again in a thread.
Does not know: offsets, epochs, producer sequences, the log.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import (
    APPEND_TIME_FLAG,
    ATTRIBUTES_AT,
    BATCH_OVERHEAD,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    BatchHeader,
    next_size,
)
from barnabas.records.compression import (
    DECOMPRESSED_BYTES_MAX,
    Compression,
    is_one_lz4_frame,
    unsupported,
)
from barnabas.records.crc32c import crc32c
from barnabas.records.recompress import recompress_payload
from barnabas.records.record import build_batch, iter_records, payload, scan
from barnabas.records.record_checks import is_one_plain_record, looks_valid, walk
from barnabas.records.schema_ids import SchemaIds, SchemaRules, check_schema_ids

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
ZSTD_SINCE_VERSION = 7
_ZSTD = int(Compression.ZSTD)  # comparing plain numbers is faster than comparing enum members
RECORD_ERRORS_MAX = 1000  # of one batch in the response

# The loop validates batches up to these sizes, in less than a millisecond. Larger ones need a thread.
LOOP_RECORDS_MAX = 512
LOOP_NAMED_RECORDS_MAX = 256  # whose schemas are looked at, too
LOOP_BYTES_MAX = 64 * 1024  # before and after decompression
LOOP_REPACKED_BYTES_MAX = 16 * 1024  # compressed again
PAUSED_AFTER = 128  # records between two pauses of a thread


class Validation(IntEnum):
    """How closely the records of a batch with a valid header and checksum are checked
    (`barnabas.produce.validation`)."""

    NONE = 0  # not at all
    RELAXED = 1  # both ends of a batch; small ones completely
    STRICT = 2  # every field of every record, as Apache Kafka does


@dataclass(frozen=True, slots=True)
class AppendRules:
    """A topic's settings for produced batches. Built when settings change, not for every batch."""

    max_message_bytes: int = 1_048_588
    segment_bytes: int = 1_073_741_824
    compression: Compression | None = None  # None: keep the producer's codec
    compression_level: int | None = None
    compacted: bool = False
    append_time: bool = False  # message.timestamp.type=LogAppendTime
    timestamp_before_max_ms: int = INT64_MAX
    timestamp_after_max_ms: int = 3_600_000
    validation: Validation = Validation.RELAXED
    schemas: SchemaRules | None = None  # ids of schemas that records must name
    batch_bytes_max: int = field(init=False)
    header_suffices: bool = field(init=False)
    looks_at_ends: bool = field(init=False)
    is_only_strict: bool = field(init=False)  # strict validation is the only rule that reads records
    only_stamps: bool = field(init=False)  # the time of the append goes into the header, records are not read

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_bytes_max", min(self.max_message_bytes, self.segment_bytes))
        is_plain = (
            self.compression is None
            and not self.compacted
            and not self.append_time
            and self.timestamp_before_max_ms == INT64_MAX
            and self.schemas is None
        )
        is_strict = self.validation is Validation.STRICT
        object.__setattr__(self, "header_suffices", is_plain and not is_strict)
        object.__setattr__(self, "is_only_strict", is_plain and is_strict)
        object.__setattr__(self, "looks_at_ends", self.validation is Validation.RELAXED)
        only_stamps = self.append_time and not self.compacted and not is_strict and self.schemas is None
        object.__setattr__(self, "only_stamps", only_stamps)


class RecordsRejected(KafkaError):
    """A batch was refused. `record_errors` (index in the batch, message) may name the invalid records.

    Unlike for other errors, the response to the client has the partition's log start offset.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        record_errors: tuple[tuple[int, str], ...] = (),
        without_key: int = 0,
        *,
        is_misnumbered: bool = False,
    ) -> None:
        """`without_key`: how many records of a compacted topic lack their key. `is_misnumbered`: the header
        of the batch has wrong offsets, counts or sequence numbers."""
        super().__init__(code, message)
        self.record_errors = record_errors
        self.without_key = without_key
        self.is_misnumbered = is_misnumbered


class NeedsThread(KafkaError):
    """All records of a large batch must be read, which must not run on the loop. The batch is unchanged."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, "the batch has to be validated in a thread")


class NeedsSchemas(KafkaError):
    """A registry must be asked about ids of schemas before a batch can be judged. The batch is unchanged."""

    def __init__(self, unknown: dict[SchemaIds, set[bytes]]) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, "a schema registry has to be asked first")
        self.unknown = unknown


def validate_produce(
    records: memoryview | None,
    rules: AppendRules,
    api_version: int,
    now_ms: int,
    topic_partition: object = "",
    pause: Callable[[], None] | None = None,
) -> tuple[memoryview, BatchHeader]:
    """Validate a produced batch. Returns the batch to append and its header. `records` is a writable view:
    timestamps may change in place.

    Raises `NeedsThread` for a batch that would keep the loop busy. In a thread, pass `pause`: it is called
    repeatedly to let the loop run, and `NeedsThread` is not raised. Raises `NeedsSchemas` if the batch names
    schemas that are not known yet.
    """
    if records is None or len(records) < BATCH_OVERHEAD:
        raise _no_batch(records, api_version)
    header = BatchHeader(records)
    size = header.batch_length + LOG_OVERHEAD
    if size != len(records) or header.magic != MAGIC:
        records = _only_batch(records, api_version)
        size = len(records)
    attributes = header.attributes
    codec = attributes & COMPRESSION_MASK
    if codec == _ZSTD and api_version < ZSTD_SINCE_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce version {api_version} does not allow zstd compression",
        )
    if header.base_offset:
        raise RecordsRejected(
            ErrorCode.INVALID_RECORD,
            f"the base offset of a produced batch must be 0, not {header.base_offset}",
        )
    if size > rules.batch_bytes_max:
        raise _too_large(size, rules, topic_partition)
    if crc32c(records[ATTRIBUTES_AT:]) != header.crc:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the record batch for {topic_partition} is corrupt: its checksum should be {header.crc}",
        )
    count = header.record_count
    if (
        header.last_offset_delta + 1 != count
        or count <= 0
        or attributes & CONTROL_FLAG
        or codec > _ZSTD
        or (header.base_sequence < 0 and header.producer_id >= 0)
    ):
        raise _bad_header(header, topic_partition)
    latest = now_ms + rules.timestamp_after_max_ms
    if (
        rules.header_suffices
        and header.max_timestamp <= latest
        and header.base_timestamp <= latest
        and not attributes & APPEND_TIME_FLAG
        and (
            not rules.looks_at_ends
            or (count == 1 and not codec and is_one_plain_record(records, size))
            or looks_valid(records, size, count, codec)
        )
    ):
        return records, header
    if (
        rules.is_only_strict
        and count == 1
        and not attributes & (COMPRESSION_MASK | APPEND_TIME_FLAG)
        and header.base_timestamp == header.max_timestamp <= latest
        and is_one_plain_record(records, size)
    ):
        return records, header
    if (
        rules.only_stamps
        and rules.compression in (None, codec)
        and (not rules.looks_at_ends or looks_valid(records, size, count, codec))
    ):
        if attributes & APPEND_TIME_FLAG:
            raise _append_time_from_producer(header)
        header.stamp(records, attributes | APPEND_TIME_FLAG, now_ms)
        return records, header
    unpacked_bytes_max = DECOMPRESSED_BYTES_MAX
    if pause is None:
        is_repacked = rules.compression not in (None, codec)
        unpacked_bytes_max = LOOP_REPACKED_BYTES_MAX if is_repacked else LOOP_BYTES_MAX
        records_max = LOOP_RECORDS_MAX if rules.schemas is None else LOOP_NAMED_RECORDS_MAX
        if count > records_max or size > unpacked_bytes_max:
            raise NeedsThread
    return _validate_records(records, header, rules, now_ms, topic_partition, unpacked_bytes_max, pause)


def _validate_records(
    records: memoryview,
    header: BatchHeader,
    rules: AppendRules,
    now_ms: int,
    topic_partition: object,
    unpacked_bytes_max: int,
    pause: Callable[[], None] | None,
) -> tuple[memoryview, BatchHeader]:
    if rules.append_time and header.attributes & APPEND_TIME_FLAG:
        raise _append_time_from_producer(header)
    try:
        data = payload(records, header, unpacked_bytes_max)
        if header.compression == Compression.LZ4 and not is_one_lz4_frame(records[BATCH_OVERHEAD:]):
            raise KafkaError(ErrorCode.INVALID_RECORD, "bytes follow the frame of lz4 records")
        max_timestamp, offsets_in_order = _check_records(data, header, rules, now_ms, topic_partition, pause)
    except RecordsRejected:
        raise
    except KafkaError as error:
        if pause is None and error.code == ErrorCode.MESSAGE_TOO_LARGE:
            raise NeedsThread from None
        # The checksum is correct, so sending the batch again cannot help: not a retriable error.
        code = ErrorCode.INVALID_RECORD if error.code == ErrorCode.CORRUPT_MESSAGE else error.code
        raise RecordsRejected(code, f"{error.message} in topic partition {topic_partition}") from None
    if rules.schemas is not None:
        found = check_schema_ids(data, header.record_count, rules.schemas, now_ms, pause)
        if found.errors:
            raise _rejected(ErrorCode.INVALID_RECORD, found.errors)
        if found.unknown:
            raise NeedsSchemas(found.unknown)
    codec = header.compression
    target = codec if rules.compression is None else rules.compression
    if codec and not offsets_in_order:
        if target == codec:
            raise RecordsRejected(
                ErrorCode.INVALID_RECORD,
                f"the offsets of compressed records do not count up from 0 in partition {topic_partition}",
            )
        # Old clients numbered compressed records wrongly. Kafka corrects that when it compresses them again.
        records, header = _renumbered(records, header, target, rules.compression_level)
    elif target != codec:
        rebuilt = recompress_payload(header, data, target, rules.compression_level)
        records, header = memoryview(rebuilt), BatchHeader(rebuilt)
    if header.size > rules.batch_bytes_max:
        raise _too_large(header.size, rules, topic_partition)
    if rules.append_time:
        header.stamp(records, header.attributes | APPEND_TIME_FLAG, now_ms)
    elif header.attributes & APPEND_TIME_FLAG or header.max_timestamp != max_timestamp:
        header.stamp(records, header.attributes & ~APPEND_TIME_FLAG, max_timestamp)
    return records, header


def _check_records(
    data: bytes,
    header: BatchHeader,
    rules: AppendRules,
    now_ms: int,
    topic_partition: object,
    pause: Callable[[], None] | None,
) -> tuple[int, bool]:
    """Check all records against the rules. Returns the largest timestamp, and whether offsets count up from
    0."""
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.attributes & APPEND_TIME_FLAG else None
    earliest, latest = INT64_MIN, INT64_MAX  # sums of timestamp and delta can leave this range, too
    if not rules.append_time:
        earliest = max(earliest, now_ms - rules.timestamp_before_max_ms)
        latest = min(latest, now_ms + rules.timestamp_after_max_ms)
    walked = walk(data, header.record_count, pause)
    if walked is not None and not (walked.has_null_key and rules.compacted):
        first, last = base_timestamp + walked.timestamp_delta_min, base_timestamp + walked.timestamp_delta_max
        if append_time is not None:
            first = last = append_time
        if earliest <= first and last <= latest:
            return max(last, NO_TIMESTAMP), walked.offsets_in_order
    # Some record may be invalid: check record by record, to name it in the error.
    max_timestamp, without_key = NO_TIMESTAMP, 0
    offsets_in_order = True
    for index, raw in enumerate(scan(data, header.record_count)):
        if pause is not None and not index % PAUSED_AFTER:
            pause()
        timestamp = base_timestamp + raw.timestamp_delta if append_time is None else append_time
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if raw.offset_delta != index:
            offsets_in_order = False
        if raw.key_size < 0 and rules.compacted:
            without_key += 1
            problem = (
                f"Compacted topic cannot accept message without key in topic partition {topic_partition}"
            )
        elif timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            code = ErrorCode.INVALID_TIMESTAMP
            problem = (
                f"Timestamp {timestamp} of message with offset {raw.offset_delta} is out of range."
                f" The timestamp should be within [{earliest}, {latest}]"
            )
        else:
            continue
        if len(errors) < RECORD_ERRORS_MAX:
            errors.append((index, problem))
    if errors:
        raise _rejected(code, errors, without_key)
    return max_timestamp, offsets_in_order


def _rejected(code: ErrorCode, errors: list[tuple[int, str]], without_key: int = 0) -> RecordsRejected:
    if code == ErrorCode.INVALID_TIMESTAMP:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        message = (
            f"One or more records have been rejected due to {len(errors)} record errors, the first:"
            f" record {errors[0][0]}: {errors[0][1]}"
        )
    return RecordsRejected(code, message, tuple(errors), without_key)


def _append_time_from_producer(header: BatchHeader) -> RecordsRejected:
    problem = "Producer should not set timestamp type to LogAppendTime"
    count = min(header.record_count, RECORD_ERRORS_MAX)
    return _rejected(ErrorCode.INVALID_TIMESTAMP, [(index, problem) for index in range(count)])


def _renumbered(
    records: memoryview, header: BatchHeader, compression: int, level: int | None
) -> tuple[memoryview, BatchHeader]:
    batch = build_batch(
        (record._replace(offset=index) for index, record in enumerate(iter_records(records))),
        compression=compression,
        compression_level=level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
    return memoryview(batch), BatchHeader(batch)


def _only_batch(records: memoryview, api_version: int) -> memoryview:
    """The only batch in records with trailing bytes. An incomplete batch after it is dropped."""
    size = next_size(records, 0)
    if size is None:
        raise _no_batch(None, api_version)
    if records[MAGIC_AT] != MAGIC:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Produce version {api_version} takes batches of magic {MAGIC} only, not {records[MAGIC_AT]}",
        )
    if size < BATCH_OVERHEAD:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"a record batch of {size} bytes is smaller than its header ({BATCH_OVERHEAD})",
        )
    if next_size(records, size) is not None:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Produce version {api_version} takes exactly one record batch per partition",
        )
    return records[:size]


def _no_batch(records: memoryview | None, api_version: int) -> KafkaError:
    if records is not None and next_size(records, 0) is not None:
        _only_batch(records, api_version)  # raises if it can name the problem
    return KafkaError(
        ErrorCode.INVALID_RECORD, f"Produce version {api_version} needs one whole record batch per partition"
    )


def _too_large(size: int, rules: AppendRules, topic_partition: object) -> KafkaError:
    if size > rules.max_message_bytes:
        return KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the record batch for {topic_partition} has {size} bytes,"
            f" max.message.bytes allows {rules.max_message_bytes}",
        )
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"the record batch for {topic_partition} has {size} bytes, segment.bytes is {rules.segment_bytes}",
    )


def _bad_header(header: BatchHeader, topic_partition: object) -> KafkaError:
    codec = header.attributes & COMPRESSION_MASK
    if codec > _ZSTD:
        error = unsupported(codec)
        return RecordsRejected(error.code, error.message)
    if header.last_offset_delta < 0:
        problem = f"batch has an invalid offset range: [0, {header.last_offset_delta}]"
    elif header.record_count <= 0:
        problem = f"batch declares {header.record_count} records"
    elif header.last_offset_delta + 1 != header.record_count:
        problem = (
            f"batch declares {header.record_count} records, but its last offset is {header.last_offset_delta}"
        )
    elif header.attributes & CONTROL_FLAG:
        problem = "clients are not allowed to write control records"
    else:
        problem = f"batch of producer {header.producer_id} has the sequence number {header.base_sequence}"
    text = f"{problem} in topic partition {topic_partition}"
    return RecordsRejected(ErrorCode.INVALID_RECORD, text, is_misnumbered=True)
