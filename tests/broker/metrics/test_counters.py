"""Counters of the hot path: no request is lost, and percentiles are within their error bound."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.metrics.counters import ApiMetrics, TopicMetrics, percentiles_ns, recent_buckets


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=50))
def test_every_duration_is_counted_once(durations: list[int]) -> None:
    api = ApiMetrics()
    for duration_ns in durations:
        api.observe(duration_ns)
    assert api.count == len(durations)
    assert api.total_ns == sum(durations)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.999, 1.0]))
def test_a_percentile_is_wrong_by_at_most_an_eighth(durations: list[int], share: float) -> None:
    api = ApiMetrics()
    for duration_ns in durations:
        api.observe(duration_ns)
    rank = -(-round(share * 1000) * len(durations) // 1000)
    exact = sorted(durations)[rank - 1]
    [found] = percentiles_ns(recent_buckets([api]), [share])
    assert abs(found - exact) <= exact / 8


def test_no_requests_have_no_percentiles() -> None:
    assert percentiles_ns(recent_buckets([ApiMetrics()]), [0.5, 0.99]) == [0.0, 0.0]


def test_percentiles_are_recent_and_counts_are_total() -> None:
    api = ApiMetrics()
    for _ in range(100):
        api.observe(10**9)
    api.rotate()
    api.rotate()
    api.observe(1000)
    [found] = percentiles_ns(recent_buckets([api]), [0.99])
    assert found < 2000
    assert api.count == 101


def test_several_counters_make_one_histogram() -> None:
    fast, slow = ApiMetrics(), ApiMetrics()
    for _ in range(9):
        fast.observe(8)
    slow.observe(10**6)
    low, high = percentiles_ns(recent_buckets([fast, slow]), [0.9, 0.95])
    assert low == 8
    assert high > 800_000


def test_counters_of_topics_are_summed() -> None:
    first, second = TopicMetrics(), TopicMetrics()
    first.bytes_in, second.bytes_in, second.messages_in = 1, 2, 3
    first.add(second)
    assert (first.bytes_in, first.messages_in, first.bytes_out) == (3, 3, 0)
