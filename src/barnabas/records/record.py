"""Reading and building of the records in a batch.

In: a batch, or records to pack into one. Out: `Record` values with absolute offsets and timestamps, or a
finished batch. KafkaError for a damaged batch. Tools, coordinators, compaction and checks of keys use this; a
broker's ordinary produce and fetch path does not.
Does not know: topics, logs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records import varint
from barnabas.records.batch import (
    APPEND_TIME_FLAG,
    BATCH_OVERHEAD,
    CONTROL_FLAG,
    HEADER,
    INT32_MAX,
    MAGIC,
    MAGIC_AT,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    next_size,
    seal,
)
from barnabas.records.compression import DECOMPRESSED_BYTES_MAX, Compression, compress, decompress
from barnabas.records.crc32c import Buffer

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

NEXT_OFFSET = -1  # the record follows the one before it


class Record(NamedTuple):
    offset: int = NEXT_OFFSET
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


class RawRecord(NamedTuple):
    """Positions of a record and its parts in the (decompressed) records of a batch. A size of -1 means
    null."""

    start: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key_start: int
    key_size: int
    value_start: int
    value_size: int
    headers_start: int
    header_count: int


def payload(
    batch: Buffer, header: BatchHeader, limit: int = DECOMPRESSED_BYTES_MAX, position: int = 0
) -> bytes:
    """The batch's records, decompressed: at most `limit` bytes."""
    data = memoryview(batch)[position + BATCH_OVERHEAD : position + header.size]
    return decompress(header.compression, data, limit)


def scan(data: bytes, count: int) -> Iterator[RawRecord]:
    """Yield `count` records that must fill `data` exactly; INVALID_RECORD if they do not.

    Does not copy keys, values or headers. Any negative size means null, as in Kafka.
    """
    if count < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a record batch cannot hold {count} records")
    new = tuple.__new__
    decode = varint.decode
    small = varint.ONE_BYTE_VALUES  # most numbers take one or two bytes; calls would cost more than reading
    data_end = len(data)
    position = 0
    index = -1
    try:
        while (index := index + 1) < count:
            start = position
            if (byte := data[position]) < 0x80:
                size, position = small[byte], position + 1
            elif (second := data[position + 1]) < 0x80:
                byte = byte & 0x7F | second << 7
                size, position = (byte >> 1) ^ -(byte & 1), position + 2
            else:
                size, position = decode(data, position)
            end = position + size
            if size < 0 or end > data_end:
                raise ValueError(f"its size is {size}, but {data_end - position} bytes are left")
            position += 1  # attributes, which are unused
            if (byte := data[position]) < 0x80:
                timestamp_delta, position = small[byte], position + 1
            else:
                timestamp_delta, position = decode(data, position, varint.INT64_BYTES_MAX)
            if (byte := data[position]) < 0x80:
                offset_delta, position = small[byte], position + 1
            elif (second := data[position + 1]) < 0x80:
                byte = byte & 0x7F | second << 7
                offset_delta, position = (byte >> 1) ^ -(byte & 1), position + 2
            else:
                offset_delta, position = decode(data, position)
            if (byte := data[position]) < 0x80:
                key_size, key_start = small[byte], position + 1
            else:
                key_size, key_start = decode(data, position)
            position = key_start + key_size if key_size > 0 else key_start
            if (byte := data[position]) < 0x80:
                value_size, value_start = small[byte], position + 1
            elif (second := data[position + 1]) < 0x80:
                byte = byte & 0x7F | second << 7
                value_size, value_start = (byte >> 1) ^ -(byte & 1), position + 2
            else:
                value_size, value_start = decode(data, position)
            position = value_start + value_size if value_size > 0 else value_start
            if (byte := data[position]) < 0x80:
                header_count, position = small[byte], position + 1
            else:
                header_count, position = decode(data, position)
            headers_start = position
            if header_count:
                if not 0 < header_count <= end - position:
                    raise ValueError(f"it has {header_count} headers in {end - position} bytes")
                position = skip_headers(data, position, header_count)
            if position != end:
                raise ValueError(f"its size is {size}, but its fields take {size + position - end} bytes")
            yield new(
                RawRecord,
                (
                    start,
                    end,
                    timestamp_delta,
                    offset_delta,
                    key_start,
                    key_size,
                    value_start,
                    value_size,
                    headers_start,
                    header_count,
                ),
            )
    except IndexError:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"the batch ends within record {index} of the {count} it declares"
        ) from None
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"record {index} of the batch is malformed: {error}"
        ) from None
    if position != data_end:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"{data_end - position} bytes are left behind the {count} declared records",
        )


