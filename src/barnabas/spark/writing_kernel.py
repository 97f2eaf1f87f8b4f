"""The inner loops of writing: columns of keys and values become the records of batches.

In: the bytes of columns with the place and size of every value. Out: partitions by Kafka's hash of keys, and
records as they stand in a batch. Compiled like the loops of reading.
Does not know: batch headers, compression, Arrow, Spark.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from barnabas.spark.compiling import compiled, copy_bytes

BODY_OVERHEAD_MAX = 32  # attributes, deltas, lengths and the number of headers of one record


@compiled
def hash_keys(data: Any, at: Any, sizes: Any, partitions: int, chosen: Any) -> None:
    """The partition of every key by Kafka's murmur2; rows without a key are left as they are."""
    multiplier = np.uint32(0x5BD1E995)
    for row in range(len(at)):
        size = sizes[row]
        if size < 0 or chosen[row] >= 0:
            continue
        position = at[row]
        h = np.uint32(0x9747B28C) ^ np.uint32(size)
        whole = size & ~3
        for start in range(position, position + whole, 4):
            k = (
                np.uint32(data[start])
                | (np.uint32(data[start + 1]) << np.uint32(8))
                | (np.uint32(data[start + 2]) << np.uint32(16))
                | (np.uint32(data[start + 3]) << np.uint32(24))
            )
            k = np.uint32(k * multiplier)
            k = np.uint32((k ^ (k >> np.uint32(24))) * multiplier)
            h = np.uint32(h * multiplier) ^ k
        left = size & 3
        if left:
            tail = np.uint32(0)
            for index in range(left):
                tail |= np.uint32(data[position + whole + index]) << np.uint32(8 * index)
            h = np.uint32((h ^ tail) * multiplier)
        h = np.uint32((h ^ (h >> np.uint32(13))) * multiplier)
        h = h ^ (h >> np.uint32(15))
        chosen[row] = np.int64(h & np.uint32(0x7FFFFFFF)) % partitions


@compiled
def varint_size(number: int) -> int:
    rest = np.uint64((number << 1) ^ (number >> 63))
    size = 1
    while rest >= np.uint64(0x80):
        rest >>= np.uint64(7)
        size += 1
    return size


@compiled
def put_varint(out: Any, position: int, number: int) -> int:
    rest = np.uint64((number << 1) ^ (number >> 63))
    while rest >= np.uint64(0x80):
        out[position] = np.uint8((rest & np.uint64(0x7F)) | np.uint64(0x80))
        position += 1
        rest >>= np.uint64(7)
    out[position] = np.uint8(rest)
    return position + 1


@compiled
def put_bytes(out: Any, position: int, data: Any, at: int, size: int) -> int:
    position = put_varint(out, position, size)
    if size <= 0:
        return position
    copy_bytes(out, position, data, at, size)
    return position + size


@compiled
def header_bytes(row: int, offsets: Any, key_sizes: Any, value_sizes: Any) -> int:
    """What the headers of a row take in a record, their number included."""
    total = varint_size(offsets[row + 1] - offsets[row])
    for index in range(offsets[row], offsets[row + 1]):
        total += varint_size(key_sizes[index]) + max(key_sizes[index], 0)
        total += varint_size(value_sizes[index]) + max(value_sizes[index], 0)
    return total


@compiled
def put_records(
    rows: Any,
    timestamps: Any,
    base_timestamp: int,
    keys: Any,
    key_at: Any,
    key_sizes: Any,
    values: Any,
    value_at: Any,
    value_sizes: Any,
    header_offsets: Any,
    header_keys: Any,
    header_key_at: Any,
    header_key_sizes: Any,
    header_values: Any,
    header_value_at: Any,
    header_value_sizes: Any,
    out: Any,
) -> int:
    """Write the records of these rows one behind the other. Out: how many bytes they take."""
    position = 0
    has_headers = len(header_offsets) > 0
    for delta in range(len(rows)):
        row = rows[delta]
        timestamp_delta = timestamps[row] - base_timestamp
        key_size = key_sizes[row]
        value_size = value_sizes[row]
        size = 1 + varint_size(timestamp_delta) + varint_size(delta)
        size += varint_size(key_size) + max(key_size, 0) + varint_size(value_size) + max(value_size, 0)
        if has_headers:
            size += header_bytes(row, header_offsets, header_key_sizes, header_value_sizes)
        else:
            size += 1
        position = put_varint(out, position, size)
        out[position] = 0  # attributes
        position = put_varint(out, position + 1, timestamp_delta)
        position = put_varint(out, position, delta)
        position = put_bytes(out, position, keys, key_at[row], key_size)
        position = put_bytes(out, position, values, value_at[row], value_size)
        if not has_headers:
            out[position] = 0
            position += 1
            continue
        position = put_varint(out, position, header_offsets[row + 1] - header_offsets[row])
        for index in range(header_offsets[row], header_offsets[row + 1]):
            position = put_bytes(out, position, header_keys, header_key_at[index], header_key_sizes[index])
            position = put_bytes(
                out, position, header_values, header_value_at[index], header_value_sizes[index]
            )
    return position
