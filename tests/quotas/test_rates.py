"""Rates and buckets, over virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.quotas import QuotaRate, TokenBucket, WindowedRate
from barnabas.quotas.rates import SimpleRate

SAMPLES, SAMPLE_MS = 11, 1000
MINUTE_MS = 60_000
BOUND = 100_000.0


def patient(chunks: list[int], gap_ms: float, duration_ms: int) -> tuple[float, float]:
    """What a client gets through that sends chunks round and round, and waits when told to."""
    rate = QuotaRate(SAMPLES, SAMPLE_MS)
    now_ms, sent, turn = 0.0, 0.0, 0
    while now_ms < duration_ms:
        size = chunks[turn % len(chunks)]
        turn += 1
        sent += size
        now_ms += rate.record(size, BOUND, now_ms) + gap_ms
    return sent, now_ms


def hungry(chunk: int, gap_ms: float, duration_ms: int) -> tuple[float, float]:
    """What a client gets that asks for chunks, and for the same again when it has to wait."""
    rate = QuotaRate(SAMPLES, SAMPLE_MS)
    now_ms, got = 0.0, 0.0
    while now_ms < duration_ms:
        wait_ms = rate.try_record(chunk, BOUND, now_ms)
        if not wait_ms:
            got += chunk
        now_ms += wait_ms + gap_ms
    return got, now_ms


@pytest.mark.parametrize("chunk", [100, 1_000, 16_384, 50_000])
@pytest.mark.parametrize("gap_ms", [0.2, 1, 7])
@pytest.mark.parametrize("client", [patient, hungry])
def test_a_minute_s_traffic_is_within_five_percent_of_the_quota(
    client: Any, chunk: int, gap_ms: float
) -> None:
    if chunk / gap_ms * 1000 < BOUND:
        pytest.skip("this client stays below the bound by itself")
    sent, took_ms = client([chunk] if client is patient else chunk, gap_ms, MINUTE_MS)
    assert sent * 1000 / took_ms == pytest.approx(BOUND, rel=0.05)


@settings(deadline=None, max_examples=30)
@example(chunks=[85_395], gap_ms=0.34)  # the largest excess among 3,000 shapes
@given(chunks=st.lists(st.integers(1_000, 100_000), min_size=1, max_size=20), gap_ms=st.floats(0.1, 5))
def test_mixed_sizes_keep_the_bound_too(chunks: list[int], gap_ms: float) -> None:
    """Requests nearly as large as a second's quota get up to two percent more."""
    sent, took_ms = patient(chunks, gap_ms, MINUTE_MS)
    assert sent * 1000 / took_ms <= BOUND * 1.07


def test_a_client_below_its_quota_never_waits() -> None:
    rate = QuotaRate(SAMPLES, SAMPLE_MS)
    for step in range(600):
        assert rate.record(BOUND / 10, BOUND * 1.01, step * 100.0) == 0


def test_a_burst_may_use_up_the_window_at_once() -> None:
    rate = QuotaRate(SAMPLES, SAMPLE_MS)
    assert rate.record(BOUND * (SAMPLES - 1), BOUND, 0) == 0
    assert rate.record(BOUND, BOUND, 0) == 1000


def test_a_client_above_the_bound_is_paced_until_it_kept_it_for_a_window() -> None:
    rate = QuotaRate(SAMPLES, SAMPLE_MS)
    rate.record(BOUND * SAMPLES, BOUND, 0)
    assert rate.is_paced
    rate.record(1, BOUND, 15_000)
    assert not rate.is_paced


def test_a_value_above_a_whole_window_is_accepted_once_and_throttled_after() -> None:
    rate = QuotaRate(SAMPLES, SAMPLE_MS)
    chunk = BOUND * 100
    assert rate.try_record(chunk, BOUND, 0) == 0
    assert rate.try_record(chunk, BOUND, 1) == pytest.approx(90_000, rel=0.01)
    assert rate.try_record(chunk, BOUND, 50_000) == pytest.approx(40_000, rel=0.01)
    assert rate.try_record(chunk, BOUND, 91_000) == 0


