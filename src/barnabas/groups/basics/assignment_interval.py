"""The time between two target assignments of a group.

In: the recorded time of the last target, the interval, the clock. Out: whether a new target may be computed.
Does not know: whether one is needed.
"""

from __future__ import annotations


def is_target_due(last_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether the last target is old enough. One from the future was written before the clock was set back,
    or by a coordinator with another clock: waiting for that time would keep partitions without an owner."""
    return not last_ms or not last_ms <= now_ms < last_ms + interval_ms
