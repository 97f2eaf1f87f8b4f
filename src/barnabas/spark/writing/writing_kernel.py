"""The inner loops of writing: columns of keys and values become the records of batches.

In: the bytes of columns with the place and size of every value. Out: partitions by Kafka's hash of keys, rows
by partition in pieces of a batch's size, and records as they stand in a batch. Compiled like the loops of
reading.
Does not know: batch headers, compression, Arrow, Spark.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from barnabas.spark.basics.compiling import compiled, copy_bytes

BODY_OVERHEAD_MAX = 32  # attributes, deltas, lengths and the number of headers of one record


@compiled
def find_values(offsets: Any, at: Any, sizes: Any) -> None:
    """Start and size of each value of an Arrow column."""
    start = np.int64(offsets[0])
    for row in range(len(sizes)):
        end = np.int64(offsets[row + 1])
        at[row] = start
        sizes[row] = end - start
        start = end


@compiled
def mark_nulls(valid: Any, first: int, sizes: Any) -> None:
    """A size of -1 for every value whose bit is not set; the bit of the first one is `first`."""
    for row in range(len(sizes)):
        bit = first + row
        if not (valid[bit >> 3] >> (bit & 7)) & 1:
            sizes[row] = -1


@compiled
def record_sizes(key_sizes: Any, value_sizes: Any, out: Any) -> None:
    """The most that the record of each row takes, without its headers."""
    for row in range(len(out)):
        out[row] = max(key_sizes[row], 0) + max(value_sizes[row], 0) + BODY_OVERHEAD_MAX


@compiled
def hash_keys(data: Any, at: Any, sizes: Any, some: Any, partitions: int, chosen: Any) -> int:
    """The partition of the key of each of some rows, by Kafka's murmur2. Rows without a key are left as they
    are. Out: how many of them there are."""
    multiplier = np.uint32(0x5BD1E995)
    keyless = 0
    for index in range(len(some)):
        row = some[index]
        size = sizes[row]
        if chosen[index] >= 0:
            continue
        if size < 0:
            keyless += 1
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
            for at_tail in range(left):
                tail |= np.uint32(data[position + whole + at_tail]) << np.uint32(8 * at_tail)
            h = np.uint32((h ^ tail) * multiplier)
        h = np.uint32((h ^ (h >> np.uint32(13))) * multiplier)
        h = h ^ (h >> np.uint32(15))
        chosen[index] = np.int64(h & np.uint32(0x7FFFFFFF)) % partitions
    return keyless


@compiled
def group_rows(some: Any, chosen: Any, bounds: Any, out: Any) -> None:
    """Rows by partition, each in the order they came: those of partition p lie at bounds[p] to
    bounds[p + 1]."""
    for index in range(len(bounds)):
        bounds[index] = 0
    for index in range(len(chosen)):
        bounds[chosen[index] + 1] += 1
    for index in range(1, len(bounds)):
        bounds[index] += bounds[index - 1]
    for index in range(len(chosen)):
        partition = chosen[index]
        out[bounds[partition]] = some[index]
        bounds[partition] += 1
    for index in range(len(bounds) - 1, 0, -1):  # each has moved to where the next one starts
        bounds[index] = bounds[index - 1]
    bounds[0] = 0


@compiled
def cut_rows(sizes: Any, some: Any, bytes_max: int, stops: Any, totals: Any) -> int:
    """Cut rows into as few pieces as their sizes allow, all about equal. Out: how many pieces; where each
    stops and what its records take at most is put into `stops` and `totals`. A row alone may be larger."""
    total = 0
    for index in range(len(some)):
        total += sizes[some[index]]
    wanted = max((total + bytes_max - 1) // bytes_max, 1)
    pieces = 0
    before = 0  # bytes of finished pieces
    filled = 0
    for index in range(len(some)):
        size = sizes[some[index]]
        is_enough = before + filled >= (pieces + 1) * total // wanted
        if filled > 0 and (is_enough or filled + size > bytes_max):
            stops[pieces] = index
            totals[pieces] = filled
            pieces += 1
            before += filled
            filled = 0
        filled += size
    if filled > 0:
        stops[pieces] = len(some)
        totals[pieces] = filled
        pieces += 1
    return pieces


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
    """Bytes that the headers of a row take in a record, their number included."""
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
) -> Any:
    """Write the records of these rows one behind the other. Out: how many bytes they take, and the latest
    timestamp."""
    position = 0
    latest = base_timestamp
    has_headers = len(header_offsets) > 0
    for delta in range(len(rows)):
        row = rows[delta]
        latest = max(latest, timestamps[row])
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
    return position, latest