def test_asking_in_vain_records_nothing() -> None:
    rate = QuotaRate(SAMPLES, SAMPLE_MS)
    rate.record(BOUND * (SAMPLES - 1), BOUND, 0)
    assert rate.try_record(BOUND, BOUND, 0) == 1000
    assert rate.rate.total == BOUND * (SAMPLES - 1)


def test_values_older_than_the_window_are_dropped() -> None:
    rate = WindowedRate(SAMPLES, SAMPLE_MS)
    rate.record(BOUND * 100, 0)
    assert rate.rate(SAMPLES * SAMPLE_MS) == 0


def test_a_recorded_value_can_be_taken_back() -> None:
    rate = WindowedRate(SAMPLES, SAMPLE_MS)
    rate.record(500, 0)
    rate.record(-500, 0)
    assert rate.rate(0) == 0


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 5_000), st.integers(0, 10_000)), max_size=60))
def test_the_total_is_the_sum_of_the_window(steps: list[tuple[float, int]]) -> None:
    rate = WindowedRate(SAMPLES, SAMPLE_MS)
    now_ms, recorded = 0.0, []
    for wait_ms, value in steps:
        now_ms += wait_ms
        rate.record(value, now_ms)
        recorded.append((now_ms, value))
    rate.window_ms(now_ms)
    last_second = sum(value for at, value in recorded if at > now_ms - SAMPLE_MS)
    everything = sum(value for at, value in recorded if at > now_ms - (SAMPLES + 2) * SAMPLE_MS - SAMPLE_MS)
    assert last_second - 1e-6 <= rate.total <= everything + 1e-6


def test_one_sample_is_a_whole_window() -> None:
    rate = WindowedRate(1, SAMPLE_MS)
    rate.record(10, 0)
    assert rate.rate(0) == 10


def test_a_bucket_gives_a_burst_and_then_the_rate() -> None:
    bucket = TokenBucket(SAMPLES, SAMPLE_MS)
    bucket.spend(55, 5.0, 0)
    assert bucket.throttle_ms(5.0, 0) == 0
    bucket.spend(10, 5.0, 0)
    assert bucket.throttle_ms(5.0, 0) == 2000
    assert bucket.throttle_ms(5.0, 1500) == 500
    assert bucket.throttle_ms(5.0, 2000) == 0


def test_a_bucket_never_holds_more_than_a_burst() -> None:
    bucket = TokenBucket(SAMPLES, SAMPLE_MS)
    bucket.spend(1, 5.0, 0)
    assert bucket.refill(5.0, 1_000_000) == 55


def test_a_lower_rate_reduces_the_tokens_of_the_bucket() -> None:
    bucket = TokenBucket(SAMPLES, SAMPLE_MS)
    bucket.refill(5.0, 0)
    assert bucket.refill(1.0, 0) == 11


def test_a_minute_of_mutations_is_a_burst_and_a_minute() -> None:
    bucket = TokenBucket(SAMPLES, SAMPLE_MS)
    now_ms, done = 0.0, 0
    while now_ms < MINUTE_MS:
        wait_ms = bucket.throttle_ms(5.0, now_ms)
        if wait_ms:
            now_ms += wait_ms
            continue
        bucket.spend(1, 5.0, now_ms)
        done += 1
        now_ms += 0.1
    assert done == pytest.approx(5 * 60 + 55, rel=0.05)


def test_a_simple_rate_saves_nothing_up() -> None:
    rate = SimpleRate(11, 1000)
    rate.record(5_000, 0)
    assert rate.rate(0) == rate.rate(999) == 5_000  # the first second counts as a whole one
    assert rate.rate(5_000) == 1_000
    rate.record(5_000, 10_000)
    assert rate.rate(10_000) == 1_000
    assert rate.rate(20_000) == 500  # the first sample has gone
