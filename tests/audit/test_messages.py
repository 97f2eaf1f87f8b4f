"""Count messages survive their way through JSON; anything else is refused, not guessed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.audit.core.delays import Delays, upper_ms
from barnabas.audit.core.ledger import Applied, Ledger
from barnabas.audit.core.messages import (
    CountMessage,
    Entry,
    MessageError,
    StreamKind,
    Tally,
    decode,
    encode,
)
from barnabas.audit.core.window import Window

numbers = st.integers(0, 2**40)
delays = st.builds(
    Delays, st.dictionaries(st.integers(0, 201), st.integers(1, 2**40), max_size=4), numbers, numbers
).filter(lambda each: bool(each.counts))
entries = st.builds(
    Entry,
    st.integers(-1, 2**45),
    st.builds(Tally, numbers, numbers, numbers, numbers, numbers, st.integers(0, 2**64 - 1)),
    st.integers(-1, 1000),
    delays,
    st.integers(-1, 2**40),
)
texts = st.text(max_size=30).filter(str.isprintable)
widths = st.sampled_from([1_000, 600_000, 86_400_000])
messages = st.builds(
    lambda tier, topic, host, stream, kind, start, size, time_ms, some, *others: CountMessage(
        tier, topic, host, stream, kind, start, start + size, time_ms, tuple(some), *others
    ),
    texts, texts, texts, texts, st.sampled_from(StreamKind), numbers, st.integers(1, 100), numbers,
    st.lists(entries, max_size=3), widths, texts, numbers, st.booleans(),
    st.integers(-1, 2**31), st.integers(-1, 2**40), numbers, st.booleans(),
    st.booleans(),
)  # fmt: skip


@given(messages)
def test_a_message_comes_back_as_it_was(message: CountMessage) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused(value: bytes) -> None:
    with pytest.raises(MessageError):
        decode(value)


@pytest.mark.parametrize(
    "change",
    [
        {"start": 5, "end": 5},
        {"version": 2},
        {"counts": [{"bucket": 0, "count": -1}]},
        {"counts": [{"bucket": 0, "count": True}]},
        {"counts": [{"bucket": 0}]},
        {"counts": [{"bucket": 0, "count": 1}] * 501},
        {"kind": "other"},
        {"topic": None},
        {"topic": "x" * 1001},
        {"time": "now"},
        {"time": 2**63},
        {"width": 7_000_000},
        {"counts": [{"bucket": 0, "count": 1, "delays": {"1000000": 1}}]},
        {"counts": [{"bucket": 0, "count": 1, "delays": 5}]},
    ],
)
def test_a_message_with_a_wrong_field_is_refused(change: dict[str, object]) -> None:
    body = json.loads(encode(CountMessage("cluster", "t", "h", "s", StreamKind.OFFSETS, 0, 1, 5)))
    decode(json.dumps(body).encode())
    with pytest.raises(MessageError):
        decode(json.dumps({**body, **change}).encode())


def test_an_increment_of_kafka_260_counts_once() -> None:
    body = {
        "time": 1_700_000_700_000, "topic": "orders", "tier": "producer", "bucket_start": 1_700_000_400_000,
        "bucket_end": 1_700_001_000_000, "host": "shop-1", "datacenter": "dc1", "application": "shop",
        "guid": "1f2e", "count": 500,
    }  # fmt: skip
    ledger = Ledger()
    value = json.dumps(body).encode()
    assert ledger.apply(decode(value), 0) is Applied.COUNTED
    assert ledger.apply(decode(value), 0) is Applied.REPEATED
    assert ledger.columns["orders", 1_700_000_400_000]["producer"].total.counted == 500


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_is_within_a_fifth_of_the_true_one(values: list[int], share: float) -> None:
    found = Delays()
    for each in values:
        found.add(each)
    true = sorted(values)[-(-len(values) * int(share * 100) // 100) - 1]
    estimate = found.percentile_ms(share)
    assert estimate is not None
    assert true <= estimate <= true * 1.2 + 1
    assert found.percentile_ms(1.0) == max(values)


@given(st.lists(st.integers(-50, 10**6)), st.lists(st.integers(-50, 10**6)))
def test_delays_that_are_merged_are_those_of_all(first: list[int], second: list[int]) -> None:
    one, two, both = Delays(), Delays(), Delays()
    for each in first:
        one.add(each)
    for each in second:
        two.add(each)
    for each in first + second:
        both.add(each)
    one.merge(two)
    assert one == both


def test_bounds_of_delays_grow() -> None:
    assert all(upper_ms(index) < upper_ms(index + 4) for index in range(200))


def test_timestamps_without_end_do_not_make_cells_without_end() -> None:
    window = Window(1_000, cells_max=10)
    for number in range(100):
        window.add("orders", 0, number * 1_000, 0)
    found = [entry for _, some in window.entries() for entry in some]
    assert len(found) == 11
    assert sum(entry.tally.counted for entry in found) == 100
    assert window.overflowed == 90
