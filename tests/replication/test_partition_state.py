from hypothesis import given
from hypothesis import strategies as st

from barnabas.replication.partition_state import PartitionState


def test_alone_the_high_watermark_follows_the_log_end() -> None:
    partition = PartitionState(1)
    partition.become_leader(0, [1])
    assert partition.advance_log_end(5)
    assert partition.high_watermark == 5
    assert not partition.advance_log_end(5)


def test_the_slowest_in_sync_replica_holds_the_high_watermark() -> None:
    partition = PartitionState(1)
    partition.become_leader(0, [1, 2, 3])
    assert not partition.advance_log_end(10)
    assert not partition.advance_follower(2, 10)
    assert partition.advance_follower(3, 7)
    assert partition.high_watermark == 7


def test_a_replica_that_leaves_the_isr_holds_nothing_back() -> None:
    partition = PartitionState(1)
    partition.become_leader(4, [1, 2, 3])
    partition.advance_log_end(10)
    partition.advance_follower(2, 9)
    assert partition.become_leader(4, [1, 2])
    assert partition.high_watermark == 9


def test_a_replica_outside_of_the_isr_counts_for_nothing() -> None:
    partition = PartitionState(1)
    partition.become_leader(0, [1, 2])
    partition.advance_log_end(10)
    assert not partition.advance_follower(9, 10)
    assert partition.high_watermark == 0


def test_a_new_epoch_resets_followers_progress() -> None:
    partition = PartitionState(1)
    partition.become_leader(0, [1, 2])
    partition.advance_log_end(5)
    partition.advance_follower(2, 5)
    partition.become_leader(1, [1, 2])
    assert not partition.advance_log_end(8)
    assert partition.high_watermark == 5
    assert partition.advance_follower(2, 6)
    assert partition.high_watermark == 6


def test_truncation_takes_the_high_watermark_with_it() -> None:
    partition = PartitionState(1, log_end_offset=10, high_watermark=8)
    partition.truncate(6)
    assert (partition.log_end_offset, partition.high_watermark) == (6, 6)


def test_an_open_transaction_holds_the_last_stable_offset() -> None:
    partition = PartitionState(1, log_end_offset=10, high_watermark=8)
    assert partition.last_stable_offset(None) == 8
    assert partition.last_stable_offset(3) == 3
    assert partition.last_stable_offset(9) == 8


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 20)), max_size=40))
def test_the_high_watermark_is_on_every_in_sync_replica_and_never_falls(steps: list[tuple[int, int]]) -> None:
    partition = PartitionState(1)
    partition.become_leader(0, [1, 2, 3])
    ends = {1: 0, 2: -1, 3: -1}
    for replica, offset in steps:
        before = partition.high_watermark
        if replica == 1:
            ends[1] = max(ends[1], offset)
            moved = partition.advance_log_end(ends[1])
        else:
            offset = min(offset, ends[1])
            moved = partition.advance_follower(replica, offset)
            if replica in ends:
                ends[replica] = offset
        assert moved == (partition.high_watermark > before)
        assert partition.high_watermark == max(before, min(ends.values()))
