"""Fast checks that the bytes of a batch are the records that its header declares.

In: the bytes, the declared count. `walk` reads every field of every record and returns a summary.
`looks_valid` reads only both ends of a batch, which takes a microsecond. Neither describes an error;
`record.scan` does.
Does not know: headers, topics, rules.
"""

import re
from collections.abc import Callable
from itertools import islice
from struct import Struct
from typing import NamedTuple

from barnabas.records import varint
from barnabas.records.batch import BATCH_OVERHEAD
from barnabas.records.compression import Compression, is_raw_snappy
from barnabas.records.crc32c import Buffer
from barnabas.records.record import skip_headers

RECORD_BYTES_MIN = 7  # size, attributes, two deltas, and the sizes of key, value and headers
WALKED_WHOLE_MAX = 4  # a batch with at most so many records is read completely by `looks_valid`
PIECE = 256  # records between two pauses, a fraction of a millisecond
TAIL_BYTES_MIN = 64  # the last record is searched within so many bytes plus twice the average record
CANDIDATES = range(8)  # positions to try for the last record
PLAIN_PREFIXES_MAX = 4096  # remembered prefixes
NO_SHAPE = b"\xff\xff\xff\xff\xff\xff\xff"
ATTRIBUTES_AND_TIMESTAMP = rb"\0[\x80-\xff]{0,9}[\0-\x7f]"  # of a record; attributes are unused
TWO_BYTES_END = 2048  # offsets encoded in advance; larger ones are encoded when needed
_two_bytes = [b"", *(varint.encode(number) for number in range(1, TWO_BYTES_END))]
_patterns: dict[int, re.Pattern[bytes]] = {}  # by the last offset of a batch, for those below 64
_first_bytes = Struct("7B").unpack_from
NULL = 0x01  # the varint -1

FIRST_BYTES: dict[int, bytes] = {
    Compression.GZIP: b"\x1f\x8b",
    Compression.SNAPPY: b"\x82SNAPPY\x00",
    Compression.LZ4: b"\x04\x22\x4d\x18",
    Compression.ZSTD: b"\x28\xb5\x2f\xfd",
}
"""The first bytes of each codec's data. Snappy data may also begin with a length."""


class RecordsSummary(NamedTuple):
    timestamp_delta_min: int
    timestamp_delta_max: int
    offsets_in_order: bool  # 0, 1, 2, ...
    has_null_key: bool


def walk(
    data: bytes | bytearray, count: int, pause: Callable[[], None] | None = None
) -> RecordsSummary | None:
    """Check that `count` records fill `data` exactly. None if they do not, or if their encoding is unusual.

    Twice as fast as `scan`, which yields the records. Calls `pause` every few hundred records.
    """
    position = 0
    timestamp_min = timestamp_max = 0
    in_order = True
    has_null_key = False
    last_byte = -1
    decode = varint.decode
    try:
        for piece in range(0, count, PIECE):
            for index in range(piece, piece + PIECE if piece + PIECE < count else count):
                byte = data[position]
                if byte < 0x80:
                    position += 1
                    end = position + (byte >> 1)
                elif (second := data[position + 1]) < 0x80:
                    position += 2
                    end = position + ((byte & 0x7F) >> 1 | second << 6)
                else:
                    size, position = decode(data, position)
                    end = position + size
                    byte = size < 0
                if byte & 1:
                    return None  # a negative size
                byte = data[position + 1]  # after the attributes, which are unused
                if byte < 0x80:
                    position += 2
                    if byte != last_byte:  # most records have the timestamp of the record before
                        last_byte = byte
                        delta = (byte >> 1) ^ -(byte & 1)
                        if index == 0:
                            timestamp_min = timestamp_max = delta
                        elif delta > timestamp_max:
                            timestamp_max = delta
                        elif delta < timestamp_min:
                            timestamp_min = delta
                else:
                    if (second := data[position + 2]) < 0x80:
                        delta = ((byte & 0x7F | second << 7) >> 1) ^ -(byte & 1)
                        position += 3
                    else:
                        delta, position = decode(data, position + 1, varint.INT64_BYTES_MAX)
                    if index == 0:
                        timestamp_min = timestamp_max = delta
                    elif delta > timestamp_max:
                        timestamp_max = delta
                    elif delta < timestamp_min:
                        timestamp_min = delta
                byte = data[position]
                if byte < 0x80:
                    position += 1
                    if byte != index + index:
                        in_order = False
                elif (second := data[position + 1]) < 0x80:
                    position += 2
                    if (byte & 0x7F | second << 7) != index + index:
                        in_order = False
                else:
                    delta, position = decode(data, position)
                    if delta != index:
                        in_order = False
                byte = data[position]
                if byte == NULL:
                    position += 1
                    has_null_key = True
                elif byte < 0x80:
                    if byte & 1:
                        return None
                    position += 1 + (byte >> 1)
                else:
                    size, position = decode(data, position)
                    if size < 0:
                        return None
                    position += size
                byte = data[position]
                if byte == NULL:
                    position += 1
                elif byte < 0x80:
                    if byte & 1:
                        return None
                    position += 1 + (byte >> 1)
                elif (second := data[position + 1]) < 0x80:
                    if byte & 1:
                        return None
                    position += 2 + ((byte & 0x7F) >> 1 | second << 6)
                else:
                    size, position = decode(data, position)
                    if size < 0:
                        return None
                    position += size
                if byte := data[position]:
                    header_count, position = decode(data, position)
                    if not 0 < header_count <= end - position:
                        return None
                    position = skip_headers(data, position, header_count)
                else:
                    position += 1
                if position != end:
                    return None
            if pause is not None:
                pause()
    except (IndexError, ValueError):
        return None
    if position != len(data):
        return None
    return tuple.__new__(RecordsSummary, (timestamp_min, timestamp_max, in_order, has_null_key))


