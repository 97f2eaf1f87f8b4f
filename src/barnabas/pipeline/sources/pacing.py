"""Bandwidth limits: how much of a source may be read now.

In: how much was read. Out: whether to read, and how many rows. After a slice of n bytes, nothing is read for
n / limit seconds. Does not know: sources.
"""

from __future__ import annotations

import time

SLICE_S = 1.0  # a slice is as large as the limit allows in this time
ROWS_FIRST = 1000  # while the size of rows is unknown


class Pacing:
    def __init__(self, limit_bytes_s: float | None) -> None:
        self._limit = limit_bytes_s
        self._free_at = 0.0
        self._row_bytes: float | None = None

    def may_read(self) -> bool:
        return self._limit is None or time.monotonic() >= self._free_at

    @property
    def waits_s(self) -> float:
        return 0.0 if self._limit is None else max(self._free_at - time.monotonic(), 0.0)

    def rows_max(self, otherwise: int) -> int:
        if self._limit is None:
            return otherwise
        if self._row_bytes is None:
            return ROWS_FIRST
        return max(int(self._limit * SLICE_S / max(self._row_bytes, 1.0)), 1)

    def was_read(self, size_bytes: int, rows: int) -> None:
        if self._limit is None:
            return
        if rows:
            self._row_bytes = size_bytes / rows
        self._free_at = max(self._free_at, time.monotonic()) + size_bytes / self._limit