def iter_records(
    batch: Buffer, *, limit: int = DECOMPRESSED_BYTES_MAX, position: int = 0
) -> Iterator[Record]:
    """The records of the batch at `position`, with absolute offsets and timestamps."""
    size = next_size(batch, position)
    if size is None or size < BATCH_OVERHEAD or batch[position + MAGIC_AT] != MAGIC:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"no whole record batch of format {MAGIC} at byte {position}"
        )
    header = BatchHeader(batch, position)
    if header.record_count == 0:
        return
    data = payload(batch, header, limit, position)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.attributes & APPEND_TIME_FLAG else None
    new = tuple.__new__
    for raw in scan(data, header.record_count):
        _, _, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size, start, count = raw
        yield new(
            Record,
            (
                base_offset + offset_delta,
                base_timestamp + timestamp_delta if append_time is None else append_time,
                data[key_start : key_start + key_size] if key_size >= 0 else None,
                data[value_start : value_start + value_size] if value_size >= 0 else None,
                _read_headers(data, start, count) if count else (),
            ),
        )


def read_records(batch: Buffer, *, limit: int = DECOMPRESSED_BYTES_MAX, position: int = 0) -> list[Record]:
    return list(iter_records(batch, limit=limit, position=position))


def skip_headers(data: Buffer, position: int, count: int) -> int:
    """The end of `count` headers. ValueError for a null key or an invalid size, IndexError at the end of the
    data."""
    for _ in range(count):
        size, position = varint.decode(data, position)
        if size < 0:
            raise ValueError(f"a header key has the size {size}")
        size, position = varint.decode(data, position + size)
        if size > 0:
            position += size
    return position


def _read_headers(data: bytes, position: int, count: int) -> Headers:
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, position = varint.decode(data, position)
        key = data[position : position + size].decode("utf-8", "replace")
        size, position = varint.decode(data, position + size)
        if size < 0:
            headers.append((key, None))
        else:
            headers.append((key, data[position : position + size]))
            position += size
    return tuple(headers)


def encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    """Encode one record as in a batch, beginning with its size."""
    encode = varint.encode
    _, _, key, value, headers = record
    if not headers and value is not None:
        # Most records: one join of few pieces.
        head = b"\x00" + encode(timestamp_delta) + encode(offset_delta)
        head += b"\x01" if key is None else encode(len(key)) + key
        size = encode(len(value))
        return b"".join((encode(len(head) + len(size) + len(value) + 1), head, size, value, b"\x00"))
    parts = [b"\x00", encode(timestamp_delta), encode(offset_delta)]
    parts += (encode(len(key)), key) if key is not None else (b"\x01",)
    parts += (encode(len(value)), value) if value is not None else (b"\x01",)
    parts.append(encode(len(headers)))
    for name, content in headers:
        name_bytes = name.encode()
        parts += (encode(len(name_bytes)), name_bytes)
        parts += (encode(len(content)), content) if content is not None else (b"\x01",)
    body = b"".join(parts)
    return encode(len(body)) + body


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: int = Compression.NONE,
    compression_level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
    append_time_ms: int | None = None,
) -> bytearray:
    """Pack records into a sealed batch. A record without an offset gets the one after the record before it.

    Timestamps are those of the records, or `append_time_ms` for all (LogAppendTime).
    """
    encoded: list[bytes] = []
    next_offset = base_offset
    base_timestamp = max_timestamp = NO_TIMESTAMP
    for record in records:
        offset = next_offset if record.offset < 0 else record.offset
        timestamp = record.timestamp
        if not encoded:
            base_timestamp = max_timestamp = timestamp
        elif timestamp > max_timestamp:
            max_timestamp = timestamp
        if not next_offset <= offset <= base_offset + INT32_MAX:
            raise ValueError(f"offset {offset} cannot follow {next_offset - 1} in a batch from {base_offset}")
        encoded.append(encode_record(record, offset - base_offset, timestamp - base_timestamp))
        next_offset = offset + 1
    if not encoded:
        raise ValueError("a record batch needs at least one record")
    attributes = int(compression)
    if transactional:
        attributes |= TRANSACTIONAL_FLAG
    if control:
        attributes |= CONTROL_FLAG
    if append_time_ms is not None:
        attributes |= APPEND_TIME_FLAG
        max_timestamp = append_time_ms
    batch = bytearray(
        HEADER.pack(
            base_offset,
            0,
            partition_leader_epoch,
            MAGIC,
            0,
            attributes,
            next_offset - 1 - base_offset,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(encoded),
        )
    )
    data = b"".join(encoded)
    batch += data if compression == Compression.NONE else compress(compression, data, compression_level)
    return seal(batch)


def batch_of_encoded(
    encoded: Sequence[bytes], *, base_offset: int, timestamp_ms: int, partition_leader_epoch: int
) -> bytearray:
    """Build a batch from encoded records with offset deltas from 0 on and the same timestamp."""
    batch = bytearray(
        HEADER.pack(
            base_offset,
            0,
            partition_leader_epoch,
            MAGIC,
            0,
            0,
            len(encoded) - 1,
            timestamp_ms,
            timestamp_ms,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            len(encoded),
        )
    )
    batch += b"".join(encoded)
    return seal(batch)
