"""When the end of a partition was where: points of time and offset, and estimates between them.

In: the end of a partition at each look. Out: when an offset was the end, which tells how old the record at
that offset is. The rules are those of kafka-lag-exporter: at most `points_max` points; a point with an older
time or a smaller offset is refused; of a stretch where the end stood still the first and the last point are
kept. Between two points a straight line is followed. For an offset below all points, the line through the
oldest and the newest point is followed further.
Does not know: groups, timestamps of records.
"""

from __future__ import annotations

from array import array
from enum import Enum

POINTS_MAX = 60
WIDTH = 2  # numbers of a point: time, offset

OffsetTimes = array  # of signed 64-bit numbers, the oldest point first


class Unknown(Enum):
    """There are too few points to tell a time."""

    TOO_FEW_POINTS = "too few points"


TOO_FEW_POINTS = Unknown.TOO_FEW_POINTS


def new_offset_times() -> OffsetTimes[int]:
    return array("q")


def add_point(points: OffsetTimes[int], time_ms: int, end: int, points_max: int = POINTS_MAX) -> bool:
    """Returns whether the point was taken."""
    if points and (points[-2] >= time_ms or points[-1] > end):
        return False
    if len(points) >= 2 * WIDTH and points[-1] == end == points[-3]:
        points[-2] = time_ms
        return True
    if len(points) >= points_max * WIDTH:
        del points[: len(points) - (points_max - 1) * WIDTH]
    points.append(time_ms)
    points.append(end)
    return True


def moved_at(points: OffsetTimes[int]) -> int | None:
    """The time in ms since which the end stands where it is; that of the first point if it never moved."""
    if not points:
        return None
    stands = len(points) >= 2 * WIDTH and points[-1] == points[-3]
    return points[-4] if stands else points[-2]


def time_of(points: OffsetTimes[int], offset: int) -> float | Unknown | None:
    """The time in ms at which this offset was the end; None if it is the newest end, so nothing is behind."""
    if points and points[-1] == offset:
        return None
    if len(points) < 2 * WIDTH:
        return TOO_FEW_POINTS
    left, right = 0, len(points) - WIDTH
    for at in range(len(points) - 2 * WIDTH, -1, -WIDTH):
        if points[at + 1] <= offset <= points[at + 3]:
            left, right = at, at + WIDTH
            break
    run_ms = points[right] - points[left]
    rise = points[right + 1] - points[left + 1]
    if rise == 0:  # the end stands still, so a line has no slope; the record is older than all points
        return float(points[left]) if offset < points[left + 1] else float(points[right])
    return points[right] - (points[right + 1] - offset) * run_ms / rise


def seconds_behind(points: OffsetTimes[int], offset: int, now_ms: int) -> float | None:
    """The estimated age of the record at an offset in seconds; None if nobody can tell."""
    time_ms = time_of(points, offset)
    if time_ms is TOO_FEW_POINTS:
        return None
    if time_ms is None:
        return 0.0
    assert isinstance(time_ms, float | int)
    return max(0.0, (now_ms - time_ms) / 1000)
