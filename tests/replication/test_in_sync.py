"""The in-sync replicas of one partition, and how far a follower's log agrees with its leader's."""

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.replication.divergence import truncation_offset
from barnabas.replication.leader_epochs import LeaderEpochs
from barnabas.replication.partition_state import PartitionState

REPLICAS = (1, 2, 3)
LAG_MS = 1_000


def leading(isr: tuple[int, ...] = REPLICAS, *, end: int = 10, min_isr: int = 1) -> PartitionState:
    state = PartitionState(1, end, end, lag_ms_max=LAG_MS)
    state.min_isr = min_isr
    state.become_leader(5, isr, REPLICAS, partition_epoch=7, now_ms=0, was_leading=False)
    return state


def test_a_follower_that_has_caught_up_joins_and_counts_before_the_controller_agrees() -> None:
    state = leading((1, 2))
    state.advance_follower(2, 10, now_ms=1)
    assert state.isr_with(3) is None  # nothing is known of it in this epoch
    state.advance_follower(3, 10, now_ms=1)
    assert state.isr_with(3) == (1, 2, 3)
    state.propose_isr((1, 2, 3))
    assert (state.isr, state.maximal_isr) == ((1, 2), (1, 2, 3))
    state.advance_log_end(20, now_ms=2)
    assert not state.advance_follower(2, 20, now_ms=3)  # the third is waited for already
    assert state.advance_follower(3, 20, now_ms=4)
    assert state.commit_isr((1, 2, 3), 5, 8, now_ms=4) is False
    assert (state.isr, state.partition_epoch) == ((1, 2, 3), 8)


def test_a_follower_that_lags_leaves_and_is_waited_for_until_the_controller_agrees() -> None:
    state = leading()
    for follower in (2, 3):
        state.advance_follower(follower, 10, now_ms=0)
    state.advance_log_end(20, now_ms=500)
    state.advance_follower(2, 20, now_ms=600)
    assert state.lagging_followers(now_ms=900) == ()
    assert state.lagging_followers(now_ms=LAG_MS + 1) == (3,)
    state.propose_isr((1, 2))
    assert (state.isr, state.maximal_isr) == ((1, 2), REPLICAS)
    assert state.high_watermark == 10
    assert state.commit_isr((1, 2), 5, 8, now_ms=LAG_MS + 2)
    assert state.high_watermark == 20


def test_a_refused_proposal_leaves_everything_as_it_was() -> None:
    state = leading((1, 2))
    state.advance_follower(3, 10)
    state.propose_isr((1, 2, 3))
    state.withdraw_proposal((1, 2))
    assert (state.isr, state.maximal_isr, state.proposed_isr) == ((1, 2), (1, 2), None)


def test_the_response_to_a_proposal_of_an_older_epoch_is_ignored() -> None:
    state = leading((1, 2))
    state.propose_isr((1,))
    state.become_leader(6, (1, 2), REPLICAS, partition_epoch=9, now_ms=1)
    assert not state.commit_isr((1,), 5, 8, now_ms=2)
    assert state.isr == (1, 2)


def test_with_too_few_in_sync_nothing_is_committed() -> None:
    state = leading((1,), min_isr=2)
    assert not state.advance_log_end(20, now_ms=LAG_MS * 2)
    assert state.high_watermark == 10
    assert not state.has_enough_in_sync
    assert state.commit_isr((1, 2), 5, 8, now_ms=LAG_MS * 2) is False  # nothing is known of the second yet
    assert state.advance_follower(2, 20, now_ms=LAG_MS * 2)


def test_a_replica_that_is_about_to_come_back_is_waited_for() -> None:
    state = leading((1, 2))
    state.advance_follower(2, 10, now_ms=0)
    state.advance_follower(3, 10, now_ms=0)
    state.advance_log_end(20, now_ms=1)
    assert not state.advance_follower(2, 20, now_ms=2)
    assert state.advance_follower(3, 15, now_ms=3)
    assert state.high_watermark == 15


def test_a_broker_that_may_not_join_neither_joins_nor_holds_the_high_watermark() -> None:
    state = PartitionState(1, 10, 10, may_join=lambda replica, epoch: replica != 3, lag_ms_max=LAG_MS)
    state.become_leader(5, (1, 2), REPLICAS, 7, 0, was_leading=False)
    state.advance_follower(3, 10, now_ms=0)
    assert state.isr_with(3) is None
    state.advance_log_end(20, now_ms=1)
    assert state.advance_follower(2, 20, now_ms=2)


def test_a_fetch_from_an_earlier_life_of_a_follower_is_refused() -> None:
    state = leading()
    state.advance_follower(2, 10, broker_epoch=30)
    with pytest.raises(KafkaError) as refused:
        state.advance_follower(2, 4, broker_epoch=20)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert state.followers[2].log_end_offset == 10


def test_a_follower_always_a_little_behind_a_busy_leader_keeps_up() -> None:
    state = leading()
    end = 10
    for turn in range(10):
        now_ms = turn * 500
        state.advance_follower(2, end, now_ms=now_ms)
        state.advance_follower(3, end, now_ms=now_ms)
        state.advance_log_end(end + 5, now_ms=now_ms)
        assert state.lagging_followers(now_ms) == ()
        end += 5


def test_an_idle_follower_is_not_lagging_when_records_come_after_a_long_time() -> None:
    fetched_ms = {2: 0, 3: 0}
    state = PartitionState(1, 10, 10, lag_ms_max=LAG_MS, fetched_ms=fetched_ms)
    state.become_leader(5, REPLICAS, REPLICAS, 7, 0, was_leading=False)
    for follower in (2, 3):
        state.advance_follower(follower, 10, now_ms=0)
    fetched_ms[2] = 50_000  # it fetches on, without naming this partition; the third does not
    state.advance_log_end(11, now_ms=50_100)
    assert state.lagging_followers(50_200) == (3,)


@pytest.mark.parametrize(
    ("asked", "cut"),
    [
        ((2, 15), 15),  # the leader's epoch 2 ended earlier
        ((2, 25), 20),  # it went on, but not with what is here
        ((1, 10), 10),  # the leader never had epoch 2
        ((0, 4), 4),
        ((7, 30), 30),  # an epoch that began here and wrote nothing
    ],
)
def test_a_log_is_cut_where_it_parts_from_the_leaders(asked: tuple[int, int], cut: int) -> None:
    epochs = LeaderEpochs([(0, 0), (1, 5), (2, 10), (3, 20)])
    assert truncation_offset(epochs, 30, *asked) == cut


def test_an_epoch_that_the_follower_does_not_know_is_asked_for_again() -> None:
    epochs = LeaderEpochs([(0, 0), (4, 8)])
    assert truncation_offset(epochs, 12, 2, 10) == 8  # then the leader is asked with epoch 0
