"""How fast counts grow, for readers that come now and then: events a second over the last half minute.

In: counts and the time, at each look. Out: events a second by name. Several readers share the looks. Does not
know: clocks, what is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

WINDOW_S = 30.0
LOOK_S = 1.0  # looks closer together are one
LOOKS_MAX = 64

Counts = Mapping[str, float]


class Growth:
    def __init__(self, counts: Counts, now_s: float) -> None:
        """`counts` at the beginning of what is counted."""
        self._looks: deque[tuple[float, Counts]] = deque([(now_s, counts)], LOOKS_MAX)

    def rates(self, counts: Counts, now_s: float) -> dict[str, float]:
        """Since the newest look that is older than the window, or since the first one."""
        looks = self._looks
        if now_s - looks[-1][0] >= LOOK_S:
            looks.append((now_s, dict(counts)))
        while len(looks) > 2 and now_s - looks[1][0] >= WINDOW_S:
            looks.popleft()
        then_s, before = looks[0]
        passed_s = now_s - then_s
        if passed_s <= 0:
            return dict.fromkeys(counts, 0.0)
        return {name: max(count - before.get(name, 0.0), 0.0) / passed_s for name, count in counts.items()}
