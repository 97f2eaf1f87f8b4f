"""The window of commits against a model that keeps them as a sorted list."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.monitor.lag.commit_window import (
    NO_LAG,
    Commit,
    add,
    commits,
    count_of,
    new_window,
    newest,
    oldest,
)


def commit(order: int, offset: int = 0, at_ms: int = 0, lag: int = 5) -> Commit:
    return Commit(offset, at_ms, at_ms, lag, order)


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 12))
def test_a_window_keeps_the_newest_commits_whatever_the_order_of_their_arrival(
    orders: list[int], intervals: int
) -> None:
    window = new_window()
    for order in orders:
        add(window, commit(order, offset=order * 10), intervals)
    expected = sorted(set(orders))[-intervals:]
    assert [each.order for each in commits(window)] == expected
    assert [each.offset for each in commits(window)] == [order * 10 for order in expected]


@given(st.permutations(list(range(8))))
def test_only_commits_that_arrive_in_order_have_a_lag(orders: list[int]) -> None:
    window = new_window()
    largest = -1
    in_order = set()
    for order in orders:
        is_newest = add(window, commit(order, lag=7), 10)
        assert is_newest == (order > largest)
        if is_newest:
            in_order.add(order)
        largest = max(largest, order)
    assert {each.order for each in commits(window) if each.lag != NO_LAG} == in_order


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=40))
def test_commits_that_follow_too_early_replace_the_last_one_and_keep_its_time(gaps_ms: list[int]) -> None:
    window, model, now_ms = new_window(), [], 0
    for order, gap_ms in enumerate(gaps_ms):
        now_ms += gap_ms
        add(window, commit(order, offset=order, at_ms=now_ms), 10, min_distance_ms=1_000)
        if model and now_ms - model[-1][0] < 1_000:
            model[-1] = (model[-1][0], order)
        else:
            model.append((now_ms, order))
    assert [(each.timestamp_ms, each.offset) for each in commits(window)] == model[-10:]


def test_a_late_commit_is_merged_into_the_one_before_it() -> None:
    window = new_window()
    add(window, commit(1, at_ms=1_000), 10, 1_000)
    add(window, commit(9, at_ms=9_000), 10, 1_000)
    add(window, commit(2, offset=20, at_ms=1_500), 10, 1_000)
    assert list(commits(window)) == [
        Commit(20, 1_000, 1_500, NO_LAG, 2),
        Commit(0, 9_000, 9_000, 5, 9),
    ]


def test_the_ends_of_a_window_are_its_oldest_and_newest_commit() -> None:
    window = new_window()
    for order in range(3):
        add(window, commit(order, offset=order), 2)
    assert (oldest(window).offset, newest(window).offset, count_of(window)) == (1, 2, 2)
