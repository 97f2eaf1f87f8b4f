"""Rules of one partition's state, one by one: epochs, what followers prove, and which proposals are made."""

from __future__ import annotations

import pytest

from barnabas.protocol import KafkaError
from barnabas.replication.follower_progress import NEVER, FollowerProgress
from barnabas.replication.partition_state import NO_EPOCH, PartitionState

REPLICAS = (1, 2, 3)
LAG_MS = 1_000


def leading(isr: tuple[int, ...] = REPLICAS, *, end: int = 10, min_isr: int = 1) -> PartitionState:
    state = PartitionState(1, end, end, lag_ms_max=LAG_MS)
    state.min_isr = min_isr
    state.become_leader(5, isr, REPLICAS, partition_epoch=7, now_ms=0, was_leading=False)
    return state


# -- leading and following ---------------------------------------------------------------------------


def test_a_partition_begins_alone_and_in_no_epoch() -> None:
    state = PartitionState(1)

    assert (state.leader_epoch, state.partition_epoch, state.epoch_start_offset) == (NO_EPOCH, NO_EPOCH, 0)
    assert state.has_no_followers


def test_alone_the_end_of_the_log_is_kept_even_where_nothing_new_is_committed() -> None:
    state = PartitionState(1)
    state.become_leader(0, [1])
    state.advance_log_end(5)
    state.truncate(2)
    state.high_watermark = 5  # as a leader that is told of an end below what it had committed

    assert not state.advance_log_end(4)
    assert state.log_end_offset == 4


@pytest.mark.parametrize(("epoch", "was_leading"), [(6, True), (5, False), (6, False)])
def test_a_new_leader_knows_nothing_of_followers(epoch: int, was_leading: bool) -> None:
    state = leading()
    state.advance_follower(2, 10, now_ms=1, log_start_offset=3, broker_epoch=30)
    state.log_end_offset = 12
    state.become_leader(epoch, (1, 2), REPLICAS, 8, now_ms=2, was_leading=was_leading)

    assert state.epoch_start_offset == 12
    assert state.followers[2] == FollowerProgress(-1, -1, -1, 2, 2, 12)
    assert state.followers[3] == FollowerProgress(-1, -1, -1, NEVER, NEVER, -1)
    assert (state.leader_epoch, state.partition_epoch) == (epoch, 8)


def test_a_leader_keeps_followers_progress_within_an_epoch() -> None:
    state = leading()
    state.advance_follower(2, 10, now_ms=1)
    state.log_end_offset = 12
    state.become_leader(5, (1, 2), REPLICAS, 8, now_ms=2, was_leading=True)

    assert state.followers[2].log_end_offset == 10
    assert state.epoch_start_offset == 10
    assert state.partition_epoch == 8


def test_a_follower_has_no_followers_and_no_isr() -> None:
    state = leading()
    state.propose_isr((1, 2))
    state.become_follower(6, 9)

    assert (state.leader_epoch, state.partition_epoch) == (6, 9)
    assert state.followers == {}
    assert not state.has_no_followers
    assert (state.isr, state.maximal_isr, state.proposed_isr) == ((), (), None)
    alone = PartitionState(1)
    alone.become_leader(0, [1])
    alone.become_follower(1, 1)
    assert not alone.has_no_followers


def test_a_follower_learns_the_high_watermark_as_far_as_its_own_log_goes() -> None:
    state = PartitionState(1, log_end_offset=10, high_watermark=4)

    assert state.learn_high_watermark(7)
    assert state.high_watermark == 7
    assert not state.learn_high_watermark(7)
    assert not state.learn_high_watermark(5)
    assert state.high_watermark == 7
    assert state.learn_high_watermark(15)
    assert state.high_watermark == 10


# -- what a fetch of a follower proves ---------------------------------------------------------------


def test_a_fetch_tells_where_a_follower_begins_and_in_which_life_it_is() -> None:
    state = leading()
    state.advance_follower(2, 10, now_ms=1, log_start_offset=3, broker_epoch=30)
    state.advance_follower(2, 10, now_ms=2, log_start_offset=4, broker_epoch=30)  # the same life

    assert (state.followers[2].log_start_offset, state.followers[2].broker_epoch) == (4, 30)
    with pytest.raises(KafkaError):
        state.advance_follower(2, 10, now_ms=3, broker_epoch=29)


def test_a_follower_in_the_isr_has_the_lag_time_to_fetch() -> None:
    state = leading((1, 2))
    state.advance_log_end(20, now_ms=1)

    assert state.lagging_followers(LAG_MS) == ()
    assert state.lagging_followers(LAG_MS + 1) == (2,)


def test_a_follower_at_the_end_of_the_log_is_caught_up_from_its_fetch_on() -> None:
    state = leading((1, 2))
    state.advance_follower(2, 10, now_ms=700)
    state.advance_log_end(20, now_ms=800)

    assert state.lagging_followers(700 + LAG_MS) == ()
    assert state.lagging_followers(701 + LAG_MS) == (2,)


