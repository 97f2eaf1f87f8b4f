"""Buckets of time: which one a record belongs to follows from the record's own timestamp alone.

In: timestamps in epoch milliseconds, a width. Out: the start of a bucket. So every tier puts a record into
the same bucket, however late it sees the record and whatever its clock says.
Does not know: clocks, time zones, records.
"""

from __future__ import annotations

WIDTH_MS = 600_000
NO_TIME = -1  # the bucket of records without a timestamp


def bucket_of(timestamp_ms: int, width_ms: int = WIDTH_MS) -> int:
    """The start of the bucket. Negative timestamps (Kafka's -1 means none) share the bucket `NO_TIME`."""
    return timestamp_ms - timestamp_ms % width_ms if timestamp_ms >= 0 else NO_TIME


def bucket_end(bucket_ms: int, width_ms: int) -> int:
    """When no more records of this bucket are made. The bucket `NO_TIME` has no end."""
    return bucket_ms + width_ms if bucket_ms != NO_TIME else NO_TIME


def check_width(width_ms: int) -> int:
    """ValueError for widths that do not divide a day: buckets of two days would not line up."""
    if not 1_000 <= width_ms <= 86_400_000 or 86_400_000 % width_ms:
        raise ValueError(f"a bucket of {width_ms} ms: use a divisor of a day between 1 s and 24 h")
    return width_ms
