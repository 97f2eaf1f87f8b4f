"""The inner loops of grouping and looking up by the bytes of keys.

In: bytes of a column, and where each value lies in them (a size of -1 is a null). Out: numbers. Compiled like
the loops of reading. Does not know: Arrow, stores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from barnabas.spark.basics.compiling import compiled

EMPTY = -1


@compiled
def hash_bytes(data: Any, at: int, size: int, seed: int) -> Any:
    """64 bits of FNV-1a over words of eight bytes, mixed at the end."""
    h = np.uint64(0xCBF29CE484222325) ^ np.uint64(seed)
    prime = np.uint64(0x9E3779B97F4A7C15)
    position = at
    whole = at + (size & ~7)
    while position < whole:
        word = np.uint64(0)
        for byte in range(8):
            word |= np.uint64(data[position + byte]) << np.uint64(8 * byte)
        h = (h ^ word) * prime
        h ^= h >> np.uint64(32)
        position += 8
    while position < at + size:
        h = (h ^ np.uint64(data[position])) * prime
        position += 1
    h ^= h >> np.uint64(29)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> np.uint64(32))


@compiled
def same_bytes(one: Any, at: int, two: Any, other_at: int, size: int) -> bool:
    for index in range(size):  # noqa: SIM110 - compiled
        if one[at + index] != two[other_at + index]:
            return False
    return True


@compiled
def group(
    data: Any, at: Any, sizes: Any, extra: Any, has_extra: bool, slots: Any, ids: Any, firsts: Any
) -> int:
    """Number the distinct keys (with `extra` as a part of them, if they have one) by first appearance.

    `slots` holds -1 everywhere, its length is a power of two above the rows'. A null has the id -1. Out: how
    many ids there are; `firsts` has the first row of each."""
    mask = len(slots) - 1
    count = 0
    for row in range(len(at)):
        size = sizes[row]
        if size < 0:
            ids[row] = -1
            continue
        seed = extra[row] if has_extra else 0
        place = np.int64(hash_bytes(data, at[row], size, seed) & np.uint64(mask))
        while True:
            found = slots[place]
            if found < 0:
                slots[place] = count
                firsts[count] = row
                ids[row] = count
                count += 1
                break
            first = firsts[found]
            if (
                sizes[first] == size
                and (not has_extra or extra[first] == extra[row])
                and same_bytes(data, at[first], data, at[row], size)
            ):
                ids[row] = found
                break
            place = (place + 1) & mask
    return count


@compiled
def index_rows(data: Any, at: Any, sizes: Any, slots: Any) -> None:
    """Put rows of distinct keys into `slots`."""
    mask = len(slots) - 1
    for row in range(len(at)):
        if sizes[row] < 0:
            continue
        place = np.int64(hash_bytes(data, at[row], sizes[row], 0) & np.uint64(mask))
        while slots[place] >= 0:
            place = (place + 1) & mask
        slots[place] = row


@compiled
def look_up(
    data: Any, at: Any, sizes: Any, slots: Any, asked: Any, asked_at: Any, asked_sizes: Any, found: Any
) -> None:
    """The row of each key that is asked for, -1 where there is none."""
    mask = len(slots) - 1
    for row in range(len(asked_at)):
        size = asked_sizes[row]
        found[row] = -1
        if size < 0:
            continue
        place = np.int64(hash_bytes(asked, asked_at[row], size, 0) & np.uint64(mask))
        while slots[place] >= 0:
            candidate = slots[place]
            if sizes[candidate] == size and same_bytes(data, at[candidate], asked, asked_at[row], size):
                found[row] = candidate
                break
            place = (place + 1) & mask


@compiled
def last_rows(ids: Any, lasts: Any) -> None:
    for row in range(len(ids)):
        if ids[row] >= 0:
            lasts[ids[row]] = row


@compiled
def sum_by(ids: Any, numbers: Any, valid: Any, totals: Any, counts: Any) -> None:
    """Totals and counts of the valid numbers of each id."""
    for row in range(len(ids)):
        place = ids[row]
        if place >= 0 and valid[row]:
            totals[place] += numbers[row]
            counts[place] += 1


@compiled
def max_by(ids: Any, numbers: Any, out: Any) -> None:
    for row in range(len(ids)):
        place = ids[row]
        if place >= 0 and numbers[row] > out[place]:
            out[place] = numbers[row]


@compiled
def extremes_by(ids: Any, numbers: Any, valid: Any, wants_max: bool, out: Any, has: Any) -> None:
    """The first smallest or largest of the valid numbers of each id."""
    for row in range(len(ids)):
        place = ids[row]
        if place < 0 or not valid[row]:
            continue
        if not has[place]:
            out[place] = numbers[row]
            has[place] = True
        elif (numbers[row] > out[place]) if wants_max else (numbers[row] < out[place]):
            out[place] = numbers[row]


@compiled
def latest_before(ids: Any, is_table: Any, count: int, found: Any) -> None:
    """For each row, in order: the last row of the table with the same id before it, else -1."""
    newest = np.full(count, -1, np.int64)
    for row in range(len(ids)):
        place = ids[row]
        found[row] = -1
        if place < 0:
            continue
        if is_table[row]:
            newest[place] = row
        else:
            found[row] = newest[place]
