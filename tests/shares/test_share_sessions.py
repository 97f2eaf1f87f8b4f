"""Share sessions: epochs, partitions that come and go, limits, connections that are lost."""

from __future__ import annotations

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.shares.sessions.share_sessions import (
    FINAL_EPOCH,
    INT32_MAX,
    MemberKey,
    ShareSessions,
    TopicIdPartition,
    next_epoch,
)

TOPIC = b"t" * 16
ANN, BEN = MemberKey("group", "ann"), MemberKey("group", "ben")
P0, P1 = TopicIdPartition(TOPIC, 0), TopicIdPartition(TOPIC, 1)


def test_each_request_needs_the_next_epoch() -> None:
    sessions = ShareSessions(10)
    session = sessions.open(ANN, [P0], "here")
    assert sessions.use(ANN, 1) is session
    assert sessions.use(ANN, 2) is session
    with pytest.raises(KafkaError) as refused:
        sessions.use(ANN, 2)
    assert refused.value.code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.use(ANN, 3) is session


def test_epochs_begin_again_after_the_largest() -> None:
    assert next_epoch(INT32_MAX) == 1
    assert next_epoch(FINAL_EPOCH) == FINAL_EPOCH


def test_a_member_without_a_session_is_told_so() -> None:
    sessions = ShareSessions(10)
    for epoch in (1, FINAL_EPOCH):
        with pytest.raises(KafkaError) as refused:
            sessions.use(ANN, epoch)
        assert refused.value.code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_new_session_replaces_the_members_old_one_even_at_the_limit() -> None:
    sessions = ShareSessions(1)
    first = sessions.open(ANN, [P0], "here")
    second = sessions.open(ANN, [P1], "there")
    assert second is not first
    assert sessions.of_connection("here") == []
    with pytest.raises(KafkaError) as refused:
        sessions.open(BEN, [P0], "here")
    assert refused.value.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert len(sessions) == 1


def test_a_group_has_members_until_its_last_session_ends() -> None:
    sessions = ShareSessions(10)
    sessions.open(ANN, [P0], "a")
    sessions.open(BEN, [P0, P1], "b")
    assert sessions.partition_count == 3
    sessions.remove(ANN)
    assert sessions.has_members("group")
    assert [each.key for each in sessions.of_connection("b")] == [BEN]
    sessions.remove(BEN)
    assert not sessions.has_members("group")


def test_a_response_has_partitions_with_news_and_those_just_added() -> None:
    session = ShareSessions(10).open(ANN, [P0], "here")
    session.update([P1], [])
    assert not session.include(P0, has_records=False, has_error=False)
    assert session.include(P1, has_records=False, has_error=False)
    assert not session.include(P1, has_records=False, has_error=False)
    assert session.include(P0, has_records=True, has_error=False)
    assert list(session.partitions) == [P1, P0]  # with records: served last next time
    assert session.include(P1, has_records=False, has_error=True)
    assert session.include(P1, has_records=False, has_error=False)  # the error is over
    assert not session.include(P1, has_records=False, has_error=False)
    session.update([], [P1])
    assert list(session.partitions) == [P0]


def test_a_partition_that_was_forgotten_meanwhile_shows_its_records_and_errors() -> None:
    session = ShareSessions(10).open(ANN, [P0], "here")
    assert session.include(P1, has_records=True, has_error=False)
    assert session.include(P1, has_records=False, has_error=True)
    assert not session.include(P1, has_records=False, has_error=False)
    assert list(session.partitions) == [P0]


def test_a_new_session_begins_with_epoch_one() -> None:
    assert next_epoch(0) == 1


def test_a_connection_with_two_sessions_is_known_until_both_have_ended() -> None:
    sessions = ShareSessions(10)
    sessions.open(ANN, [P0], "here")
    sessions.open(BEN, [P0], "here")
    sessions.remove(ANN)
    assert [each.key for each in sessions.of_connection("here")] == [BEN]
    sessions.remove(BEN)
    assert sessions.connection_count == sessions.evictions == 0


def test_no_session_is_left_when_share_groups_are_switched_off() -> None:
    sessions = ShareSessions(10)
    session = sessions.open(ANN, [P0], "here")
    assert sessions.clear() == [session]
    assert len(sessions) == sessions.partition_count == sessions.connection_count == 0
    assert not sessions.has_members("group")
