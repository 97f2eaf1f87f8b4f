"""The inner loops of reading: records of uncompressed batches become columns of numbers and bytes.

In: bytes, and where in them the records of each batch lie. Out: numpy arrays, one entry a record. Compiled by
numba where it is installed; without it the same functions run as plain Python, slowly. Bytes from the network
may lie: every length is checked against the batch's end before it is followed.
Does not know: batch headers, compression, Arrow, Spark.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from barnabas.spark.basics.compiling import compiled, copy_bytes

BROKEN = -1  # the result of `scan` when lengths do not fit together


@compiled
def varint(data: Any, position: int, end: int) -> Any:
    """The zigzag number at `position` and the position behind it, which is -1 when the bytes end first."""
    result = np.uint64(0)
    shift = np.uint64(0)
    while position < end and shift < np.uint64(70):
        byte = data[position]
        position += 1
        result |= np.uint64(byte & 0x7F) << shift
        if byte < 0x80:
            return np.int64(result >> np.uint64(1)) ^ -np.int64(result & np.uint64(1)), position
        shift += np.uint64(7)
    return np.int64(0), -1


@compiled
def scan(
    data: Any,
    starts: Any,
    ends: Any,
    counts: Any,
    base_offsets: Any,
    base_timestamps: Any,
    append_times: Any,
    first: int,
    stop: int,
    offsets: Any,
    timestamps: Any,
    timestamp_types: Any,
    key_at: Any,
    key_size: Any,
    value_at: Any,
    value_size: Any,
    headers_at: Any,
    headers_end: Any,
) -> int:
    """Find the parts of every record with an offset in [first, stop). Out: how many there are, or BROKEN.

    `append_times[i]` is the time of all records of batch i, or -1 when each has its own; sizes of -1 are
    nulls.
    """
    row = 0
    for batch in range(len(starts)):
        position = starts[batch]
        end = ends[batch]
        append_time = append_times[batch]
        for _ in range(counts[batch]):
            size, position = varint(data, position, end)
            if position < 0 or size < 0 or size > end - position:
                return BROKEN
            record_end = position + size
            position += 1  # attributes
            timestamp_delta, position = varint(data, position, record_end)
            if position < 0:
                return BROKEN
            offset_delta, position = varint(data, position, record_end)
            if position < 0:
                return BROKEN
            key_length, position = varint(data, position, record_end)
            if position < 0 or key_length > record_end - position:
                return BROKEN
            key_position = position
            if key_length > 0:
                position += key_length
            value_length, position = varint(data, position, record_end)
            if position < 0 or value_length > record_end - position:
                return BROKEN
            offset = base_offsets[batch] + offset_delta
            if first <= offset < stop:
                offsets[row] = offset
                if append_time >= 0:
                    timestamps[row] = append_time * 1000
                    timestamp_types[row] = 1
                else:
                    timestamps[row] = (base_timestamps[batch] + timestamp_delta) * 1000
                    timestamp_types[row] = 0
                key_at[row] = key_position
                key_size[row] = max(key_length, -1)  # any negative size is null
                value_at[row] = position
                value_size[row] = max(value_length, -1)
                headers_at[row] = position + max(value_length, 0)
                headers_end[row] = record_end
                row += 1
            position = record_end
    return row


@compiled
def measure(sizes: Any) -> Any:
    """How many bytes the values of a column have together, and how many are nulls."""
    total = 0
    nulls = 0
    for size in sizes:
        if size >= 0:
            total += size
        else:
            nulls += 1
    return total, nulls


@compiled
def mark_valid(sizes: Any, valid: Any) -> None:
    """A bit for each value there is."""
    for row in range(len(sizes)):
        if sizes[row] >= 0:
            valid[row >> 3] |= np.uint8(1 << (row & 7))


@compiled
def gather(data: Any, at: Any, sizes: Any, offsets: Any, out: Any) -> None:
    """Copy the bytes of a column together as Arrow keeps them: where each value starts, and all bytes."""
    written = 0
    for row in range(len(at)):
        offsets[row] = written
        size = sizes[row]
        if size > 0:
            copy_bytes(out, written, data, at[row], size)
            written += size
    offsets[len(at)] = written


@compiled
def count_headers(data: Any, at: Any, ends: Any, offsets: Any) -> int:
    """How many headers records have, as running totals in `offsets`. Out: the total, or BROKEN."""
    total = 0
    for row in range(len(at)):
        offsets[row] = total
        count, position = varint(data, at[row], ends[row])
        if position < 0 or count < 0 or count > ends[row] - position:
            return BROKEN
        total += count
    offsets[len(at)] = total
    return total


@compiled
def scan_headers(
    data: Any, at: Any, ends: Any, key_at: Any, key_size: Any, value_at: Any, value_size: Any
) -> int:
    """Find key and value of every header. Out: how many there are, or BROKEN."""
    found = 0
    for row in range(len(at)):
        end = ends[row]
        count, position = varint(data, at[row], end)
        for _ in range(count):
            size, position = varint(data, position, end)
            if position < 0 or size < 0 or size > end - position:
                return BROKEN
            key_at[found] = position
            key_size[found] = size
            position += size
            size, position = varint(data, position, end)
            if position < 0 or size > end - position:
                return BROKEN
            value_at[found] = position
            value_size[found] = max(size, -1)
            position += max(size, 0)
            found += 1
    return found
