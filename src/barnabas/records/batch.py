"""The header of a record batch (format v2): read it, write offsets into it, check it.

In: a buffer with batches from a producer, a file or another broker. Out: a `BatchHeader`, or the buffer
changed in place. The records after the header are opaque bytes here.
Does not know: records, codecs, topics, settings.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import TypeAlias

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.crc32c import Buffer, crc32c

BATCH_OVERHEAD = 61  # bytes of a whole header
LOG_OVERHEAD = 12  # base offset and length, which `batch_length` does not count
MAGIC = 2
LEGACY_RECORD_SIZE_MIN = 14  # the smallest `batch_length` of any format
INT32_MAX = 2**31 - 1

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_PARTITION_LEADER_EPOCH = -1

COMPRESSION_MASK = 0x07
APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

LENGTH_AT = 8
EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21  # the checksum covers everything from here on
MAX_TIMESTAMP_AT = 35

WritableBuffer: TypeAlias = bytearray | memoryview

HEADER = struct.Struct(">qiibIhiqqqhii")
_unpack = HEADER.unpack_from
_pack_offset = struct.Struct(">q").pack_into
_pack_epoch = struct.Struct(">i").pack_into
place = struct.Struct(">qii").pack_into  # base offset, length, leader epoch
_pack_stamp = struct.Struct(">Ihiqq").pack_into
_pack_crc = struct.Struct(">I").pack_into
_unpack_length = struct.Struct(">i").unpack_from


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader:
    """The 61 bytes in front of a batch's records, one attribute a field.

    `BatchHeader(buffer, position)` reads them (measured: a third cheaper than a named tuple once offsets are
    assigned, and attributes read faster). It checks only that the bytes are there: see `validate`.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        self.base_offset: int
        self.batch_length: int
        self.partition_leader_epoch: int
        self.magic: int
        self.crc: int
        self.attributes: int
        self.last_offset_delta: int
        self.base_timestamp: int
        self.max_timestamp: int
        self.producer_id: int
        self.producer_epoch: int
        self.base_sequence: int
        self.record_count: int
        try:
            (
                self.base_offset,
                self.batch_length,
                self.partition_leader_epoch,
                self.magic,
                self.crc,
                self.attributes,
                self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.record_count,
            ) = _unpack(buffer, position)
        except struct.error:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"a batch header needs {BATCH_OVERHEAD} bytes, {max(len(buffer) - position, 0)} are left",
            ) from None

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; sequences continue at 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType((self.attributes & APPEND_TIME_FLAG) >> 3)

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones of this batch may be removed. The log cleaner stores it in place of the base
        timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    def assign(self, buffer: WritableBuffer, base_offset: int, leader_epoch: int, position: int = 0) -> None:
        """Set base offset and leader epoch, in this header and in the buffer that it was read from."""
        self.base_offset = base_offset
        self.partition_leader_epoch = leader_epoch
        place(buffer, position, base_offset, self.batch_length, leader_epoch)

    def stamp(self, buffer: WritableBuffer, attributes: int, max_timestamp: int, position: int = 0) -> None:
        """Set attributes and largest timestamp, in this header and in the buffer, and update the checksum."""
        self.attributes = attributes
        self.max_timestamp = max_timestamp
        _pack_stamp(
            buffer,
            position + CRC_AT,
            0,
            attributes,
            self.last_offset_delta,
            self.base_timestamp,
            max_timestamp,
        )
        self.crc = compute_crc(buffer, position, self.batch_length + LOG_OVERHEAD)
        _pack_crc(buffer, position + CRC_AT, self.crc)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchHeader):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"BatchHeader({', '.join(f'{name}={getattr(self, name)}' for name in FIELDS)})"


FIELDS = (
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)

peek = BatchHeader  # peek(buffer, position=0): read a header without checks


def increment_sequence(sequence: int, increment: int) -> int:
    return (sequence + increment) & INT32_MAX


def assign(buffer: WritableBuffer, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch in place; the checksum does not cover them."""
    _pack_offset(buffer, position, base_offset)
    _pack_epoch(buffer, position + EPOCH_AT, leader_epoch)


def stamp_append_time(buffer: WritableBuffer, position: int, timestamp_ms: int) -> None:
    """Set the append time of all records of the batch, in place, and update the checksum."""
    header = BatchHeader(buffer, position)
    header.stamp(buffer, header.attributes | APPEND_TIME_FLAG, timestamp_ms, position)


def compute_crc(buffer: Buffer, position: int, size: int) -> int:
    return crc32c(memoryview(buffer)[position + ATTRIBUTES_AT : position + size])


def seal(batch: bytearray) -> bytearray:
    """Write the length and the checksum into the header of a finished batch."""
    _pack_epoch(batch, LENGTH_AT, len(batch) - LOG_OVERHEAD)
    _pack_crc(batch, CRC_AT, compute_crc(batch, 0, len(batch)))
    return batch


def next_size(buffer: Buffer, position: int) -> int | None:
    """Size of the batch at `position`, or None if the buffer ends before the batch does.

    CORRUPT_MESSAGE for an invalid length or magic. Old formats are accepted; the caller decides about them.
    """
    left = len(buffer) - position
    if left < LOG_OVERHEAD:
        return None
    batch_length: int = _unpack_length(buffer, position + LENGTH_AT)[0]
    if batch_length < LEGACY_RECORD_SIZE_MIN:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"record size {batch_length} is less than the smallest possible ({LEGACY_RECORD_SIZE_MIN})",
        )
    if left <= MAGIC_AT:
        return None
    magic = buffer[position + MAGIC_AT]
    if magic > MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"magic {magic} is not a known format")
    size = batch_length + LOG_OVERHEAD
    return size if size <= left else None


def validate(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read a header and check that the batch is complete, has format v2 and a correct checksum."""
    size = next_size(buffer, position)
    if size is None:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the record batch at byte {position} is cut off")
    if buffer[position + MAGIC_AT] != MAGIC:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"record batch with magic {buffer[position + MAGIC_AT]}: only format {MAGIC} is supported",
        )
    if size < BATCH_OVERHEAD:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"record batch of {size} bytes is smaller than its header ({BATCH_OVERHEAD})",
        )
    header = BatchHeader(buffer, position)
    computed = compute_crc(buffer, position, size)
    if computed != header.crc:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"record batch is corrupt (stored crc = {header.crc}, computed crc = {computed})",
        )
    return header


def headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of every complete batch, in order. An incomplete batch at the end is
    skipped."""
    position = 0
    while (size := next_size(buffer, position)) is not None:
        if size < BATCH_OVERHEAD:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"record batch at byte {position} is smaller than a header: {size} bytes",
            )
        yield position, BatchHeader(buffer, position)
        position += size


def whole_batches(records: memoryview) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Yield the complete batches of a leader's response, each checked just before it is yielded."""
    position, size = 0, len(records)
    while size - position >= BATCH_OVERHEAD:
        batch_size = next_size(records, position)
        if batch_size is None or batch_size > size - position:
            return
        batch = records[position : position + batch_size]
        position += batch_size
        yield batch, validate(batch)
