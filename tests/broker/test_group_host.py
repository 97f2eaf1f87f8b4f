"""The host of groups: appends before it responds, replays its log, and reloads after a failed write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.coordinators.group_coordinator import GroupCoordinator
from barnabas.broker.coordinators.group_host import GroupHost
from barnabas.broker.coordinators.journal import CoordinatorJournal
from barnabas.broker.handlers.txn_offset_commit import commit_later
from barnabas.broker.produce.verifying import Verified
from barnabas.decisions import host as decision_host
from barnabas.groups.basics.records import Entry, encode
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.records.batch import BatchHeader, validate
from barnabas.records.compression import Compression
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.records.record import Record, build_batch, read_records
from barnabas.replication.verification import NOT_REQUIRED
from barnabas.testing.waiting import PATIENCE_S
from groups.host import image_of
from poisoned_batches import UNCOMPRESSED, compressed

from .coordinator_world import SETTINGS, CoordinatorWorld, disk_is_full, resolved, run
from .fake_shard import FakeShard

CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
OFFSETS = "__consumer_offsets"


class World(CoordinatorWorld):
    """A coordinator of groups."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(folder, loop)
        self.partition = self.new_partition(OFFSETS, leader_epoch=0)
        self.log = self.partition.log
        self.coordinator = GroupCoordinator(cast(Any, self.broker), cast(Any, None))

    def lead(self) -> GroupHost:
        self.coordinator.leadership_changed(self.partition)
        return self.coordinator.hosts[0]

    def write(self, batch: bytearray) -> None:
        view = memoryview(batch)
        self.partition.append_own(view, BatchHeader(view), self.clock.ms, NOT_REQUIRED)
        self.tick.close()


