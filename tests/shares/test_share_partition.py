"""A share partition: memory by ranges, records of aborted transactions, stored state with holes."""

from __future__ import annotations

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.shares.partition.acknowledging import Acknowledgement, acknowledge
from barnabas.shares.partition.acquiring import Acquired, Span, Wish, acquire, last_wanted
from barnabas.shares.partition.limits import ShareLimits
from barnabas.shares.partition.runs import ACKNOWLEDGED, ARCHIVED, AVAILABLE
from barnabas.shares.partition.share_partition import SharePartition, StateRange
from barnabas.shares.partition.transactions import ProducedBatch, aborted_spans, without

LIMITS = ShareLimits(record_locks_max=2_000_000)
ACCEPT, RELEASE = [1], [2]


def wish(state: SharePartition, records: int, member: str = "ann", strict: bool = False) -> Wish:
    return Wish(member, state.next_fetch_offset, records, 500, strict, 30_000)


def test_a_million_records_in_flight_are_few_runs() -> None:
    state = SharePartition(0)
    for first in range(0, 1_000_000, 500):
        acquire(state, wish(state, 500), [Span(first, first + 499)], LIMITS)
    assert state.in_flight == 1_000_000
    assert len(state.runs) == 2000
    change = acknowledge(state, "ann", [Acknowledgement(500_100, 500_100, ACCEPT)], LIMITS, 0)
    assert state.complete(change, is_stored=True, now_ms=0) is False
    assert len(state.runs) == 2002
    change = acknowledge(state, "ann", [Acknowledgement(500_101, 500_499, ACCEPT)], LIMITS, 0)
    state.complete(change, is_stored=True, now_ms=0)
    assert len(state.runs) == 2001  # both acknowledged parts have become one
    change = acknowledge(state, "ann", [Acknowledgement(0, 500_099, ACCEPT)], LIMITS, 0)
    assert len(change.ranges) == 1
    state.complete(change, is_stored=True, now_ms=0)
    assert (state.start_offset, len(state.runs)) == (500_500, 999)


def test_holes_of_the_stored_state_are_delivered_and_the_rest_is_not() -> None:
    stored = [
        StateRange(3, 4, ACKNOWLEDGED, 1),
        StateRange(7, 7, AVAILABLE, 2),
        StateRange(8, 9, ARCHIVED, 5),
    ]
    state = SharePartition.load(0, 4, stored)
    assert (state.next_fetch_offset, state.end_offset, state.complete_count) == (0, 9, 4)
    spans = [Span(0, 5), Span(6, 12)]
    assert acquire(state, wish(state, 100), spans, LIMITS) == [
        Acquired(0, 2, 1),
        Acquired(5, 6, 1),
        Acquired(7, 7, 3),
        Acquired(10, 12, 1),
    ]


@pytest.mark.parametrize(
    "stored", [[(5, 9, 2, 1)], [(12, 11, 2, 1)], [(12, 13, 2, 1), (13, 14, 2, 1)], [(12, 13, 9, 1)]]
)
def test_a_stored_state_that_contradicts_itself_is_refused(stored: list[tuple[int, int, int, int]]) -> None:
    with pytest.raises(KafkaError) as refused:
        SharePartition.load(10, 0, [StateRange(*each) for each in stored])
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_a_change_that_is_not_stored_gives_the_records_back_to_the_member() -> None:
    state = SharePartition(0)
    acquire(state, wish(state, 10), [Span(0, 9)], LIMITS)
    change = acknowledge(state, "ann", [Acknowledgement(0, 4, ACCEPT)], LIMITS, 0)
    assert (state.complete_count, state.start_offset) == (5, 0)
    with pytest.raises(KafkaError):
        acknowledge(state, "ann", [Acknowledgement(0, 0, ACCEPT)], LIMITS, 0)
    state.complete(change, is_stored=False, now_ms=100)
    assert (state.complete_count, state.start_offset) == (0, 0)
    change = acknowledge(state, "ann", [Acknowledgement(0, 9, ACCEPT)], LIMITS, 0)
    state.complete(change, is_stored=True, now_ms=100)
    assert (state.start_offset, state.end_offset, state.next_fetch_offset) == (10, 10, 10)


def test_a_change_that_is_not_stored_in_time_makes_the_records_available() -> None:
    state = SharePartition(0)
    acquire(state, wish(state, 10), [Span(0, 9)], LIMITS)
    change = acknowledge(state, "ann", [Acknowledgement(0, 9, ACCEPT)], LIMITS, 0)
    assert state.expire(30_000, 5) == []
    assert state.complete(change, is_stored=False, now_ms=30_000)
    assert state.next_fetch_offset == 0


def test_records_that_were_delivered_too_often_are_archived() -> None:
    state, limits = SharePartition(0), ShareLimits(deliveries_max=2)
    for _ in range(2):
        acquire(state, wish(state, 10), [Span(0, 9)], limits)
        state.expire(30_000, 2)
    assert state.advance()
    assert (state.start_offset, state.in_flight) == (10, 0)


def test_batches_of_aborted_transactions_are_left_out() -> None:
    batches = [
        ProducedBatch(0, 4, 7, True, False),  # aborted
        ProducedBatch(5, 9, 8, True, False),  # committed
        ProducedBatch(10, 10, 7, True, True),  # the abort
        ProducedBatch(11, 14, 7, True, False),  # the producer's next transaction
        ProducedBatch(15, 19, -1, False, False),
    ]
    assert (spans := aborted_spans(batches, [(0, 7)])) == [Span(0, 4)]
    assert without([Acquired(0, 19, 1)], spans) == [Acquired(5, 19, 1)]
    assert without([Acquired(0, 2, 1), Acquired(3, 6, 2)], spans) == [Acquired(5, 6, 2)]
    assert without([Acquired(0, 9, 1)], [Span(2, 3), Span(6, 9)]) == [Acquired(0, 1, 1), Acquired(4, 5, 1)]


def test_no_more_of_the_log_is_read_than_can_be_acquired() -> None:
    state = SharePartition(0)
    acquire(state, wish(state, 10), [Span(0, 9)], LIMITS)
    assert last_wanted(state, 10, 5, 1000) == 14
    assert last_wanted(state, 10, 5, 12) == 11
    change = acknowledge(state, "ann", [Acknowledgement(2, 3, RELEASE)], LIMITS, 0)
    state.complete(change, is_stored=True, now_ms=0)
    assert last_wanted(state, 2, 1, 1000) == 3
    assert last_wanted(state, 2, 6, 1000) == 13
