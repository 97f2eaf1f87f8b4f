"""The share coordinator's shard: what it writes for each request, and what it is after a replay."""

from __future__ import annotations

import random

import pytest

from barnabas.protocol import ErrorCode
from barnabas.shares.state.batches import StateBatch
from barnabas.shares.state.keys import ShareKey
from barnabas.shares.state.records import Entry, Snapshot, Update
from barnabas.shares.state.settings import ShareStateSettings

from .host import OTHER_ID, TOPIC_ID, Host, error, image_with, state_of

NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
FENCED_STATE, FENCED_LEADER = ErrorCode.FENCED_STATE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH


def kinds(entries: list[Entry]) -> str:
    """S for a snapshot, u for an update, - for a tombstone."""
    return "".join({Snapshot: "S", Update: "u"}.get(type(each.value), "-") for each in entries)


def test_an_initialized_state_is_a_snapshot_without_batches() -> None:
    host = Host()
    assert error(host.initialize(epoch=3, start=17)) == NONE
    [entry] = host.entries
    assert isinstance(entry.value, Snapshot)
    assert (entry.value.state_epoch, entry.value.start_offset, entry.value.delivery_complete_count) == (
        3,
        17,
        0,
    )
    assert host.summary().start_offset == 17


def test_reading_and_writing_need_a_state() -> None:
    host = Host()
    assert error(host.read()) == error(host.write(0)) == INVALID
    assert error(host.summary()) == error(host.delete()) == NONE
    assert host.summary().start_offset == -1
    assert not host.log


def test_an_older_state_epoch_is_fenced() -> None:
    host = Host()
    host.initialize(epoch=5)
    assert error(host.initialize(epoch=4)) == FENCED_STATE
    assert error(host.write(0, state_epoch=4)) == FENCED_STATE
    assert error(host.write(0, state_epoch=5)) == error(host.write(0, state_epoch=6)) == NONE


def test_a_repeated_initialization_of_the_same_epoch_keeps_what_was_written() -> None:
    host = Host()
    host.initialize(epoch=5, start=-1)
    host.write(17, state_epoch=5)
    before = len(host.log)
    assert error(host.initialize(epoch=5, start=-1)) == NONE
    assert (host.summary().start_offset, len(host.log)) == (17, before)
    assert error(host.initialize(epoch=6, start=-1)) == NONE
    assert host.summary().start_offset == -1


def test_a_leader_that_reads_fences_the_one_before_it() -> None:
    host = Host()
    host.initialize()
    assert error(host.read(leader_epoch=2)) == NONE
    assert kinds(host.entries) == "Su"
    assert error(host.write(0, leader_epoch=1)) == FENCED_LEADER
    assert error(host.read(leader_epoch=1)) == FENCED_LEADER
    assert error(host.write(0, leader_epoch=2)) == NONE


def test_a_fence_outlives_a_new_beginning_and_a_restart() -> None:
    host = Host()
    host.initialize()
    host.read(leader_epoch=7)
    host.initialize(epoch=2)
    host.shard = host.replayed()
    assert error(host.write(0, state_epoch=2, leader_epoch=6)) == FENCED_LEADER


def test_epochs_are_told_and_a_new_beginning_has_no_leader() -> None:
    host = Host()
    host.initialize(epoch=3)
    host.read(leader_epoch=2)
    assert (host.read().state_epoch, host.summary().state_epoch, host.summary().leader_epoch) == (3, 3, 2)
    host.initialize(epoch=4)
    assert (host.read().state_epoch, host.summary().state_epoch, host.summary().leader_epoch) == (4, 4, 0)


def test_a_snapshot_alone_fences() -> None:
    host = Host(updates_per_snapshot=0)
    host.initialize(epoch=3)
    host.read(leader_epoch=7)
    host.prune(1)
    host.shard = host.replayed()
    assert error(host.write(0, state_epoch=3, leader_epoch=6)) == FENCED_LEADER
    assert error(host.write(0, state_epoch=2, leader_epoch=7)) == FENCED_STATE


def test_a_read_by_a_known_leader_writes_nothing() -> None:
    host = Host()
    host.initialize()
    host.read(leader_epoch=2)
    before = len(host.log)
    host.read(leader_epoch=2)
    host.read(leader_epoch=-1)
    assert len(host.log) == before


def test_enough_updates_are_followed_by_a_snapshot() -> None:
    host = Host(updates_per_snapshot=2)
    host.initialize()
    for number in range(7):
        host.write(number)
    host.initialize()
    assert kinds(host.entries) == "SuuSuuSuS"
    assert [entry.value.snapshot_epoch for entry in host.entries if entry.value] == [
        0,
        0,
        0,
        1,
        1,
        1,
        2,
        2,
        3,
    ]


