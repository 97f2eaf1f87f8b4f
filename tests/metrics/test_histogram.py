"""Histograms: no value is lost, and percentiles are within their error bound."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.metrics.histogram import EMPTY, Histogram, percentiles, snapshot_of


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=50))
def test_every_value_is_counted_once(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    assert histogram.count == len(values)
    assert histogram.total == sum(values)


@given(st.integers(0, 2**63 - 1), st.integers(1, 1000))
def test_many_equal_values_count_as_single_ones_do(value: int, count: int) -> None:
    together, singly = Histogram(), Histogram()
    together.observe_many(value, count)
    for _ in range(count):
        singly.observe(value)
    assert together.buckets == singly.buckets
    assert together.total == singly.total


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.999, 1.0]))
def test_a_percentile_is_wrong_by_at_most_a_thirty_second(values: list[int], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    rank = -(-round(share * 1000) * len(values) // 1000)
    exact = sorted(values)[rank - 1]
    [found] = percentiles(histogram.recent, [share])
    assert abs(found - exact) <= exact / 32


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=100))
def test_a_snapshot_describes_the_values(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    found = histogram.snapshot(unit=1000)
    assert found.count == len(values)
    assert abs(found.mean - sum(values) / len(values) / 1000) < 1e-6
    assert abs(found.min - min(values) / 1000) <= min(values) / 32_000 + 1e-9
    assert abs(found.max - max(values) / 1000) <= max(values) / 32_000 + 1e-9
    assert list(found.percentiles) == sorted(found.percentiles)
    assert found.deviation <= (max(values) - min(values)) / 1000 + max(values) / 32_000 + 1e-9


def test_no_values_have_no_percentiles() -> None:
    assert Histogram().snapshot() == EMPTY


def test_percentiles_are_recent_and_the_rest_is_of_all_time() -> None:
    histogram = Histogram()
    for _ in range(100):
        histogram.observe(10**9)
    histogram.rotate()
    assert histogram.snapshot().percentiles[0] > 9 * 10**8, "of the last minute still"
    histogram.rotate()
    histogram.observe(1000)
    found = histogram.snapshot()
    assert max(found.percentiles) < 2000
    assert found.count == 101
    assert found.max > 9 * 10**8
    histogram.rotate()
    histogram.rotate()
    assert histogram.count == 101


def test_several_histograms_make_one() -> None:
    fast, slow = Histogram(), Histogram()
    for _ in range(9):
        fast.observe(8)
    slow.observe(10**6)
    found = snapshot_of([fast, slow])
    assert found.count == 10
    assert found.percentiles[0] == 8
    assert found.percentiles[-1] > 900_000


def test_zeros_that_nobody_counted_are_added() -> None:
    histogram = Histogram()
    histogram.observe(100)
    found = snapshot_of([histogram], zeros=99)
    assert found.count == 100
    assert found.sum == 100
    assert found.percentiles[0] == 0
    assert found.percentiles[-1] == 100 or abs(found.percentiles[-1] - 100) < 100 / 32
