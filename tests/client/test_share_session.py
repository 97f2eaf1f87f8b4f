"""Share sessions: requests name what changed, and epochs follow Kafka's rules."""

import pytest

from barnabas.client.core.acknowledgements import AckBatch
from barnabas.client.core.fetching import DamagedBatch
from barnabas.client.core.share_fetching import SharePartitionData, read_acquired
from barnabas.client.core.share_session import EPOCH_MAX, Place, ShareLimits, ShareSession
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.records.record import Record, build_batch

A, B = bytes([1] * 16), bytes([2] * 16)
WHERE = TopicPartition("orders", 0)
LIMITS = ShareLimits()


def names(request: ShareFetchRequest) -> tuple[list[Place], list[Place]]:
    """The partitions that a request adds, or acknowledges, and those that it forgets."""
    added = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    forgotten = [
        (topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]
    return added, forgotten


def wanted(*places: Place) -> dict[Place, TopicPartition]:
    return dict.fromkeys(places, WHERE)


def test_the_first_request_names_all_partitions() -> None:
    session = ShareSession("workers", "me")
    request = session.fetch_request(wanted((A, 0), (A, 1), (B, 0)), {}, LIMITS)
    assert (request.group_id, request.member_id, request.share_session_epoch) == ("workers", "me", 0)
    assert names(request) == ([(A, 0), (A, 1), (B, 0)], [])


def test_later_requests_name_what_changed() -> None:
    session = ShareSession("workers", "me")
    session.fetch_request(wanted((A, 0), (A, 1)), {}, LIMITS)
    session.answered(0)
    request = session.fetch_request(wanted((A, 1), (B, 3)), {}, LIMITS)
    assert request.share_session_epoch == 1
    assert names(request) == ([(B, 3)], [(A, 0)])


def test_acknowledgements_travel_with_fetches() -> None:
    session = ShareSession("workers", "me")
    session.fetch_request(wanted((A, 0)), {}, LIMITS)
    session.answered(0)
    request = session.fetch_request(wanted((A, 0)), {(A, 0): [AckBatch(3, 5, (1,))]}, LIMITS)
    [batch] = request.topics[0].partitions[0].acknowledgement_batches
    assert (batch.first_offset, batch.last_offset, batch.acknowledge_types) == (3, 5, [1])


def test_acknowledgements_alone_do_not_change_the_partitions() -> None:
    session = ShareSession("workers", "me")
    session.fetch_request(wanted((A, 0)), {}, LIMITS)
    session.answered(0)
    request = session.acknowledge_request({(A, 0): [AckBatch(3, 3, (4,))]})
    assert request.share_session_epoch == 1
    assert request.is_renew_ack
    session.answered(0)
    assert names(session.fetch_request(wanted((A, 0)), {}, LIMITS)) == ([], [])


def test_a_session_is_closed_with_the_final_epoch() -> None:
    session = ShareSession("workers", "me")
    session.answered(0)
    assert session.acknowledge_request({}, closes=True).share_session_epoch == -1


@pytest.mark.parametrize("code", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH])
def test_a_session_that_the_broker_does_not_know_begins_anew(code: ErrorCode) -> None:
    session = ShareSession("workers", "me")
    session.fetch_request(wanted((A, 0)), {}, LIMITS)
    session.answered(0)
    session.answered(code)
    assert session.is_new
    request = session.fetch_request(wanted((A, 0)), {}, LIMITS)
    assert request.share_session_epoch == 0
    assert names(request) == ([(A, 0)], [])


def test_epochs_wrap_around_to_one() -> None:
    session = ShareSession("workers", "me")
    session.epoch = EPOCH_MAX
    session.answered(0)
    assert session.epoch == 1


def data(records: bytes | None, *acquired: tuple[int, int, int]) -> SharePartitionData:
    part = SharePartitionData.AcquiredRecords
    return SharePartitionData(
        records=records,
        acquired_records=[
            part(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in acquired
        ],
    )


def batch(first: int, count: int) -> bytes:
    records = [Record(-1, 1_000, None, b"%d" % (first + index), ()) for index in range(count)]
    built = bytearray(build_batch(records))
    built[:8] = first.to_bytes(8, "big")
    return bytes(built)


def test_only_acquired_records_are_read_with_their_delivery_counts() -> None:
    found = read_acquired(WHERE, data(batch(0, 6), (1, 2, 1), (4, 4, 3)))
    assert [(record.offset, record.value, record.delivery_count) for record in found.records] == [
        (1, b"1", 1),
        (2, b"2", 1),
        (4, b"4", 3),
    ]
    assert (found.ranges, found.gaps) == ([(1, 2), (4, 4)], frozenset())


def test_acquired_offsets_without_a_record_are_gaps() -> None:
    found = read_acquired(WHERE, data(batch(0, 2) + batch(5, 1), (0, 5, 1)))
    assert [record.offset for record in found.records] == [0, 1, 5]
    assert found.gaps == {2, 3, 4}
    assert read_acquired(WHERE, data(None, (7, 8, 1))).gaps == {7, 8}


def test_acquired_ranges_that_overlap_count_once() -> None:
    found = read_acquired(WHERE, data(batch(0, 4), (0, 2, 1), (2, 3, 2)))
    assert [record.offset for record in found.records] == [0, 1, 2, 3]
    assert found.ranges == [(0, 2), (3, 3)]


def test_a_damaged_batch_is_named_and_its_offsets_are_unreadable() -> None:
    damaged = bytearray(batch(2, 2))
    damaged[-1] ^= 0xFF
    found = read_acquired(WHERE, data(batch(0, 2) + bytes(damaged) + batch(4, 1), (0, 4, 1)))
    assert [record.offset for record in found.records] == [0, 1, 4]
    assert found.unreadable == {2, 3}
    assert isinstance(found.damage, DamagedBatch)
