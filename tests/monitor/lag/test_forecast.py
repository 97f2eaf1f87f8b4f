"""Forecasts: what straight lines through a history say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.monitor.lag.forecast import (
    Outlook,
    PartitionHistory,
    RetentionRisk,
    forecast,
    line_through,
    of_group,
)
from barnabas.monitor.lag.topics import UNKNOWN

TIMES_MS = [index * 10_000 for index in range(12)]


def history(
    consumed: float,
    produced: float,
    *,
    lag: int = 1_000,
    deleted: float = 0.0,
    ahead: int = 10_000,
    age_s: float | None = None,
    retention_ms: int | None = None,
) -> PartitionHistory:
    """Straight lines with these rates a second, which end `lag` apart, and `ahead` of the log's start."""
    end_s = TIMES_MS[-1] / 1000
    seconds = [each / 1000 - end_s for each in TIMES_MS]
    base = 1_000_000
    return PartitionHistory(
        TIMES_MS,
        [round(base + consumed * each) for each in seconds],
        [round(base + lag + produced * each) for each in seconds],
        [round(base - ahead + deleted * each) for each in seconds],
        age_s,
        retention_ms,
    )


def test_a_group_that_gains_is_caught_up_when_the_lines_meet() -> None:
    found = forecast(history(30, 20, lag=1_000))
    assert found.outlook is Outlook.CATCHING_UP
    assert found.caught_up_s == pytest.approx(100, rel=0.02)
    assert (found.trust, found.consumed_per_s) == ("high", pytest.approx(30, rel=0.01))


@pytest.mark.parametrize(
    ("consumed", "produced", "lag", "outlook"),
    [
        (20, 30, 1_000, Outlook.FALLING_BEHIND),
        (0, 30, 1_000, Outlook.NOT_CONSUMING),
        (0, 0, 5, Outlook.NOT_CONSUMING),
        (30, 30, 0, Outlook.CAUGHT_UP),
    ],
)
def test_a_group_that_does_not_gain_is_never_caught_up(
    consumed: float, produced: float, lag: int, outlook: Outlook
) -> None:
    found = forecast(history(consumed, produced, lag=lag))
    assert found.outlook is outlook
    assert (found.caught_up_s is None) == (outlook is not Outlook.CAUGHT_UP)


def test_the_start_of_the_log_overtakes_a_group_that_is_slower() -> None:
    found = forecast(history(10, 50, deleted=30, ahead=2_000))
    assert found.danger is RetentionRisk.OVERTAKES
    assert found.overtaken_s == pytest.approx(100, rel=0.02)
    assert "start moves by 30" in found.overtaken_reason


def test_the_deletion_of_a_segment_endangers_no_group_that_keeps_up() -> None:
    """Seen over two minutes, the deletion of a segment of two hours is much faster than the group."""
    healthy = history(100, 100, lag=50, ahead=4_000_000, age_s=0.5, retention_ms=43_200_000)
    starts = [*healthy.starts[:6], *(each + 720_000 for each in healthy.starts[6:])]
    found = forecast(healthy._replace(starts=starts))
    assert (found.danger, found.overtaken_s) == (RetentionRisk.NONE, None)


def test_retention_by_time_overtakes_a_group_that_stands_still() -> None:
    found = forecast(history(0, 50, age_s=3_000, retention_ms=3_600_000))
    assert (found.danger, found.overtaken_s) == (RetentionRisk.OVERTAKES, pytest.approx(600))


def test_a_slow_group_is_overtaken_later_than_one_that_stands_still() -> None:
    still = forecast(history(0, 50, age_s=3_000, retention_ms=3_600_000)).overtaken_s
    slow = forecast(history(25, 50, age_s=3_000, retention_ms=3_600_000)).overtaken_s
    assert still is not None
    assert slow == pytest.approx(2 * still, rel=0.02)


@pytest.mark.parametrize("retention_ms", [-1, 3_600_000])
def test_retention_never_reaches_a_group_that_gains(retention_ms: int) -> None:
    found = forecast(history(60, 50, age_s=3_000, retention_ms=retention_ms))
    assert (found.danger, found.overtaken_s) == (RetentionRisk.NONE, None)


def test_records_that_are_gone_are_counted() -> None:
    found = forecast(history(0, 50, ahead=-40))
    assert (found.danger, found.overtaken_s) == (RetentionRisk.OVERTAKEN, 0.0)
    assert found.overtaken_reason.startswith("40 records")


def test_a_short_history_forecasts_nothing() -> None:
    found = forecast(PartitionHistory([0, 1_000], [1, 2], [5, 6], [0, 0], 3.0, 1_000))
    assert (found.outlook, found.danger, found.confidence) == (Outlook.UNKNOWN, RetentionRisk.UNKNOWN, 0.0)


def test_a_group_is_as_late_as_its_last_partition_and_in_danger_with_its_first() -> None:
    good = forecast(history(30, 20, lag=1_000))
    slow = forecast(history(22, 20, lag=1_000))
    endangered = forecast(history(10, 5, lag=50, deleted=30, ahead=2_000))
    found = of_group([good, slow, endangered])
    assert found is not None
    assert (found.caught_up_s, found.overtaken_s) == (slow.caught_up_s, endangered.overtaken_s)
    assert of_group([]) is None


@given(st.floats(-50, 500), st.integers(3, 60))
def test_a_line_finds_the_rate_of_points_on_a_line(rate: float, count: int) -> None:
    times_ms = [index * 30_000 for index in range(count)]
    values = [round(10**9 + rate * each / 1000) for each in times_ms]
    line = line_through(times_ms, values)
    assert line is not None
    assert line.rate == pytest.approx(rate, abs=0.05)


@given(st.lists(st.integers(0, 10**12), min_size=3, max_size=30))
def test_noise_lowers_the_confidence_but_never_below_zero(values: list[int]) -> None:
    line = line_through([index * 1_000 for index in range(len(values))], values)
    assert line is not None
    assert 0.0 <= line.confidence <= 1.0


def test_unknown_values_and_missing_samples_are_left_out() -> None:
    values = [UNKNOWN, UNKNOWN, 10, 20, 30]
    line = line_through([0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000], values)
    assert line is not None
    assert (line.rate, line.points) == (pytest.approx(10), 3)
