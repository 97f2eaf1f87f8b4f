"""Long requests of a shard: run in pieces, in order, and atomic."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.coordinators.group_coordinator import GroupCoordinator
from barnabas.broker.coordinators.group_host import GroupHost
from barnabas.broker.coordinators.journal import CoordinatorJournal
from barnabas.broker.handlers.txn_offset_commit import refused
from barnabas.decisions import work_queue
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.records.batch import headers
from barnabas.replication.verification import NOT_REQUIRED
from barnabas.transactions.outcome import TransactionEnd
from groups.host import image_of

from .coordinator_world import CoordinatorWorld, resolved, run

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
TxnTopic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
WIDTH = 1_000


class World(CoordinatorWorld):
    """A coordinator of groups whose long work takes many turns: a step lasts half a piece."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(folder, loop)
        self.partition = self.new_partition("__consumer_offsets", leader_epoch=0)
        self.broker.image = image_of({"t": WIDTH})
        self.coordinator = GroupCoordinator(cast(Any, self.broker), random.Random(1))

    def lead(self) -> GroupHost:
        self.coordinator.leadership_changed(self.partition)
        host: GroupHost = self.coordinator.hosts[0]
        return host


Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    steps = itertools.count()
    monkeypatch.setattr("broker.coordinator_world.Clock.work_s", lambda self: next(steps) * 0.0005)
    return partial(run, partial(World, tmp_path))


def commit(offset: int, width: int = WIDTH, group: str = "g") -> OffsetCommitRequest:
    part = Topic.OffsetCommitRequestPartition
    partitions = [part(partition_index=each, committed_offset=offset) for each in range(width)]
    return OffsetCommitRequest(group_id=group, topics=[Topic(name="t", partitions=partitions)])


def fetch(width: int = WIDTH) -> OffsetFetchRequest:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=list(range(width)))
    return OffsetFetchRequest(group_id="g", topics=[topic])


def offsets(answer: Any) -> set[int]:
    return {each.committed_offset for topic in answer.topics for each in topic.partitions}


def errors(answer: Any) -> set[int]:
    return {each.error_code for topic in answer.topics for each in topic.partitions}