def test_a_follower_where_the_log_ended_at_its_last_fetch_was_caught_up_then() -> None:
    state = leading((1, 2))
    state.advance_follower(2, 8, now_ms=700)  # the log ends at 10
    state.advance_log_end(20, now_ms=800)
    state.advance_follower(2, 10, now_ms=900)  # where it ended at 700
    state.advance_log_end(30, now_ms=950)

    assert state.lagging_followers(700 + LAG_MS) == ()
    assert state.lagging_followers(701 + LAG_MS) == (2,)


def test_a_follower_short_of_where_the_log_ended_at_its_last_fetch_proves_nothing() -> None:
    state = leading((1, 2))
    state.advance_log_end(12, now_ms=600)
    state.advance_follower(2, 8, now_ms=700)
    state.advance_log_end(20, now_ms=800)
    state.advance_follower(2, 11, now_ms=900)

    assert state.lagging_followers(LAG_MS + 1) == (2,)


def test_a_fetch_of_an_empty_log_counts_as_caught_up() -> None:
    """The end of a log may be zero: a fetch from there was at the end."""
    progress = FollowerProgress()
    progress.record_fetch(0, 5, now_ms=1)
    assert progress.caught_up_ms == NEVER  # nothing is known of a fetch before
    progress = FollowerProgress()
    progress.begin_epoch(0, now_ms=0, in_sync=True)
    progress.record_fetch(0, 5, now_ms=9)
    assert progress.caught_up_ms == 0
    progress.record_fetch(5, 8, now_ms=12)
    assert progress.caught_up_ms == 9


def test_an_old_fetch_does_not_take_back_that_a_follower_was_caught_up() -> None:
    progress = FollowerProgress(10, caught_up_ms=500, fetched_ms=300, leader_end_at_fetch=10)
    progress.record_fetch(10, 12, now_ms=600)
    assert progress.caught_up_ms == 500
    progress.record_fetch(12, 12, now_ms=400)
    assert progress.caught_up_ms == 500


# -- the ISR -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("isr", "min_isr", "enough"),
    [((1, 2), 2, True), ((1,), 2, False), (REPLICAS, 5, True), ((1, 2), 5, False), ((1, 2, 3), 3, True)],
)
def test_enough_are_in_sync_when_all_are_or_as_many_as_demanded(
    isr: tuple[int, ...], min_isr: int, enough: bool
) -> None:
    assert leading(isr, min_isr=min_isr).has_enough_in_sync is enough


def test_a_follower_joins_only_with_all_that_was_there_when_the_epoch_began() -> None:
    state = PartitionState(1, log_end_offset=10, high_watermark=4, lag_ms_max=LAG_MS)
    state.become_leader(5, (1, 2), REPLICAS, 7, now_ms=0, was_leading=False)
    state.advance_follower(3, 9, now_ms=1)
    assert state.isr_with(3) is None  # beyond the high watermark, and short of the epoch
    state.advance_follower(3, 10, now_ms=2)
    assert state.isr_with(3) == (1, 2, 3)


def test_while_a_proposal_is_under_way_none_is_made() -> None:
    state = leading((1, 2))
    state.advance_follower(3, 10, now_ms=0)
    state.propose_isr((1,))

    assert state.proposed_isr == (1,)
    assert state.isr_with(3) is None
    assert state.lagging_followers(LAG_MS * 9) == ()
    state = leading()
    state.propose_isr((1, 2))
    assert state.lagging_followers(LAG_MS * 9) == ()  # though two are in sync


def test_a_replica_that_is_to_leave_is_waited_for_until_the_controller_agrees() -> None:
    state = leading()
    state.advance_log_end(20, now_ms=1)
    state.propose_isr((1, 2))  # the third fell behind
    assert not state.advance_follower(2, 20, now_ms=LAG_MS * 9)
    assert state.high_watermark == 10
    assert state.commit_isr((1, 2), 5, 8, now_ms=LAG_MS * 9)
    assert state.high_watermark == 20


def test_of_two_in_sync_the_one_that_lags_leaves() -> None:
    state = leading((1, 2))
    state.advance_log_end(20, now_ms=1)

    assert state.lagging_followers(LAG_MS * 9) == (2,)


def test_an_answer_counts_from_the_epoch_on_that_is_known() -> None:
    state = leading((1, 2))
    state.propose_isr((1,))
    assert not state.commit_isr((1,), 5, 6, now_ms=1)  # the metadata log was faster
    assert state.isr == (1,) and state.proposed_isr == (1,) and state.maximal_isr == (1, 2)
    state.commit_isr((1,), 5, 7, now_ms=1)
    assert state.proposed_isr is None and state.maximal_isr == (1,)
    state.propose_isr((1, 2))
    assert not state.commit_isr((1, 2), 4, 9, now_ms=1)  # of another leader
    assert state.proposed_isr == (1, 2)