def test_a_snapshot_has_what_the_updates_said() -> None:
    host = Host(updates_per_snapshot=2)
    host.initialize()
    host.write(5, (5, 9, 0, 1))
    host.write(5, (7, 20, 2, 1))
    host.write(-1, (30, 30, 4, 1), complete=3)
    value = host.entries[-1].value
    assert isinstance(value, Snapshot)
    assert (value.start_offset, value.delivery_complete_count) == (5, 3)
    assert [(each.first_offset, each.last_offset) for each in value.state_batches] == [
        (5, 6),
        (7, 20),
        (30, 30),
    ]


def test_without_updates_every_write_is_a_snapshot() -> None:
    host = Host(updates_per_snapshot=0)
    host.initialize()
    host.write(1)
    host.write(2)
    assert kinds(host.entries) == "SSS"


def test_a_batch_that_ends_before_it_begins_is_refused() -> None:
    host = Host()
    host.initialize()
    assert error(host.write(0, (5, 9, 0, 1), (8, 7, 2, 9))) == INVALID
    assert kinds(host.entries) == "S"


def test_partitions_that_are_not_there_are_unknown() -> None:
    host = Host()
    assert error(host.initialize(4)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error(host.initialize(-1)) == error(host.summary(-1)) == error(host.delete(-1)) == INVALID
    assert error(host.read(-1)) == error(host.write(0, partition=-1)) == INVALID
    assert error(host.initialize(topic_id=bytes(16))) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_state_whose_topic_is_gone_is_neither_read_nor_written() -> None:
    host = Host()
    host.initialize()
    host.image = image_with(OTHER_ID)
    for answer in (host.read(), host.write(1), host.summary(), host.delete(), host.initialize(epoch=2)):
        assert error(answer) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert kinds(host.entries) == "S"


def test_a_deleted_topic_takes_its_states_with_it() -> None:
    host = Host()
    host.initialize(0)
    host.initialize(1)
    host.initialize(topic_id=OTHER_ID)
    host.delete_topic(TOPIC_ID)
    assert kinds(host.entries) == "SSS--"
    assert [key.topic_id for key in host.shard.states] == [OTHER_ID]
    assert [key.topic_id for key in host.replayed().states] == [OTHER_ID]


def test_a_deleted_state_is_not_deleted_again_with_its_topic() -> None:
    host = Host()
    host.initialize(0)
    host.initialize(1)
    host.delete(0)
    host.delete_topic(TOPIC_ID)
    assert kinds(host.entries) == "SS--"
    assert not host.shard._of_topic


def test_changed_settings_hold_from_the_next_write_on() -> None:
    host = Host()
    host.initialize()
    host.write(1)
    host.shard.configure(ShareStateSettings(updates_per_snapshot=1))
    host.write(2)
    assert kinds(host.entries) == "SuS"


def test_states_of_topics_that_were_deleted_while_nobody_looked_are_deleted_later() -> None:
    host = Host(cold_snapshot_interval_ms=1000, prune_interval_ms=10**9)
    host.initialize(0)
    host.initialize(topic_id=OTHER_ID)
    host.pass_time(1000)
    host.image = image_with(OTHER_ID)
    host.shard = host.replayed()
    host.pass_time(999)
    assert len(host.shard.states) == 2
    host.pass_time(1)
    assert [key.topic_id for key in host.shard.states] == [OTHER_ID]
    assert kinds(host.entries) == "SSSS-S"


# Pruning


def test_records_before_the_oldest_snapshot_are_deleted() -> None:
    host = Host(updates_per_snapshot=1, cold_snapshot_interval_ms=10**9, prune_interval_ms=100)
    host.initialize(0)
    host.initialize(1)
    host.write(1)
    host.write(2)  # a snapshot, at offset 3
    assert host.pass_time(100) == [1]
    host.initialize(1, epoch=2)
    assert host.pass_time(100) == [3]
    assert host.pass_time(100) == []
    assert state_of(host.replayed()) == state_of(host.shard)


def test_after_the_last_deletion_all_records_before_it_are_deleted() -> None:
    host = Host(prune_interval_ms=100)
    host.initialize()
    host.write(1)
    host.delete()
    assert host.pass_time(100) == [2]
    assert host.shard.next_deadline_ms() is None


def test_a_state_that_nobody_writes_gets_a_snapshot_so_that_others_are_pruned() -> None:
    host = Host(updates_per_snapshot=1, cold_snapshot_interval_ms=1000, prune_interval_ms=1100)
    host.initialize(0, start=5)
    host.pass_time(900)
    host.initialize(1)
    for number in range(10):
        host.write(number, partition=1)
    assert host.pass_time(200) != [0]
    cold = host.shard.states[next(iter(host.shard.states))]
    assert (cold.snapshot_epoch, cold.start_offset, cold.written_ms) == (1, 5, host.now_ms)
    assert host.log[0][0] > 2
    assert state_of(host.replayed()) == state_of(host.shard)


def test_each_record_of_a_batch_has_its_own_offset() -> None:
    host = Host(cold_snapshot_interval_ms=1000, prune_interval_ms=1500)
    for partition in range(4):
        host.initialize(partition)
    host.pass_time(1000)  # four snapshots together
    host.initialize(0, epoch=2)
    assert host.pass_time(500) == [5]


def test_work_by_time_keeps_its_distance_when_the_clock_is_set() -> None:
    host = Host(cold_snapshot_interval_ms=1000, prune_interval_ms=1500)
    host.initialize()
    host.shard.on_clock_set(5000)
    host.now_ms += 5000
    assert host.shard.next_deadline_ms() == host.now_ms + 1000
    host.pass_time(1000)
    assert host.shard.next_deadline_ms() == host.now_ms + 500


def test_a_quiet_system_writes_no_more_snapshots() -> None:
    host = Host(cold_snapshot_interval_ms=1000, prune_interval_ms=10**9)
    for partition in range(4):
        host.initialize(partition)
    host.pass_time(1000)
    assert kinds(host.entries) == "SSSSSSSS"
    host.pass_time(1000)
    assert len(host.entries) == 8
    host.initialize(0, epoch=2)
    host.pass_time(1000)
    assert len(host.entries) == 13


def test_nothing_happens_by_time_while_share_groups_are_off() -> None:
    host = Host(cold_snapshot_interval_ms=1000, prune_interval_ms=1000)
    host.initialize()
    host.initialize(epoch=2)
    host.image = image_with(TOPIC_ID, share_version=0)
    assert host.pass_time(1000) == []
    assert len(host.log) == 2


def test_many_cold_states_are_written_in_turns() -> None:
    host = Host(cold_snapshot_interval_ms=1000, prune_interval_ms=10**9)
    host.image = image_with(*(number.to_bytes(16, "big") for number in range(1, 400)))
    for number in range(1, 400):
        host.initialize(topic_id=number.to_bytes(16, "big"))
    host.now_ms += 1000
    turns = 0
    while (deadline := host.shard.next_deadline_ms()) is not None and deadline <= host.now_ms:
        turns += 1
        for outcome in host.shard.on_timer(host.now_ms, host.image):
            assert len(outcome.records) <= 100
            host._take(outcome.records)
    assert turns >= 4
    assert len(host.log) == 2 * 399


# Replay


def test_an_update_whose_snapshot_is_gone_is_a_state_until_the_next_one() -> None:
    host = Host()
    key = ShareKey("g", TOPIC_ID, 0)
    host.shard.apply(Entry(key, Update(3, -1, -1, 7, [StateBatch(5, 9, 1, 2)])))
    assert state_of(host.shard) == {key: (3, 0, 0, -1, 7, 0, 0, (StateBatch(5, 9, 1, 2),), 1)}
    assert error(host.read(leader_epoch=0)) == NONE
    assert error(host.write(0, state_epoch=0)) == NONE
    assert host.entries[-1].value == Update(3, 0, 0, 0, [])


@pytest.mark.parametrize("seed", range(30))
def test_a_replay_gives_the_same_state(seed: int) -> None:
    rng = random.Random(seed)
    host = Host(updates_per_snapshot=rng.randrange(5), cold_snapshot_interval_ms=500, prune_interval_ms=300)
    for _ in range(150):
        partition = rng.randrange(3)
        match rng.randrange(10):
            case 0:
                host.initialize(partition, epoch=rng.randrange(4), start=rng.randrange(-1, 9))
            case 1:
                host.delete(partition) if rng.random() < 0.3 else host.summary(partition)
            case 2:
                host.read(partition, leader_epoch=rng.randrange(-1, 4))
            case 3:
                host.pass_time(rng.randrange(200))
            case _:
                first = rng.randrange(50)
                batch = first, first + rng.randrange(9), rng.choice((0, 2, 4)), rng.randrange(1, 4)
                host.write(rng.randrange(-1, 30), batch, partition=partition, state_epoch=9, leader_epoch=9)
        host.now_ms += rng.randrange(20)
    assert state_of(host.replayed()) == state_of(host.shard)
