"""The last commits of one group to one partition, in one array of numbers.

In: commits. Out: the window that Burrow judges: at most `intervals` commits in the order in which the broker
stored them. A commit that follows the one before it by less than `min_distance_ms` replaces that commit and
keeps its time. A commit that arrives late is sorted in without a lag, because the end of the partition at its
time is not known. No object is kept for a commit.
Does not know: groups, what the numbers mean for them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

WIDTH = 5  # numbers of a commit: offset, timestamp, time observed, lag, order
NO_LAG = -1
INTERVALS_MAX = 1_000

Window = array  # of signed 64-bit numbers, the oldest commit first


class Commit(NamedTuple):
    """`order` is the offset of the commit's record in `__consumer_offsets`."""

    offset: int
    timestamp_ms: int
    observed_ms: int
    lag: int  # NO_LAG: it is not known
    order: int


def new_window() -> Window[int]:
    return array("q")


def add(window: Window[int], commit: Commit, intervals: int, min_distance_ms: int = 0) -> bool:
    """Put a commit in its place. Returns whether it is the newest one."""
    count = len(window) // WIDTH
    if not count or window[-1] < commit.order:
        if count and commit.timestamp_ms - window[-4] < min_distance_ms:
            # The time of the replaced commit stays: otherwise a group that commits often never fills the
            # window.
            offset, _, observed_ms, lag, order = commit
            window[-WIDTH:] = array("q", (offset, window[-4], observed_ms, lag, order))
            return True
        if count >= intervals:
            del window[: (count - intervals + 1) * WIDTH]
        window.extend(commit)
        return True
    add_late(window, commit, count, intervals, min_distance_ms)
    return False


def add_late(window: Window[int], commit: Commit, count: int, intervals: int, min_distance_ms: int) -> None:
    """Sort a commit in that is older than the newest. The window stays as it is if it has the commit already,
    or if it is full of newer ones."""
    orders = window[WIDTH - 1 :: WIDTH]
    is_full = count >= intervals
    index = sum(1 for order in orders if order < commit.order)
    if orders[index] == commit.order or (is_full and index == 0):
        return
    at = index * WIDTH
    offset, timestamp_ms, observed_ms, _, order = commit
    if index > (1 if is_full else 0) and timestamp_ms - window[at - 4] < min_distance_ms:
        window[at - WIDTH : at] = array("q", (offset, window[at - 4], observed_ms, NO_LAG, order))
        return
    window[at:at] = array("q", (offset, timestamp_ms, observed_ms, NO_LAG, order))
    if is_full:
        del window[:WIDTH]


def count_of(window: Window[int]) -> int:
    return len(window) // WIDTH


def newest(window: Window[int]) -> Commit:
    return Commit(*window[-WIDTH:])


def oldest(window: Window[int]) -> Commit:
    return Commit(*window[:WIDTH])


def commits(window: Window[int]) -> Iterator[Commit]:
    """The oldest first."""
    for at in range(0, len(window), WIDTH):
        yield Commit(*window[at : at + WIDTH])
