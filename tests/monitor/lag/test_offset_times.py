"""When an offset was the end of its partition: points, and the lines between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.monitor.lag.offset_times import (
    TOO_FEW_POINTS,
    add_point,
    moved_at,
    new_offset_times,
    seconds_behind,
    time_of,
)


def points(*pairs: tuple[int, int]) -> list[tuple[int, int]]:
    return list(pairs)


def table(pairs: list[tuple[int, int]]):  # type: ignore[no-untyped-def]
    found = new_offset_times()
    for time_ms, end in pairs:
        add_point(found, time_ms, end)
    return found


@pytest.mark.parametrize(
    ("pairs", "offset", "time_ms"),
    [
        ([(0, 0), (1_000, 100)], 100, None),
        ([(0, 0), (1_000, 100)], 50, 500.0),
        ([(0, 0), (1_000, 100), (2_000, 300)], 200, 1_500.0),
        ([(1_000, 100), (2_000, 200)], 50, 500.0),  # older than all points: the line goes on
        ([(1_000, 100)], 50, TOO_FEW_POINTS),
        ([(1_000, 100)], 100, None),
        ([], 1, TOO_FEW_POINTS),
        ([(0, 0), (1_000, 100), (9_000, 100), (10_000, 200)], 100, 9_000.0),  # the last time it was the end
    ],
)
def test_a_time_is_found_on_the_line_between_two_points(
    pairs: list[tuple[int, int]], offset: int, time_ms: object
) -> None:
    assert time_of(table(pairs), offset) == time_ms


def test_a_flat_stretch_keeps_its_first_and_last_point() -> None:
    found = table([(0, 5), (10, 5), (20, 5), (30, 5), (40, 6)])
    assert list(found) == [0, 5, 30, 5, 40, 6]


def test_older_times_and_smaller_offsets_are_refused() -> None:
    found = table([(10, 5)])
    assert not add_point(found, 10, 6)
    assert not add_point(found, 20, 4)
    assert list(found) == [10, 5]


def test_a_standing_end_gives_an_age_without_a_slope() -> None:
    assert seconds_behind(table([(0, 10), (5_000, 10)]), 4, 9_000) == 9.0


@given(st.lists(st.tuples(st.integers(1, 1_000), st.integers(0, 50)), min_size=2, max_size=150), st.data())
def test_ages_shrink_as_offsets_grow_and_the_table_is_bounded(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    found, time_ms, end = new_offset_times(), 0, 0
    for gap_ms, more in steps:
        time_ms, end = time_ms + gap_ms, end + more
        add_point(found, time_ms, end)
    assert len(found) <= 2 * 60
    low = data.draw(st.integers(0, end))
    high = data.draw(st.integers(low, end))
    older, younger = (seconds_behind(found, each, time_ms) for each in (low, high))
    assert older is not None
    assert younger is not None
    assert older + 1e-6 >= younger


def test_the_time_since_which_an_end_stands_is_kept() -> None:
    points = new_offset_times()
    assert moved_at(points) is None
    moves = []
    for time_ms, end in ((10, 5), (20, 5), (30, 7), (40, 7), (50, 7), (60, 8)):
        add_point(points, time_ms, end)
        moves.append(moved_at(points))
    assert moves == [10, 10, 30, 30, 30, 60]