def plain_prefix_of(size: int) -> bytes | None:
    """The first bytes of a record without key and headers that fills a batch of `size` bytes alone. None if
    there is no such record: for some sizes, a longer value also needs a longer size field."""
    length = size - BATCH_OVERHEAD
    for size_bytes, value_size_bytes in ((1, 1), (2, 1), (2, 2)):
        record_size = length - size_bytes
        value_size = (
            record_size - 5 - value_size_bytes
        )  # one byte each for attributes, two deltas, key and headers
        if value_size >= 0:
            sizes = varint.encode(record_size), varint.encode(value_size)
            if (len(sizes[0]), len(sizes[1])) == (size_bytes, value_size_bytes):
                return sizes[0] + b"\0\0\0\x01" + sizes[1]
    return None


PLAIN_PREFIXES: dict[int, bytes] = {}  # by batch size; `is_one_plain_record` adds them


def is_one_plain_record(batch: Buffer, size: int) -> bool:
    """Whether an uncompressed batch is exactly one record without headers. False means unknown.

    The record has the base timestamp and the base offset. The most common batch has no key either; it is
    checked completely in a fifth of a microsecond.
    """
    try:
        shape = PLAIN_PREFIXES[size]
    except KeyError:
        shape = plain_prefix_of(size) or NO_SHAPE
        if len(PLAIN_PREFIXES) < PLAIN_PREFIXES_MAX:
            PLAIN_PREFIXES[size] = shape
    if batch[BATCH_OVERHEAD : BATCH_OVERHEAD + len(shape)] == shape:
        return not batch[size - 1]
    if size < BATCH_OVERHEAD + RECORD_BYTES_MIN:
        return False
    length, byte, timestamp, offset, key, value, _ = _first_bytes(batch, BATCH_OVERHEAD)
    position = BATCH_OVERHEAD + 5
    if length >= 0x80:
        length = length & 0x7F | byte << 7
        timestamp, offset, key = offset, key, value
        position += 1
    if length != size - position + 4 << 1 or timestamp or offset or key >= 0x80:
        return False
    if key != NULL:
        if key & 1:
            return False
        position += key >> 1
    if position >= size - 1:
        return False
    byte = batch[position]
    if byte == NULL:
        position += 1
    elif byte & 1:
        return False
    elif byte < 0x80:
        position += 1 + (byte >> 1)
    else:
        second = batch[position + 1]
        if second >= 0x80:
            return False
        position += 2 + ((byte & 0x7F) >> 1 | second << 6)
    return position == size - 1 and not batch[position]


