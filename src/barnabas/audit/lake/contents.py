"""Sums of records' contents, by columns: the numbers of `core/contents.py`, for many records at once.

In: keys, values and timestamps as columns. Out: a number of 64 bits for each record, or sums by bucket.
Does not know: where records come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pyarrow as pa

from barnabas.audit.core.buckets import NO_TIME
from barnabas.audit.core.contents import FIRST, KEY, LENGTH, MODULUS_MASK, NO_KEY, NO_VALUE, SECOND

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Contents = np.ndarray[tuple[int], np.dtype[np.uint64]]
Columns = tuple[pa.Array, pa.Array]  # keys and values, as the log has them
Bucketed = tuple[int, int, int | None]  # mean timestamp, number of records, sum of their contents


def contents_of(columns: Columns, stamps: Numbers) -> Contents:
    keys, values = (as_bytes(each) for each in columns)
    found = np.empty(len(stamps), np.uint64)
    for number, (key, value) in enumerate(zip(keys, values, strict=True)):
        seed = NO_KEY if key is None else crc32(key, KEY) ^ len(key) * LENGTH & 0xFFFF_FFFF
        found[number] = crc32(value, seed) if value is not None else seed ^ NO_VALUE
    shift, first, second = np.uint64(32), np.uint64(FIRST), np.uint64(SECOND)
    with np.errstate(over="ignore"):
        mixed = (found << shift | found) ^ stamps.astype(np.uint64) * second
        mixed = (mixed ^ mixed >> np.uint64(30)) * first
        mixed = (mixed ^ mixed >> np.uint64(27)) * second
    result: Contents = mixed ^ mixed >> np.uint64(31)
    return result


def as_bytes(column: pa.Array) -> list[bytes | None]:
    found: list[bytes | None] = column.cast(pa.large_binary()).to_pylist()
    return found


def by_bucket(stamps: Numbers, width_ms: int, contents: Contents | None = None) -> list[Bucketed]:
    """For each bucket the mean of its timestamps, their number, and the sum of contents if it is known."""
    buckets = np.where(stamps < 0, NO_TIME, stamps - stamps % width_ms)
    found, places, counts = np.unique(buckets, return_inverse=True, return_counts=True)
    means = (np.bincount(places, weights=stamps.astype(np.float64)) / counts).astype(np.int64)
    sums: Sequence[int | None] = [None] * len(found)
    if contents is not None:
        added = np.zeros(len(found), np.uint64)
        np.add.at(added, places, contents)
        sums = [each & MODULUS_MASK for each in added.tolist()]
    return [
        (NO_TIME if bucket < 0 else min(max(mean, bucket), bucket + width_ms - 1), count, content)
        for bucket, count, mean, content in zip(
            found.tolist(), counts.tolist(), means.tolist(), sums, strict=True
        )
    ]
