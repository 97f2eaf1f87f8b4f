"""When a volume is full: a straight line through what was used in the last hours.

In: used bytes from time to time. Out: hours, or None while nothing is known or the volume does not grow.
Needs an hour of history before it says anything, so that a burst is no forecast. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

HOUR_MS = 3_600_000
WINDOW_MS = 6 * HOUR_MS
HISTORY_MS_MIN = HOUR_MS
DISTANCE_MS = 5 * 60_000
VOLUMES_MAX = 10_000
HOURS_MAX = 24 * 365

Volume = tuple[int, str]  # broker, path
Point = tuple[int, int]  # time in ms, used bytes


class DiskTrends:
    def __init__(self) -> None:
        self._points: dict[Volume, deque[Point]] = {}

    def hours_left(self, volume: Volume, total_bytes: int, usable_bytes: int, now_ms: int) -> float | None:
        points = self._points.get(volume)
        if points is None:
            if len(self._points) >= VOLUMES_MAX:
                return None
            points = self._points[volume] = deque()
        if not points or now_ms - points[-1][0] >= DISTANCE_MS:
            points.append((now_ms, total_bytes - usable_bytes))
        while now_ms - points[0][0] > WINDOW_MS:
            points.popleft()
        if now_ms - points[0][0] < HISTORY_MS_MIN:
            return None
        growth = slope([*points, (now_ms, total_bytes - usable_bytes)])
        if growth <= 0:
            return None
        return min(usable_bytes / growth / HOUR_MS, HOURS_MAX)


def slope(points: Sequence[Point]) -> float:
    """Bytes a millisecond, by least squares."""
    count = len(points)
    mean_x = sum(at for at, _ in points) / count
    mean_y = sum(used for _, used in points) / count
    spread = sum((at - mean_x) ** 2 for at, _ in points)
    if spread == 0:
        return 0.0
    return sum((at - mean_x) * (used - mean_y) for at, used in points) / spread
