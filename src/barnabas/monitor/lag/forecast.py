"""Forecasts: when a group will be caught up, and when retention overtakes it.

In: the history of a partition (committed offsets, ends and starts at the same times), the retention of its
topic, the age of the oldest record that is not consumed. Out: a `Forecast` with its reason and how much it
can be trusted. Rates are slopes of straight lines through the history (least squares); the trust is the share
of the movement that the lines explain, and it is low while the history is short. Does not know: groups, where
the numbers come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from operator import mul
from typing import NamedTuple

from barnabas.monitor.lag.topics import UNKNOWN

POINTS_MIN = 3
POINTS_TRUSTED = 10  # with fewer points, the confidence shrinks in proportion
RATE_MIN = 1e-6  # records a second; slower is standing still
HIGH, MEDIUM = 0.8, 0.5
FOREVER = -1  # of `retention.ms`


class Outlook(StrEnum):
    CAUGHT_UP = "caught up"  # nothing is behind
    CATCHING_UP = "catching up"
    FALLING_BEHIND = "falling behind"
    NOT_CONSUMING = "not consuming"
    UNKNOWN = "unknown"


class RetentionRisk(StrEnum):
    NONE = "none"  # retention does not reach the group
    OVERTAKES = "overtakes"  # retention will delete records that the group did not consume
    OVERTAKEN = "overtaken"  # it did already
    UNKNOWN = "unknown"


# From good to bad, and from bad to good: which partition speaks for its group.
OUTLOOKS = [
    Outlook.CAUGHT_UP,
    Outlook.CATCHING_UP,
    Outlook.UNKNOWN,
    Outlook.FALLING_BEHIND,
    Outlook.NOT_CONSUMING,
]
DANGERS = [RetentionRisk.OVERTAKEN, RetentionRisk.OVERTAKES, RetentionRisk.UNKNOWN, RetentionRisk.NONE]


class Line(NamedTuple):
    """A straight line through points of a history; `fit` is the share of the movement that it explains."""

    rate: float  # a second
    fit: float
    points: int

    @property
    def confidence(self) -> float:
        return self.fit * min(1.0, self.points / POINTS_TRUSTED)


class PartitionHistory(NamedTuple):
    """Offsets at the same times; UNKNOWN where nobody knows one. `age_s` is the lag in time, `retention_ms`
    is None where the topic's settings could not be read. `produced` is the line through the ends, if it is
    known already: all groups of a partition share it."""

    times_ms: Sequence[int]
    committed: Sequence[int]
    ends: Sequence[int]
    starts: Sequence[int]
    age_s: float | None = None
    retention_ms: int | None = None
    produced: Line | None = None


class Forecast(NamedTuple):
    """Seconds are None where the event never comes, or nobody can tell; the reasons say which."""

    outlook: Outlook
    caught_up_s: float | None
    caught_up_reason: str
    danger: RetentionRisk
    overtaken_s: float | None
    overtaken_reason: str
    consumed_per_s: float | None
    produced_per_s: float | None
    confidence: float

    @property
    def trust(self) -> str:
        return "high" if self.confidence >= HIGH else "medium" if self.confidence >= MEDIUM else "low"


def line_through(times_ms: Sequence[int], values: Sequence[int]) -> Line | None:
    """The line through the newest values, which belong to the newest times; None for too few points.

    Sums are made of whole numbers, so that large offsets lose no digits.
    """
    count = min(len(times_ms), len(values))
    times, points = times_ms[len(times_ms) - count :], values[len(values) - count :]
    if UNKNOWN in points:
        kept = [(time_ms, value) for time_ms, value in zip(times, points, strict=True) if value != UNKNOWN]
        times, points = [each[0] for each in kept], [each[1] for each in kept]
        count = len(kept)
    if count < POINTS_MIN:
        return None
    first_ms, first = times[0], points[0]
    if points[-1] == first and min(points) == max(points):
        return Line(0.0, 1.0, count)
    xs = [each - first_ms for each in times]
    ys = [each - first for each in points]
    sum_x, sum_y = sum(xs), sum(ys)
    spread = count * sum(map(mul, xs, xs)) - sum_x * sum_x
    if spread == 0:
        return None
    together = count * sum(map(mul, xs, ys)) - sum_x * sum_y
    movement = count * sum(map(mul, ys, ys)) - sum_y * sum_y
    return Line(together / spread * 1000, min(1.0, together / spread * (together / movement)), count)


def forecast(history: PartitionHistory) -> Forecast:
    consumed = line_through(history.times_ms, history.committed)
    produced = history.produced or line_through(history.times_ms, history.ends)
    outlook, caught_up_s, reason = catching_up(history, consumed, produced)
    danger, overtaken_s, danger_reason = overtaking(history, consumed, produced)
    known = [line.confidence for line in (consumed, produced) if line is not None]
    return Forecast(
        outlook,
        caught_up_s,
        reason,
        danger,
        overtaken_s,
        danger_reason,
        consumed.rate if consumed is not None else None,
        produced.rate if produced is not None else None,
        min(known) if len(known) == 2 else 0.0,
    )


def catching_up(
    history: PartitionHistory, consumed: Line | None, produced: Line | None
) -> tuple[Outlook, float | None, str]:
    committed, end = newest(history.committed), newest(history.ends)
    if committed == UNKNOWN or end == UNKNOWN:
        return Outlook.UNKNOWN, None, "the group did not commit, or the end of the partition is not known"
    lag = end - committed
    if lag <= 0:
        return Outlook.CAUGHT_UP, 0.0, "nothing is behind"
    if consumed is None or produced is None:
        return Outlook.UNKNOWN, None, "the history is too short"
    if consumed.rate <= RATE_MIN:
        return Outlook.NOT_CONSUMING, None, f"the group does not move, {lag} records are behind"
    gain = consumed.rate - produced.rate
    rates = f"consumes {consumed.rate:.3g}, gets {produced.rate:.3g} records a second"
    if gain <= RATE_MIN:
        return Outlook.FALLING_BEHIND, None, f"the group {rates}"
    return Outlook.CATCHING_UP, lag / gain, f"the group {rates}; {lag} records are behind"


def overtaking(
    history: PartitionHistory, consumed: Line | None, produced: Line | None
) -> tuple[RetentionRisk, float | None, str]:
    """The earlier of two estimates: by the movement of the log's start, and by the age of records."""
    committed, start, end = newest(history.committed), newest(history.starts), newest(history.ends)
    if committed == UNKNOWN or start == UNKNOWN:
        return RetentionRisk.UNKNOWN, None, "the committed offset or the start of the partition is not known"
    if committed < start:
        return (
            RetentionRisk.OVERTAKEN,
            0.0,
            f"{start - committed} records were deleted before the group read them",
        )
    if committed >= end:
        return RetentionRisk.NONE, None, "nothing is behind"
    if consumed is None:
        return RetentionRisk.UNKNOWN, None, "the history is too short"
    consumed_rate = max(consumed.rate, 0.0)
    found: list[tuple[float, str]] = []
    moved = line_through(history.times_ms, history.starts)
    moved_rate = start_rate(history, moved, produced)
    if moved_rate - consumed_rate > RATE_MIN:
        seconds = (committed - start) / (moved_rate - consumed_rate)
        found.append((seconds, f"the log's start moves by {moved_rate:.3g} records a second"))
    by_age = overtaken_by_age(history, consumed_rate, produced)
    if by_age is not None:
        found.append(by_age)
    if found:
        seconds, reason = min(found)
        return RetentionRisk.OVERTAKES, seconds, reason
    if history.retention_ms is None and moved is None:
        return (
            RetentionRisk.UNKNOWN,
            None,
            "neither the topic's retention nor a history of its start is known",
        )
    if history.retention_ms is not None and history.retention_ms > 0 and history.age_s is None:
        return RetentionRisk.UNKNOWN, None, "the age of the oldest record is not known"
    return RetentionRisk.NONE, None, "the group moves faster than retention"


