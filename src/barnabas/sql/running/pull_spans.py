"""Spans of keys' bytes in which a pull query's rows lie.

In: what a pull query reads. Out: half-open ranges of bytes; they may have more rows than the query asks for,
never fewer. Only KAFKA writes keys in an order that is that of their values:
ranges of other formats are the whole table. Does not know: views.
"""

from __future__ import annotations

import struct

from barnabas.plans.foreign_keys import after_prefix
from barnabas.sql.analysis.work import PullRead, Range, TopicRows
from barnabas.sql.types.sql_types import BIGINT, INTEGER, STRING

Span = tuple[bytes | None, bytes | None]  # from the first on, before the last
WHOLE: Span = (None, None)
TIME_MAX = (1 << 63) - 1
_TIME = struct.Struct(">q")
_NUMBERS = {INTEGER: (struct.Struct(">i"), 31), BIGINT: (struct.Struct(">q"), 63)}


def spans_of(read: PullRead) -> list[Span]:
    """The ranges of pages that may hold rows of keys that are not known one by one."""
    return [WHOLE] if read.key_range is None else range_of(read.table, read.key_range)


def windows_of(read: PullRead, key: bytes) -> Span:
    """The windows of a key: behind it are 8 bytes of their start, or of the end of sessions. Windows of
    longer keys may be among them."""
    window = read.table.window
    assert window is not None
    low, high = times_of(read.window_start)
    end_low, end_high = times_of(read.window_end)
    if window.size_ms is None:
        low, high = end_low, end_high
    else:
        low, high = max(low, end_low - window.size_ms), min(high, end_high - window.size_ms)
    if low > high:
        return key, key
    last = after_prefix(key + _TIME.pack(high)) if high < TIME_MAX else after_prefix(key)
    return key + _TIME.pack(low), last


def times_of(wanted: Range) -> tuple[int, int]:
    low, high = 0, TIME_MAX
    if wanted.low is not None:
        low = max(low, wanted.low.value + (not wanted.low.is_inclusive))
    if wanted.high is not None:
        high = min(high, wanted.high.value - (not wanted.high.is_inclusive))
    return low, high


def range_of(table: TopicRows, wanted: Range) -> list[Span]:
    """The keys between two values."""
    columns = table.schema.key
    if table.key_format.name.upper() != "KAFKA" or len(columns) != 1:
        return [WHOLE]
    kind = columns[0].kind
    low = None if wanted.low is None else wanted.low.value
    high = None if wanted.high is None else wanted.high.value
    if kind == STRING:
        return texts_of(low, high, table.window is not None)
    return numbers_of(low, high, *_NUMBERS[kind]) if kind in _NUMBERS else [WHOLE]


def texts_of(low: str | None, high: str | None, has_windows: bool) -> list[Span]:
    first = None if low is None else low.encode()
    last = None if high is None else high.encode()
    if last is None or (has_windows and b"\x00" in last):
        return [(first, None)]  # the window of a shorter key may come behind such a text
    return [(first, after_prefix(last) if has_windows else last + b"\x00")]


def numbers_of(low: int | None, high: int | None, shape: struct.Struct, bits: int) -> list[Span]:
    """Bytes of negative numbers come behind those of others."""
    least, most = -(1 << bits), (1 << bits) - 1
    low, high = max(least, least if low is None else low), min(most, most if high is None else high)
    pieces = ((max(low, 0), high), (low, min(high, -1)))
    return [(shape.pack(first), after_prefix(shape.pack(last))) for first, last in pieces if first <= last]
