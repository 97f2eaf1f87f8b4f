"""Rules of fetch sessions, one by one: what is read, what is named, and when a request goes on."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.replication.fetch_sessions import FetchContext, FetchSessions, SessionPartition
from replication.test_fetch_sessions import fetch_request

Data = FetchResponse.FetchableTopicResponse.PartitionData


def sessions() -> FetchSessions:
    return FetchSessions(10, Random(1))


def names(partitions: list[SessionPartition]) -> list[str]:
    return [f"{each.topic}-{each.index}" for each in partitions]


def told(context: FetchContext) -> FetchContext:
    """Every partition was answered: no records, the log from 0 to 5."""
    for partition in context.partitions:
        context.include_state(partition, 5, 0)
    return context


def test_a_partition_that_comes_later_is_read() -> None:
    found = sessions()
    first = told(found.open(fetch_request(0, 0, {"one-0": 0}), 12, 0))

    second = found.open(fetch_request(first.session_id, 1, {"two-0": 0}), 12, 0)
    assert names(second.partitions) == ["one-0", "two-0"]


def test_a_session_forgets_whom_it_has_sent_to_the_end() -> None:
    found = sessions()
    first = told(found.open(fetch_request(0, 0, {"one-0": 0, "two-0": 0}), 12, 0))
    for epoch in range(1, 50):
        context = found.open(fetch_request(first.session_id, epoch, {}), 12, 0)
        session = context._session
        assert session is not None and session._moved == []
        context.include_state(context.partitions[0], 5 + epoch, 0, has_records=True)
        assert len(session._moved) == 1


def test_the_later_of_two_partitions_has_the_higher_number() -> None:
    found = sessions()
    first, second = (found.open(fetch_request(0, 0, {"one-0": 0}), 12, 0).partitions[0] for _ in range(2))

    assert second.number > first.number


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_follower_s_request_lists_the_partitions_it_names(epoch: int) -> None:
    found = sessions()
    context = found.open(fetch_request(0, epoch, {"one-0": 0, "two-0": 0}), 12, 0, privileged=True)
    assert names(list(context.named)) == ["one-0", "two-0"]
    if not epoch:
        later = found.open(fetch_request(context.session_id, 1, {"two-0": 3}), 12, 0, privileged=True)
        assert names(list(later.named)) == ["two-0"]
    assert list(found.open(fetch_request(0, 0, {"one-0": 0}), 12, 0).named) == []  # a consumer's


def test_a_partition_named_again_by_a_follower_is_sent_again() -> None:
    found = sessions()
    first = told(found.open(fetch_request(0, 0, {"one-0": 0, "two-0": 0}), 12, 0, privileged=True))
    second = found.open(fetch_request(first.session_id, 1, {"one-0": 0}), 12, 0, privileged=True)

    assert [second.include_state(each, 5, 0) for each in first.partitions] == [True, False]


def test_after_its_first_request_a_follower_reads_unsettled_partitions() -> None:
    found = sessions()
    first = found.open(fetch_request(0, 0, {"one-0": 0, "two-0": 0}), 12, 0, privileged=True)
    assert names(first.to_read()) == ["one-0", "two-0"]
    first.mark_settled(first.partitions[0])
    assert names(first.to_read()) == ["one-0", "two-0"]  # a full request names all
    assert not first.has_settled

    second = found.open(fetch_request(first.session_id, 1, {}), 12, 0, privileged=True)
    assert names(second.to_read()) == ["two-0"]
    assert second.has_settled
    first.partitions[0].mark()
    assert names(second.to_read()) == ["two-0", "one-0"]
    assert not second.has_settled


def test_a_consumer_reads_everything_and_settles_nothing() -> None:
    found = sessions()
    first = told(found.open(fetch_request(0, 0, {"one-0": 0}), 12, 0))
    second = found.open(fetch_request(first.session_id, 1, {}), 12, 0)

    for context in (first, second):
        assert names(context.to_read()) == ["one-0"]
        assert not context.has_settled


def test_a_follower_without_a_session_reads_everything() -> None:
    context = sessions().open(fetch_request(0, -1, {"one-0": 0, "two-0": 0}), 12, 0, privileged=True)

    assert names(context.to_read()) == ["one-0", "two-0"]
    assert not context.has_settled


@pytest.mark.parametrize(
    "news",
    [
        {"preferred_read_replica": 0},
        {"diverging_epoch": Data.EpochEndOffset(epoch=0, end_offset=3)},
    ],
)
def test_replica_zero_and_epoch_zero_are_news(news: dict[str, object]) -> None:
    found = sessions()
    first = told(found.open(fetch_request(0, 0, {"one-0": 0}), 12, 0))
    second = found.open(fetch_request(first.session_id, 1, {}), 12, 0)
    [partition] = second.partitions

    assert not second.include(partition, Data(high_watermark=5, log_start_offset=0))
    assert second.include(partition, Data(high_watermark=5, log_start_offset=0, **news))


def test_the_end_of_an_error_is_news_though_the_log_is_as_it_was() -> None:
    found = sessions()
    first = told(found.open(fetch_request(0, 0, {"one-0": 0}), 12, 0))
    second = found.open(fetch_request(first.session_id, 1, {}), 12, 0)
    [partition] = second.partitions
    assert second.include_state(partition, 5, 0, failed=True)

    third = found.open(fetch_request(first.session_id, 2, {}), 12, 0)
    assert third.include_state(partition, 5, 0)
    assert not third.include_state(partition, 5, 0)


def test_a_request_goes_on_in_the_next_epoch_of_a_session_that_is_there() -> None:
    found = sessions()
    context = found.open(fetch_request(0, 0, {"one-0": 0}), 12, 0, privileged=True)
    session = context.follower_session
    assert session is not None

    assert found.is_next(session, 1)
    assert not found.is_next(session, 0)
    assert not found.is_next(session, 2)
    found.open(fetch_request(session.session_id, -1, {}), 12, 0, privileged=True)  # closed
    assert not found.is_next(session, 1)