def start_rate(history: PartitionHistory, moved: Line | None, produced: Line | None) -> float:
    """Records a second by which the start of the log moves, in the long run.

    The start moves by whole segments: if a history has one such step, its line is much too steep. Retention
    by size moves it as fast as records come. Retention by time is looked at on its own, where age and
    retention are known.
    """
    if moved is None:
        return 0.0
    if produced is None or history.age_s is None or history.retention_ms is None:
        return moved.rate
    return min(moved.rate, max(produced.rate, 0.0))


def overtaken_by_age(
    history: PartitionHistory, consumed_rate: float, produced: Line | None
) -> tuple[float, str] | None:
    """When the oldest record that is not consumed becomes older than `retention.ms`. While the group consumes
    records that were produced at a rate p at the rate c, its lag in time grows by 1 - c/p a second."""
    if history.age_s is None or history.retention_ms is None or history.retention_ms == FOREVER:
        return None
    left_s = history.retention_ms / 1000 - history.age_s
    produced_rate = produced.rate if produced is not None else 0.0
    growth = 1.0
    if consumed_rate > RATE_MIN:
        growth = 1.0 - consumed_rate / produced_rate if produced_rate > RATE_MIN else 0.0
    reason = f"the oldest record is {history.age_s:.0f} s old, retention.ms is {history.retention_ms}"
    if left_s <= 0:
        return 0.0, f"{reason}: its segment may be deleted at any time"
    if growth <= RATE_MIN:
        return None
    return left_s / growth, reason


def newest(series: Sequence[int]) -> int:
    return series[-1] if series else UNKNOWN


def of_group(partitions: Iterable[Forecast]) -> Forecast | None:
    """The forecast of a whole group: the last partition to catch up, and the first to be overtaken."""
    found = list(partitions)
    if not found:
        return None
    slowest = max(found, key=lambda each: (OUTLOOKS.index(each.outlook), each.caught_up_s or 0.0))
    first = min(found, key=lambda each: (DANGERS.index(each.danger), each.overtaken_s or 0.0))
    consumed = [each.consumed_per_s for each in found if each.consumed_per_s is not None]
    produced = [each.produced_per_s for each in found if each.produced_per_s is not None]
    return Forecast(
        slowest.outlook,
        slowest.caught_up_s,
        slowest.caught_up_reason,
        first.danger,
        first.overtaken_s,
        first.overtaken_reason,
        sum(consumed) if consumed else None,
        sum(produced) if produced else None,
        min(each.confidence for each in found),
    )
