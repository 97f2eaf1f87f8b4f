"""Burrow's rules: examples for each, and properties against a second statement of the rules."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.monitor.lag.commit_window import NO_LAG, Commit, Window, add, new_window
from barnabas.monitor.lag.judgement import Status, group_status, judge, judge_by_silence

MINUTE_MS = 60_000


def window_of(
    offsets: Sequence[int], lags: Sequence[int | None], times_ms: Sequence[int] | None = None
) -> Window[int]:
    window = new_window()
    times_ms = times_ms or [index * MINUTE_MS for index in range(len(offsets))]
    for order, (offset, lag, at_ms) in enumerate(zip(offsets, lags, times_ms, strict=True)):
        add(window, Commit(offset, at_ms, at_ms, NO_LAG if lag is None else lag, order), 10)
    return window


RISING = list(range(10, 101, 10))
SOON = 9 * MINUTE_MS + 1
LATER = 19 * MINUTE_MS


@pytest.mark.parametrize(
    ("offsets", "lags", "ends", "now_ms", "status"),
    [
        (RISING, [0] * 10, [100], SOON, Status.OK),
        (RISING, [5] * 10, [105], SOON, Status.WARN),
        (RISING, list(range(50, 0, -5)), [105], SOON, Status.OK),
        (RISING, [1, 2, 3, 2, 3, 4, 5, 6, 7, 8], [108], SOON, Status.OK),
        ([100] * 10, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5], [105], SOON, Status.STALL),
        ([100] * 10, [0] * 9 + [3], [103], SOON, Status.OK),
        (RISING, [5] * 10, [105, 150, 200], LATER, Status.STOP),
        (RISING, [5] * 10, [100, 100, 101], LATER, Status.WARN),
        ([50, 60, 70, 80, 90, 20, 30, 40, 50, 60], [9] * 10, [200], SOON, Status.REWIND),
        ([50, 60, 70, 80, 90, 85, 95, 100, 105, 110], [9] * 10, [200], SOON, Status.WARN),
        (RISING, [None, 5, None, 6, 7, None, 8, 9, 9, 9], [109], SOON, Status.WARN),
        (RISING, [None, 5, None, 4, 7, None, 8, 9, 9, 9], [109], SOON, Status.OK),
        ([100], [3], [103], 0, Status.STALL),
        ([100], [3], [103], 1, Status.STOP),
    ],
)
def test_each_rule_decides_in_its_turn(
    offsets: list[int], lags: list[int | None], ends: list[int], now_ms: int, status: Status
) -> None:
    assert judge(window_of(offsets, lags), ends, ends[-1] - offsets[-1], now_ms) is status


@pytest.mark.parametrize(("silence_min", "status"), [(0, Status.STOP), (10, Status.STOP), (11, Status.WARN)])
def test_a_stop_may_need_a_silence_of_a_given_length(silence_min: int, status: Status) -> None:
    window = window_of(RISING, [5] * 10)
    silence_ms_min = silence_min * MINUTE_MS - 1
    assert judge(window, [105], 5, LATER, silence_ms_min=silence_ms_min) is status


@pytest.mark.parametrize(
    ("lag", "ends", "silence_min", "status"),
    [
        (3, [103], 15, Status.OK),
        (3, [103], 16, Status.STOP),
        (0, [100], 16, Status.OK),
        (3, [100, 103], 16, Status.OK),
    ],
)
def test_a_group_with_one_commit_stops_after_a_given_silence(
    lag: int, ends: list[int], silence_min: int, status: Status
) -> None:
    window = window_of([100], [3])
    found = judge_by_silence(window, ends, lag, silence_min * MINUTE_MS, 0, 15 * MINUTE_MS)
    assert found is status


def by_the_book(
    offsets: Sequence[int],
    lags: Sequence[int | None],
    times_ms: Sequence[int],
    ends: Sequence[int],
    lag: int,
    now_ms: int,
    allowed: int,
) -> Status:
    """The rules once more, as sentences of the reference rather than as code of the module."""
    if lag <= allowed:
        return Status.OK
    silence, span = now_ms - times_ms[-1], times_ms[-1] - times_ms[0]
    if silence > span and all(end > offsets[-1] for end in ends):
        return Status.STOP
    steps_back = [i for i in range(1, len(offsets)) if offsets[i] < offsets[i - 1]]
    if steps_back and all(each < offsets[steps_back[0] - 1] for each in offsets[steps_back[0] :]):
        return Status.REWIND
    seen = [each for each in lags if each is not None]
    if any(each <= allowed for each in seen):
        return Status.OK
    if len(set(offsets)) == 1:
        return Status.STALL
    return Status.WARN if seen == sorted(seen) else Status.OK


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[int | None], list[int], list[int], int]:
    count = draw(st.integers(1, 10))
    offsets = draw(st.lists(st.integers(0, 20), min_size=count, max_size=count))
    lags = draw(st.lists(st.none() | st.integers(0, 6), min_size=count, max_size=count))
    gaps = draw(st.lists(st.integers(0, 50), min_size=count, max_size=count))
    times = [sum(gaps[: index + 1]) for index in range(count)]
    ends = draw(st.lists(st.integers(0, 30), min_size=1, max_size=10))
    now_ms = times[-1] + draw(st.integers(0, 500))
    return offsets, lags, times, ends, now_ms


@given(histories(), st.integers(0, 4))
def test_the_judgement_is_the_one_of_the_book(
    history: tuple[list[int], list[int | None], list[int], list[int], int], allowed: int
) -> None:
    offsets, lags, times, ends, now_ms = history
    lag = max(0, ends[-1] - offsets[-1])
    found = judge(window_of(offsets, lags, times), array("q", ends), lag, now_ms, allowed)
    assert found is by_the_book(offsets, lags, times, ends, lag, now_ms, allowed)


@given(histories())
def test_a_partition_without_lag_is_never_in_error(
    history: tuple[list[int], list[int | None], list[int], list[int], int],
) -> None:
    offsets, lags, times, ends, now_ms = history
    assert judge(window_of(offsets, lags, times), ends, 0, now_ms) is Status.OK


@given(st.lists(st.sampled_from([Status.OK, Status.WARN, Status.STOP, Status.STALL, Status.REWIND])))
def test_the_worst_partition_speaks_for_its_group(statuses: list[Status]) -> None:
    expected = (
        Status.ERR
        if any(each > Status.ERR for each in statuses)
        else Status.WARN
        if Status.WARN in statuses
        else Status.OK
    )
    assert group_status(statuses) is expected