def test_other_shards_proceed_and_requests_of_the_shard_wait_in_order(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        answers: dict[str, Any] = {}

        def ask(name: str, request: Message) -> None:
            answer = world.ask(request, 7)
            assert isinstance(answer, Deferred)
            answer.then(lambda response: answers.setdefault(name, response))

        ask("commit", commit(5))
        assert host.work_queue.is_busy
        ask("few", fetch(1))
        ask("many", fetch())
        ask("again", commit(6))
        ask("last", fetch(1))
        turns = 0
        while host.work_queue.is_busy:
            turns += 1
            await asyncio.sleep(0)
        assert turns > 20
        world.tick.close()
        assert list(answers) == ["commit", "few", "many", "again", "last"]
        assert errors(answers["commit"]) == errors(answers["again"]) == {0}
        assert offsets(answers["few"]) == offsets(answers["many"]) == {5}
        assert offsets(answers["last"]) == {6}
        assert isinstance(world.ask(fetch(1), 7), Message)  # the queue is empty

    play(scenario)


def test_a_long_commit_is_one_batch_and_is_replayed(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        assert errors(await resolved(world.ask(commit(5), 7))) == {0}
        world.tick.close()
        log = world.partition.log
        data = log.read(0, 1 << 20, log.end_offset).read()
        assert [header.record_count for _, header in headers(data)] == [WIDTH]
        world.coordinator.hosts.pop(0).close()
        world.coordinator._led.clear()
        world.lead()
        await world.active()
        assert offsets(await resolved(world.ask(fetch(), 7))) == {5}

    play(scenario)


@pytest.mark.parametrize("turns", [0, 1, 3, 8, 12, 15, 18])
def test_a_dropped_shard_refuses_all_requests_in_its_queue(play: Play, turns: int) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        asked = [world.ask(commit(5), 7), world.ask(fetch(1), 7), world.ask(commit(6), 7)]
        for _ in range(turns):
            await asyncio.sleep(0)
        assert host.work_queue.is_busy
        host.close()
        assert not host.work_queue.is_busy
        assert errors(await resolved(asked[2])) == {ErrorCode.NOT_COORDINATOR}
        first, second = await resolved(asked[0]), await resolved(asked[1])
        if errors(first) == {0}:
            assert second.error_code or offsets(second) == {5}
        else:
            assert errors(first) == {second.error_code} == {ErrorCode.NOT_COORDINATOR}

    play(scenario)


def test_deadlines_and_metadata_wait_in_the_queue_too(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        seen: list[tuple[str, int]] = []
        shard = host.shard

        def note(name: str) -> Callable[..., list[Any]]:
            return lambda *_: seen.append((name, shard.offsets.count)) or []  # type: ignore[func-returns-value]

        monkeypatch.setattr(shard, "on_timer", note("time"), raising=False)
        monkeypatch.setattr(shard, "metadata_changed", note("metadata"), raising=False)
        answer = world.ask(commit(5), 7)
        host.on_timer(world.clock.ms)
        host.metadata_changed(cast(Any, ()), world.clock.ms)
        assert not seen
        assert errors(await resolved(answer)) == {0}
        while host.work_queue.is_busy:
            await asyncio.sleep(0)
        assert seen == [("time", WIDTH), ("metadata", WIDTH)]

    play(scenario)


def test_a_commit_that_the_log_refuses_leaves_the_shard_as_it_was(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        await resolved(world.ask(commit(5), 7))

        def too_large(*_: object) -> None:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)

        with monkeypatch.context() as patch:
            patch.setattr(CoordinatorJournal, "append_framed", too_large)
            assert errors(await resolved(world.ask(commit(6), 7))) == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert host.error is None
        assert offsets(await resolved(world.ask(fetch(), 7))) == {5}

    play(scenario)


def test_markers_are_retried_and_transactional_commits_wait_in_the_queue(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        end = TransactionEnd(7, 0, 0, True, 0)
        part = TxnTopic.TxnOffsetCommitRequestPartition
        context: Any = world.context(3)

        def in_transaction(width: int) -> Any:
            partitions = [part(partition_index=each, committed_offset=9) for each in range(width)]
            request = TxnOffsetCommitRequest(
                transactional_id="tx",
                group_id="g",
                producer_id=7,
                producer_epoch=0,
                topics=[TxnTopic(name="t", partitions=partitions)],
            )
            refuse = partial(refused, request, context)
            return host.commit_in_transaction(request, context, NOT_REQUIRED, refuse)

        plain = world.ask(commit(5), 7)
        with pytest.raises(KafkaError):
            host.append_marker(end, world.clock.ms)
        few, many = in_transaction(1), in_transaction(WIDTH)
        for deferred in (plain, few, many):
            assert errors(await resolved(deferred)) == {0}
        assert offsets(await resolved(world.ask(fetch(), 7))) == {5}
        while host.work_queue.is_busy:
            await asyncio.sleep(0)
        host.append_marker(end, world.clock.ms)
        assert offsets(await resolved(world.ask(fetch(), 7))) == {9}

    play(scenario)


def test_a_group_of_many_offsets_is_deleted_in_pieces(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        await resolved(world.ask(commit(5), 7))
        answer = world.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
        assert host.work_queue.is_busy
        assert [each.error_code for each in (await resolved(answer)).results] == [0]
        assert host.shard.offsets.count == host.shard.group_count == 0

    play(scenario)


def test_a_list_of_many_groups_delays_no_other_request(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        for number in range(500):
            world.ask(commit(1, 1, f"g{number}"), 7)
        world.tick.close()
        answer = world.ask(ListGroupsRequest(), 5)
        assert isinstance(answer, Deferred)
        assert not host.work_queue.is_busy
        world.ask(DeleteGroupsRequest(groups_names=["g499"]), 2)  # meanwhile
        names = {each.group_id for each in (await resolved(answer)).groups}
        assert names - {"g499"} == {f"g{number}" for number in range(499)}

    play(scenario)


def test_the_work_queue_is_bounded(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "WAITING_MAX", 3)

    async def scenario(world: World) -> None:
        world.lead()
        asked = [world.ask(commit(number), 7) for number in range(6)]
        found = [errors(await resolved(answer)) for answer in asked]
        assert found == [{0}] * 4 + [{ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}] * 2

    play(scenario)


def everything_in(host: GroupHost) -> dict[str, Any]:
    offsets = host.shard.offsets
    return {group: offsets.of_group(group) for group in offsets.group_ids()}


def test_a_shard_is_loaded_in_pieces_and_has_everything(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        for number in range(300):
            world.ask(commit(number, 1, f"g{number}"), 7)
        world.tick.close()
        await resolved(world.ask(commit(5), 7))
        world.tick.close()
        known = everything_in(host)
        world.coordinator.hosts.pop(0).close()
        world.coordinator._led.clear()
        again = world.lead()
        turns = 0
        while again.error is not None:
            turns += 1
            await asyncio.sleep(0)
        assert turns > 300
        assert {
            group: again.shard.offsets.of_group(group) for group in again.shard.offsets.group_ids()
        } == known

    play(scenario)


def test_a_shard_that_is_dropped_while_loading_does_not_become_active(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        await resolved(world.ask(commit(5), 7))
        world.tick.close()
        world.coordinator.hosts.pop(0).close()
        world.coordinator._led.clear()
        host = world.lead()
        assert host.load_task is not None
        while not host.shard.offsets.count:
            await asyncio.sleep(0)
        assert host.error is not None
        host.close()
        await host.load_task
        assert host.error is not None and host.error.code == ErrorCode.NOT_COORDINATOR

    play(scenario)


def test_a_group_too_large_for_the_log_does_not_affect_others(play: Play) -> None:
    """The record of one member's assignment would be larger than a batch may be."""

    async def scenario(world: World) -> None:
        world.broker.image = image_of({"t": WIDTH, "vast": 120_000})
        host = world.lead()
        shard = host.shard
        await resolved(world.ask(commit(5), 7))
        request = ConsumerGroupHeartbeatRequest(
            group_id="large",
            member_id="m",
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=["vast"],
            topic_partitions=[],
        )
        answer = await resolved(world.ask(request, 1))
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert host.error is None and host.shard is shard
        assert offsets(await resolved(world.ask(fetch(), 7))) == {5}

    play(scenario)