Scenario = Callable[[World], Awaitable[None]]
Play = Callable[[Scenario], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr("barnabas.groups.shard.GroupShard", FakeShard)
    return partial(run, partial(World, tmp_path))


def commit(offset: int, *, partitions: int = 1, metadata: str = "") -> OffsetCommitRequest:
    committed = [
        CommitTopic.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        for index in range(partitions)
    ]
    return OffsetCommitRequest(group_id="g", topics=[CommitTopic(name="t", partitions=committed)])


def commit_in_transaction(offset: int) -> TxnOffsetCommitRequest:
    Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    committed = Topic.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [Topic(name="t", partitions=[committed])]
    return TxnOffsetCommitRequest(transactional_id="tx", group_id="g", producer_id=1, topics=topics)


def fetch() -> OffsetFetchRequest:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    return OffsetFetchRequest(group_id="g", topics=[topic])


def join(rebalance_timeout_ms: int = 60_000) -> JoinGroupRequest:
    return JoinGroupRequest(group_id="g", rebalance_timeout_ms=rebalance_timeout_ms)


def fetched(answer: Any) -> int:
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def error_of(answer: Any) -> int:
    code: int = answer.topics[0].partitions[0].error_code
    return code


def test_the_response_to_a_commit_follows_its_write(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        answer = world.ask(commit(7))
        assert world.log.written_offset == 0
        assert error_of(await resolved(answer)) == ErrorCode.NONE
        assert world.log.written_offset == 1

    play(scenario)


def test_a_response_waits_for_earlier_uncommitted_records(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        world.ask(commit(7))
        seen = world.ask(fetch())
        assert isinstance(seen, Deferred)
        assert fetched(await resolved(seen)) == 7
        assert isinstance(world.ask(HeartbeatRequest(group_id="g")), Message)

    play(scenario)


def test_records_of_one_tick_share_a_batch(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        answers = [world.ask(commit(offset)) for offset in range(10)]
        world.tick.close()
        assert all(answer.is_done for answer in answers)
        [(_, header)] = world.log.active.headers()
        assert header.record_count == 10
        batch = world.log.read(0, 1 << 20).read()
        assert [record.offset for record in read_records(batch)] == list(range(10))
        assert validate(batch, 0).record_count == 10

    play(scenario)


def test_a_batch_that_is_full_is_followed_by_another(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        answers = [world.ask(commit(offset, partitions=20, metadata="m" * 30_000)) for offset in range(3)]
        world.tick.close()
        assert all(answer.is_done for answer in answers)
        assert [header.record_count for _, header in world.log.active.headers()] == [20, 20, 20]

    play(scenario)


def test_a_refused_append_keeps_what_others_appended_in_the_same_tick(
    play: Play,
) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        dropped = host.shard
        kept = world.ask(commit(7))
        world.partition.min_insync_replicas, world.partition.replica_count = 2, 2
        refused = await resolved(world.ask(SyncGroupRequest(group_id="g")))
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert error_of(await resolved(kept)) == ErrorCode.NONE
        await world.active()
        assert host.shard is not dropped
        assert fetched(world.ask(fetch())) == 7

    play(scenario)


def test_a_response_waits_for_the_followers(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.partition.lead(1, (1, 2))
        world.lead()
        answer = world.ask(commit(7))
        world.tick.close()
        assert not answer.is_done
        world.partition.state.advance_follower(2, 1)
        world.partition.wake_all()
        assert answer.is_done

    play(scenario)


def test_too_many_waiting_responses_refuse_requests_before_an_append(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_host, "WAITING_MAX", 3)

    async def scenario(world: World) -> None:
        world.partition.lead(0, (1, 2), (1, 2), 1)
        world.lead()
        waiting = [world.ask(commit(offset)) for offset in range(3)]
        refused = world.ask(commit(3))
        assert error_of(refused) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await asyncio.sleep(0)
        assert world.log.end_offset == 3
        world.partition.follower_reached(2, world.log.end_offset)
        assert [error_of(await resolved(each)) for each in waiting] == [ErrorCode.NONE] * 3
        taken = world.ask(commit(4))
        await asyncio.sleep(0)
        world.partition.follower_reached(2, world.log.end_offset)
        assert error_of(await resolved(taken)) == ErrorCode.NONE

    play(scenario)


def test_a_response_that_waits_too_long_for_followers_is_an_error(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "offsets.commit.timeout.ms", "20")

    async def scenario(world: World) -> None:
        world.partition.lead(1, (1, 2))
        world.lead()
        waiting, synced = world.ask(join()), world.ask(SyncGroupRequest(group_id="g"))
        late = world.ask(commit(7))
        assert (await resolved(waiting)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await resolved(synced)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert error_of(await resolved(late)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.partition.follower_reached(2, world.log.end_offset)
        assert fetched(world.ask(fetch())) == 7  # the record is in the log nevertheless

    play(scenario)


def test_a_new_host_replays_the_log(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        await resolved(world.ask(commit(7)))
        await resolved(world.ask(commit(8)))
        world.partition.become_follower(1)
        world.coordinator.leadership_changed(world.partition)
        assert not world.coordinator.hosts
        world.partition.lead(2, (1,))
        world.lead()
        refused = world.ask(fetch())
        assert refused.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert world.ask(HeartbeatRequest(group_id="g")).error_code == ErrorCode.NONE
        await world.active()
        assert fetched(world.ask(fetch())) == 8

    play(scenario)


def test_waiting_requests_get_an_error_when_leadership_is_lost(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        waiting = world.ask(join())
        world.partition.become_follower(1)
        world.coordinator.leadership_changed(world.partition)
        assert (await resolved(waiting)).error_code == ErrorCode.NOT_COORDINATOR

    play(scenario)


def test_uncommitted_responses_become_errors_when_leadership_is_lost(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.partition.lead(1, (1, 2))
        world.lead()
        waiting, synced = world.ask(join()), world.ask(SyncGroupRequest(group_id="g"))
        world.tick.close()
        assert not waiting.is_done and not synced.is_done  # the follower has nothing yet
        world.partition.become_follower(2)
        world.coordinator.leadership_changed(world.partition)
        assert (await resolved(waiting)).error_code == ErrorCode.NOT_COORDINATOR
        assert (await resolved(synced)).error_code == ErrorCode.NOT_COORDINATOR

    play(scenario)


def test_an_error_response_does_not_wait_for_followers(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.partition.lead(1, (1, 2))
        host = world.lead()
        uncommitted = world.ask(commit(7))
        world.tick.close()
        world.partition.min_insync_replicas, world.partition.replica_count = 3, 3
        refused = world.ask(commit(8))
        assert isinstance(refused, Message) and error_of(refused) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert host.error is not None and not uncommitted.is_done
        refused = world.ask(commit(9))
        assert isinstance(refused, Message) and error_of(refused) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    play(scenario)


def test_offsets_of_a_transaction_whose_coordinator_moves_away_meanwhile_are_refused(play: Play) -> None:
    """The partition of the group gets another leader during the verification."""

    async def scenario(world: World) -> None:
        world.partition.lead(1, (1, 2))
        host = world.lead()
        world.ask(commit(7))
        world.tick.close()
        verified: asyncio.Future[Verified] = world.broker.loop.create_future()
        context = cast(RequestContext, SimpleNamespace(broker=world.broker, version=3))
        world.broker.image = image_of({"t": 1})
        answer = asyncio.ensure_future(commit_later(commit_in_transaction(8), context, host, verified))
        world.partition.become_follower(2)
        world.coordinator.leadership_changed(world.partition)
        verified.set_result({world.partition: NOT_REQUIRED})
        assert error_of(await asyncio.wait_for(answer, PATIENCE_S)) == ErrorCode.NOT_COORDINATOR

    play(scenario)


def test_waiting_requests_get_their_response_after_the_write(
    play: Play,
) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        waiting = world.ask(join())
        synced = world.ask(SyncGroupRequest(group_id="g"))
        assert not waiting.is_done
        world.tick.close()
        assert waiting.is_done and synced.is_done

    play(scenario)


def test_waiting_requests_get_an_error_when_the_append_is_refused(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        waiting = world.ask(join())
        world.partition.min_insync_replicas, world.partition.replica_count = 2, 2
        refused = await resolved(world.ask(SyncGroupRequest(group_id="g")))
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert waiting.is_done
        assert (await resolved(waiting)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    play(scenario)


def test_a_waiting_request_of_a_closed_connection_is_forgotten(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        waiting = world.ask(join())
        waiting.cancel()
        assert not host._waiting
        await resolved(world.ask(SyncGroupRequest(group_id="g")))

    play(scenario)


def test_deadlines_are_kept_by_one_timer(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        late, early = world.ask(join(60_000)), world.ask(join(5))
        world.clock.ms += 5
        assert (await resolved(early)).generation_id == 2
        assert not late.is_done

    play(scenario)


@pytest.mark.parametrize("by_ms", [3_600_000, -3_600_000])
def test_a_clock_that_is_set_ends_no_wait_early_or_late(play: Play, by_ms: int) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        late, early = world.ask(join(60_000)), world.ask(join(5))
        world.clock.set_by_ms = by_ms
        world.clock.ms += 5
        assert (await resolved(early)).generation_id == 2
        assert not late.is_done

    play(scenario)


def test_a_failed_write_drops_the_shard_and_replays_the_log(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        await resolved(world.ask(commit(7)))
        lost, waiting = world.ask(commit(9)), world.ask(join())

        with monkeypatch.context() as broken:
            broken.setattr(type(world.log.context.disk), "pwritev", disk_is_full)
            world.tick.close()
        assert host.error is not None and host.error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert error_of(await resolved(lost)) == ErrorCode.NOT_COORDINATOR
        assert (await resolved(waiting)).error_code == ErrorCode.NOT_COORDINATOR
        await world.active()
        assert fetched(world.ask(fetch())) == 7
        await resolved(world.ask(commit(10)))
        assert fetched(world.ask(fetch())) == 10

    play(scenario)


def test_a_commit_that_is_too_large_does_not_affect_other_groups(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        await resolved(world.ask(commit(7)))
        waiting = world.ask(join())
        refused = await resolved(world.ask(commit(8, partitions=50, metadata="m" * 30_000)))
        assert error_of(refused) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert host.error is None
        assert not waiting.is_done
        assert fetched(world.ask(fetch())) == 7

    play(scenario)


def test_tombstones_are_written_in_as_many_batches_as_they_need(play: Play) -> None:
    async def scenario(world: World) -> None:
        journal = CoordinatorJournal(world.partition, 0)
        keys = [b"k" * 300_000 for _ in range(10)]
        with pytest.raises(KafkaError):
            journal.append([(key, None) for key in keys], 0)
        journal.append_in_parts([(key, None) for key in keys], 0)
        journal.flush()
        world.tick.close()
        assert world.log.written_offset == 10

    play(scenario)


def test_transactional_offsets_become_valid_with_the_marker(play: Play) -> None:
    def offset(topic: str, value: int) -> Record:
        entry = Entry(OffsetCommitKey(group="g", topic=topic, partition=0), OffsetCommitValue(offset=value))
        key, encoded = encode(entry)
        return Record(key=key, value=encoded)

    async def scenario(world: World) -> None:
        def transactional(producer_id: int, *records: Record) -> bytearray:
            return build_batch(records, producer_id=producer_id, producer_epoch=0, transactional=True)

        def end(producer_id: int, *, aborted: bool) -> bytearray:
            return build_end_marker(EndMarker(aborted, 0), producer_id, 0, 0)

        world.write(transactional(1, offset("kept", 1), offset("overtaken", 1)))
        world.write(transactional(2, offset("aborted", 1)))
        world.write(build_batch([offset("overtaken", 2)]))
        world.write(end(1, aborted=False))
        world.write(end(2, aborted=True))
        world.write(transactional(3, offset("open", 1)))
        host = world.lead()
        await world.active()
        shard = cast(FakeShard, host.shard)
        assert shard.offsets == {("g", "kept", 0): 1, ("g", "overtaken", 0): 2}

    play(scenario)


def test_records_of_unknown_types_are_skipped(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.write(build_batch([Record(key=b"\x7f\x00?", value=b"?")]))
        world.lead()
        await world.active()
        assert "unknown type 32512" in caplog.text

    play(scenario)


def test_a_damaged_log_has_no_coordinator(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.write(build_batch([Record(key=b"\x00\x01", value=b"\x00\x03")]))
        host = world.lead()
        assert host.load_task is not None
        await host.load_task
        assert world.ask(fetch()).error_code == ErrorCode.NOT_COORDINATOR

    play(scenario)


@pytest.mark.parametrize(
    "poison", [UNCOMPRESSED["text instead of a record"], compressed(Compression.ZSTD)["no compressed bytes"]]
)
def test_loading_logs_the_offsets_of_an_unreadable_batch(
    play: Play, caplog: pytest.LogCaptureFixture, poison: bytes
) -> None:
    async def scenario(world: World) -> None:
        world.write(build_batch([Record(key=b"\x7f\x00?", value=b"?")]))
        world.write(bytearray(poison))
        host = world.lead()
        assert host.load_task is not None
        await host.load_task
        assert world.ask(fetch()).error_code == ErrorCode.NOT_COORDINATOR
        assert "the batch of offsets 1 to 1 cannot be read" in caplog.text

    play(scenario)