def looks_valid(batch: memoryview, size: int, count: int, codec: int) -> bool:
    """Whether a batch of `size` bytes looks like `count` records at both of its ends. False: check all
    records.

    Small batches are read completely, of compressed ones only the first bytes.
    """
    if 64 < count < TWO_BYTES_END and not codec:
        # The same as below for batches of the usual size, whose last record is found at the first attempt:
        # half a microsecond instead of one.
        # Behind the offset are at least the sizes of key, value and headers, a byte each.
        tail = batch[-TAIL_BYTES_MIN - 2 * size // count : -3].tobytes()
        attributes = tail.rfind(_two_bytes[count - 1]) - 2
        if attributes > 1 and count * RECORD_BYTES_MIN <= size and not (byte := batch[BATCH_OVERHEAD]) & 1:
            if tail[attributes]:
                attributes = tail.rfind(b"\0", 0, attributes)
            length = len(tail) + 3 - attributes
            if (
                64 <= length < TWO_BYTES_END
                and tail[attributes - 2 : attributes] == _two_bytes[length]
                and (byte < 0x80 or batch[BATCH_OVERHEAD + 1] < 0x80)
            ):
                return True
    if codec:
        return _start_looks_valid(batch, codec, size, count)
    if count == 1 and is_one_plain_record(batch, size):
        return True
    if count * RECORD_BYTES_MIN > size - BATCH_OVERHEAD:
        return False
    if count <= WALKED_WHOLE_MAX:
        return walk(bytes(batch[BATCH_OVERHEAD:size]), count) is not None
    byte = batch[BATCH_OVERHEAD]
    if byte & 1 or (byte >= 0x80 <= batch[BATCH_OVERHEAD + 1] and not _has_room(batch, size)):
        return False  # the first record has no size, or one that leaves no room for the others
    return _end_looks_valid(batch, size, count)


def _start_looks_valid(batch: Buffer, codec: int, size: int, count: int) -> bool:
    first = FIRST_BYTES[codec]
    if batch[BATCH_OVERHEAD : BATCH_OVERHEAD + len(first)] == first:
        return True
    return codec == Compression.SNAPPY and is_raw_snappy(batch[BATCH_OVERHEAD:size], count * RECORD_BYTES_MIN)


def _has_room(batch: Buffer, size: int) -> bool:
    """Whether the first record, with a size field of three bytes or more, leaves space for others."""
    try:
        length, position = varint.decode(batch, BATCH_OVERHEAD)
    except (IndexError, ValueError):
        return False
    return 0 < length < size - position


def _end_looks_valid(batch: Buffer, size: int, count: int) -> bool:
    """Whether the batch ends with a record whose offset is the last one.

    Records cannot be read backwards. So the last record is searched by its offset, and its size must lead
    exactly to the end of the batch.
    """
    start = size - TAIL_BYTES_MIN - 2 * size // count
    tail = bytes(batch[start if start > BATCH_OVERHEAD else BATCH_OVERHEAD : size])
    last = count - 1
    if last < 64:
        return _ends_with_small_offset(tail, last)
    end = len(tail)
    number = _two_bytes[last] if last < TWO_BYTES_END else varint.encode(last)
    before = end - 3  # followed by at least the sizes of key, value and headers
    for _ in CANDIDATES:
        found = tail.rfind(number, 0, before)
        attributes = found - 2
        if attributes < 2:
            return False
        if tail[attributes]:  # the timestamp takes more than a byte
            attributes = tail.rfind(b"\0", 0, attributes)
        length = end - attributes
        if 64 <= length < 8192 and attributes > 1:
            if tail[attributes - 1] == length >> 6 and tail[attributes - 2] == (length << 1 & 0x7E | 0x80):
                return True
        elif attributes > 0 and tail.endswith(varint.encode(length), 0, attributes):
            return True
        before = found + len(number) - 1
    return False


def _ends_with_small_offset(tail: bytes, last: int) -> bool:
    """Like `_end_looks_valid`, for a last offset of one byte. Such a byte is frequent, so the bytes before it
    are part of the search."""
    pattern = _patterns.get(last)
    if pattern is None:
        pattern = _patterns[last] = re.compile(ATTRIBUTES_AND_TIMESTAMP + re.escape(varint.encode(last)))
    for match in islice(pattern.finditer(tail), len(CANDIDATES)):
        attributes = match.start()
        if attributes and tail.endswith(varint.encode(len(tail) - attributes), 0, attributes):
            return True
    return False
