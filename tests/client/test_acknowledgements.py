"""Acknowledgements of share consumers become batches, and deliveries know what was acknowledged."""

import pytest

from barnabas.client.consumers.share_deliveries import Deliveries, Delivery
from barnabas.client.core.acknowledgements import AckBatch, AcknowledgeType, accept, batches_of
from barnabas.client.core.share_fetching import Acquired, ShareRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.records.batch import TimestampType

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
WHERE = TopicPartition("orders", 0)


def delivery(*offsets: int, ranges: list[tuple[int, int]], **others: frozenset[int]) -> Delivery:
    records = [
        ShareRecord(*WHERE, offset, 0, 0, TimestampType.CREATE_TIME, None, b"", (), 1) for offset in offsets
    ]
    return Delivery(None, (b"id", 0), Acquired(records, ranges, **others))  # type: ignore[arg-type]


def test_consecutive_offsets_of_one_type_are_one_entry() -> None:
    assert batches_of(dict.fromkeys(range(5, 500), ACCEPT)) == [AckBatch(5, 499, (1,))]


def test_mixed_types_have_an_entry_for_each_offset() -> None:
    assert batches_of({3: RELEASE, 1: ACCEPT, 2: REJECT}) == [AckBatch(1, 3, (1, 3, 2))]


def test_offsets_apart_are_batches_of_their_own() -> None:
    assert batches_of({1: ACCEPT, 3: ACCEPT, 4: ACCEPT}) == [AckBatch(1, 1, (1,)), AckBatch(3, 4, (1,))]


def test_whole_ranges_are_accepted_but_for_gaps() -> None:
    assert accept([(0, 9), (20, 22)]) == [AckBatch(0, 9, (1,)), AckBatch(20, 22, (1,))]
    assert accept([(0, 2), (5, 5)], {1}) == [AckBatch(0, 2, (1, 0, 1)), AckBatch(5, 5, (1,))]


def test_a_delivery_is_accepted_as_ranges() -> None:
    deliveries = Deliveries()
    deliveries.add(delivery(0, 1, 3, ranges=[(0, 3)], gaps=frozenset({2})))
    [(_, batches)] = deliveries.pop_acknowledgements(accepts_all=True)
    assert batches == [AckBatch(0, 3, (1, 1, 0, 1))]
    assert deliveries.pop_acknowledgements(accepts_all=True) == []


def test_only_records_with_an_acknowledgement_are_sent() -> None:
    deliveries = Deliveries()
    deliveries.add(delivery(0, 1, 2, ranges=[(0, 2)]))
    deliveries.acknowledge(WHERE, 1, REJECT)
    [(_, batches)] = deliveries.pop_acknowledgements(accepts_all=False)
    assert batches == [AckBatch(1, 1, (3,))]
    assert deliveries.has_open
    deliveries.acknowledge(WHERE, 0, ACCEPT)
    deliveries.acknowledge(WHERE, 2, RELEASE)
    [(_, batches)] = deliveries.pop_acknowledgements(accepts_all=False)
    assert batches == [AckBatch(0, 0, (1,)), AckBatch(2, 2, (2,))]
    assert not deliveries.has_open


def test_a_renewed_record_can_be_acknowledged_again() -> None:
    deliveries = Deliveries()
    deliveries.add(delivery(7, ranges=[(7, 7)]))
    deliveries.acknowledge(WHERE, 7, RENEW)
    [(_, batches)] = deliveries.pop_acknowledgements(accepts_all=False)
    assert batches == [AckBatch(7, 7, (4,))]
    assert not deliveries.has_open
    deliveries.acknowledge(WHERE, 7, ACCEPT)
    [(_, batches)] = deliveries.pop_acknowledgements(accepts_all=False)
    assert batches == [AckBatch(7, 7, (1,))]
    assert deliveries.pop_acknowledgements(accepts_all=False) == []


def test_unreadable_records_are_rejected() -> None:
    deliveries = Deliveries()
    deliveries.add(delivery(0, ranges=[(0, 2)], unreadable=frozenset({1, 2})))
    [(_, batches)] = deliveries.pop_acknowledgements(accepts_all=True)
    assert batches == [AckBatch(0, 2, (1, 3, 3))]


@pytest.mark.parametrize("offset", [2, 9])
def test_records_that_were_not_delivered_cannot_be_acknowledged(offset: int) -> None:
    deliveries = Deliveries()
    deliveries.add(delivery(0, 1, ranges=[(0, 2)], gaps=frozenset({2})))
    with pytest.raises(ValueError, match="cannot be acknowledged"):
        deliveries.acknowledge(WHERE, offset, ACCEPT)


def test_an_acknowledgement_that_was_sent_cannot_be_changed() -> None:
    deliveries = Deliveries()
    deliveries.add(delivery(0, 1, ranges=[(0, 1)]))
    deliveries.acknowledge(WHERE, 0, ACCEPT)
    deliveries.acknowledge(WHERE, 0, REJECT)
    assert deliveries.pop_acknowledgements(accepts_all=False)[0][1] == [AckBatch(0, 0, (3,))]
    with pytest.raises(ValueError, match="cannot be acknowledged"):
        deliveries.acknowledge(WHERE, 0, RELEASE)
