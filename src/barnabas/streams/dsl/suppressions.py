"""Values for `KTable.suppress`: until when results are held back, and how many.

In: limits. Out: a checked `Suppression`. Does not know: tables.
"""

from __future__ import annotations

from datetime import timedelta

from barnabas.plans import nodes as n
from barnabas.plans.windows import milliseconds


def until_window_closes(*, records_max: int | None = None, bytes_max: int | None = None) -> n.Suppression:
    """One result a window, when stream time passes its end and the grace. A full buffer stops the task."""
    return _suppression(None, records_max, bytes_max, True)


def until_time_limit(
    limit_ms: int | timedelta,
    *,
    records_max: int | None = None,
    bytes_max: int | None = None,
    is_strict: bool = False,
) -> n.Suppression:
    """The last update of a key, `limit_ms` after the first one that waits. Where the buffer is full, the
    oldest update goes on earlier; with `is_strict` the task stops."""
    return _suppression(milliseconds(limit_ms), records_max, bytes_max, is_strict)


def _suppression(
    limit_ms: int | None, records_max: int | None, bytes_max: int | None, is_strict: bool
) -> n.Suppression:
    for name, least, value in (
        ("limit_ms", 0, limit_ms),
        ("records_max", 1, records_max),
        ("bytes_max", 1, bytes_max),
    ):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ValueError(
                f"{name} of a suppression is {value!r}: a whole number from {least} on is needed"
            )
    if is_strict and limit_ms is not None and records_max is None and bytes_max is None:
        raise ValueError("is_strict needs records_max or bytes_max: without one the buffer is never full")
    return n.Suppression(limit_ms, 0, records_max, bytes_max, is_strict)
