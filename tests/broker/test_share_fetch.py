"""Share groups at the leader of a partition: fetches that wait, stored states, gaps, large batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas.broker.shares.led_share_partition import LedSharePartition
from barnabas.broker.shares.persister import SharePersister
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from barnabas.storage.logs.log import Log
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .conversation import Conversation, batch, fetch, produce
from .share_member import (
    ACCEPT,
    RELEASE,
    ShareMember,
    acquired,
    datas,
    initialize,
    records,
    topic_id,
)
from .test_cleaning import COMPACTED, EAGER, HOUR_MS, LONG_AGO_MS, files
from .test_cleaning import produce as produce_keys

GAP = [0]
SETTINGS = {"share.coordinator.state.topic.num.partitions": 1, **EAGER}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("sharing"), overrides=SETTINGS) as running:
        yield running


class World:
    """A topic with a group, and members on connections of their own."""

    def __init__(self, broker: Broker, stack: ExitStack, topic: str = "", partitions: int = 1) -> None:
        self._broker = broker
        self._stack = stack
        self.topic = topic or f"topic-{next(_numbers)}"
        if not topic:
            broker.create_topic(self.topic, partitions)
        self.talk = stack.enter_context(Conversation(broker))
        self.group = f"group of {self.topic}"
        self.id = topic_id(self.talk, self.topic)
        self.partitions = partitions
        initialize(self.talk, self.group, self.id, partitions)

    def member(self, name: str) -> ShareMember:
        talk = self._stack.enter_context(Conversation(self._broker))
        return ShareMember(talk, self.group, self.id, name, self.partitions)

    def produce(self, *values: bytes) -> None:
        response = self.talk.ask(*produce(self.topic, batch(*values)))
        assert not response.responses[0].partition_responses[0].error_code


@pytest.fixture
def world(broker: Broker) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(broker, stack)


def waiting(world: World, count: int) -> None:
    """Wait until as many fetches wait at share partitions of the group."""

    def is_waiting() -> bool:
        found = [each for each in shares() if each.group == world.group]
        return sum(len(share._waiting) for share in found) == count

    wait_until(is_waiting, 60, what=f"{count} fetches wait")


def shares() -> list[LedSharePartition]:
    import gc

    return [each for each in gc.get_objects() if type(each) is LedSharePartition and not each.is_over]


def test_a_waiting_fetch_gets_what_is_produced(world: World) -> None:
    ann = world.member("ann")
    ann.begin()
    waiting(world, 1)
    world.produce(b"a", b"b")
    assert acquired(ann.end()) == [(0, 1, 1)]


def test_fetches_that_wait_are_served_in_turn(world: World) -> None:
    ann, ben = world.member("ann"), world.member("ben")
    ann.begin()
    waiting(world, 1)
    ben.begin()
    waiting(world, 2)
    world.produce(b"a")
    assert acquired(ann.end()) == [(0, 0, 1)]
    ann.begin()
    waiting(world, 2)
    world.produce(b"b")
    assert acquired(ben.end()) == [(1, 1, 1)]
    world.produce(b"c")
    assert acquired(ann.end()) == [(2, 2, 1)]


def test_released_records_go_to_a_fetch_that_waits(world: World) -> None:
    ann, ben = world.member("ann"), world.member("ben")
    world.produce(b"a", b"b", b"c")
    assert acquired(ann.fetch()) == [(0, 2, 1)]
    ben.begin()
    waiting(world, 1)
    assert not ann.acknowledge((0, 0, ACCEPT), (1, 2, RELEASE))
    assert acquired(ben.end()) == [(1, 2, 2)]


def test_records_of_a_lost_connection_go_to_a_fetch_that_waits(world: World) -> None:
    ann, ben = world.member("ann"), world.member("ben")
    world.produce(b"a")
    ann.fetch()
    ben.begin()
    waiting(world, 1)
    ann.talk.__exit__(None, None, None)
    assert acquired(ben.end()) == [(0, 0, 2)]


def test_the_response_to_a_fetch_that_acknowledges_waits_for_the_write(world: World) -> None:
    ann = world.member("ann")
    world.produce(b"a")
    ann.fetch()
    world.produce(b"b")
    [data] = datas(response := ann.fetch((0, 0, ACCEPT)))
    assert (data.acknowledge_error_code, acquired(response)) == (0, [(1, 1, 1)])


def test_large_batches_are_sent_as_they_are_stored(world: World) -> None:
    for value in (b"x", b"y" * 300_000, b"z" * 500_000, b"z"):
        world.produce(value)
    ann = world.member("ann")
    response = ann.fetch()
    stored = world.talk.ask(*fetch(world.topic, 0)).responses[0].partitions[0].records
    assert acquired(response) == [(0, 3, 1)]
    assert records(response) == bytes(stored)
    assert not ann.acknowledge((2, 2, RELEASE))
    again = ann.fetch()
    assert acquired(again) == [(2, 2, 2)]
    assert records(again) in bytes(stored) and len(records(again)) > 500_000


def test_batches_that_are_not_cached_are_read_by_a_thread(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Log, "can_read_without_disk", lambda *_: False)
    world.produce(b"a", b"b")
    ann = world.member("ann")
    assert acquired(ann.fetch()) == [(0, 1, 1)]
    assert acquired(ann.fetch(wait_ms=0)) == []


def test_a_write_that_fails_leaves_the_records_with_their_member(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(
        self: SharePersister, request: WriteShareGroupStateRequest
    ) -> WriteShareGroupStateResponse:
        topic = WriteShareGroupStateResponse.WriteStateResult
        return WriteShareGroupStateResponse(
            results=[
                topic(
                    topic_id=asked.topic_id,
                    partitions=[
                        topic.PartitionResult(partition=each.partition, error_code=code)
                        for each in asked.partitions
                    ],
                )
                for asked in request.topics
            ]
        )

    ann, ben = world.member("ann"), world.member("ben")
    world.produce(b"a", b"b")
    ann.fetch()
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with monkeypatch.context() as patch:
        patch.setattr(SharePersister, "write", refuse)
        assert ann.acknowledge((0, 1, ACCEPT)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert acquired(ben.fetch(wait_ms=100)) == []
    assert not ann.acknowledge((0, 1, ACCEPT))
    world.produce(b"c")
    assert acquired(ben.fetch()) == [(2, 2, 1)]
    code = ErrorCode.FENCED_LEADER_EPOCH  # another broker leads and has loaded the state
    with monkeypatch.context() as patch:
        patch.setattr(SharePersister, "write", refuse)
        assert ben.acknowledge((2, 2, ACCEPT)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert acquired(ann.fetch()) == [(2, 2, 1)]  # loaded again: nobody has acquired it


def test_partitions_share_the_bytes_of_a_fetch(broker: Broker) -> None:
    with ExitStack() as stack:
        world = World(broker, stack, partitions=3)
        ann = world.member("ann")
        ann.begin(wait_ms=500)
        waiting(world, 3)
        ann.end()  # all are loaded now
        values = [batch(b"x" * 2000) for _ in range(3)]
        for _ in range(3):
            world.talk.ask(*produce(world.topic, *values))
        response = ann.fetch(max_bytes=6500)
        assert sorted(data.partition_index for data in datas(response) if data.acquired_records) == [0, 1, 2]
        assert acquired(response) == [(0, 0, 1)] * 3


def test_gaps_of_a_compacted_log_are_passed(broker: Broker) -> None:
    with ExitStack() as stack:
        broker.create_topic("compacted", configs=COMPACTED)
        world = World(broker, stack, "compacted")
        for n in range(10):  # a batch for each value
            produce_keys(broker, "compacted", ("key", f"{n} " * 20))
        ann, ben = world.member("ann"), world.member("ben")
        first = ann.fetch(max_records=3)
        assert acquired(first) == [(0, 2, 1)]
        size = files(broker, "compacted-0")["00000000000000000000.log"]
        produce_keys(broker, "compacted", ("other", "1"), at_ms=LONG_AGO_MS + HOUR_MS)
        wait_until(
            lambda: 0 < files(broker, "compacted-0").get("00000000000000000000.log", 0) < size,
            30,
            what="the log is cleaned",
        )
        assert not ann.acknowledge((0, 2, RELEASE))  # these records are gone
        assert acquired(ben.fetch()) == [(9, 9, 1)]
        assert acquired(ben.fetch((9, 9, ACCEPT))) == [(10, 10, 1)]
        assert not ben.acknowledge((10, 10, ACCEPT))
        produce_keys(broker, "compacted", ("third", "1"), at_ms=LONG_AGO_MS + HOUR_MS)
        assert acquired(ann.fetch((0, 2, ACCEPT))) == [(11, 11, 1)]


def test_states_outlive_the_broker(tmp_path: Path) -> None:
    running = Broker(tmp_path / "data", overrides=SETTINGS, in_process=False)
    with ExitStack() as stack:
        running.start()
        world = World(running, stack, partitions=1)
        world.produce(*[b"x"] * 10)
        ann = world.member("ann")
        assert acquired(ann.fetch()) == [(0, 9, 1)]
        assert not ann.acknowledge((0, 1, ACCEPT), (4, 5, ACCEPT), (7, 7, RELEASE))
        assert not ann.acknowledge((8, 8, RELEASE))
        running.kill()
    with running, Conversation(running) as talk:
        ann = ShareMember(talk, world.group, world.id, "ann")
        found = acquired(ann.fetch())
        assert {offset: count for first, last, count in found for offset in range(first, last + 1)} == {
            2: 1, 3: 1, 6: 1, 7: 2, 8: 2, 9: 1,
        }  # fmt: skip


def test_a_group_without_sessions_begins_where_its_stored_state_says(world: World) -> None:
    world.produce(*[b"x"] * 10)
    ann = world.member("ann")
    assert acquired(ann.fetch(max_records=1)) == [(0, 9, 1)]
    assert not ann.acknowledge((0, 4, ACCEPT), epoch=-1)
    wait_until(lambda: not [each for each in shares() if each.group == world.group], what="the group is gone")
    initialize(world.talk, world.group, world.id, start=7, epoch=2)  # as AlterShareGroupOffsets does
    assert acquired(world.member("ben").fetch()) == [(7, 9, 1)]


def test_a_deleted_topic_ends_its_share_partitions(broker: Broker, world: World) -> None:
    ann = world.member("ann")
    ann.begin()
    waiting(world, 1)
    broker.delete_topic(world.topic)
    [data] = datas(ann.end())
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not [each for each in shares() if each.group == world.group]
    [data] = datas(ann.fetch(wait_ms=0))
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_fetches_that_want_more_do_not_keep_others_from_their_records(world: World) -> None:
    greedy = [world.member(f"greedy {n}") for n in range(6)]
    for number, member in enumerate(greedy, 1):
        member.begin(wait_ms=3000, min_bytes=1_000_000)
        waiting(world, number)
    modest = [world.member(f"modest {n}") for n in range(6)]
    for number, member in enumerate(modest, len(greedy) + 1):
        member.begin(max_records=1)
        waiting(world, number)
    for n in range(6):
        world.produce(b"x")
        assert acquired(modest[n].end()) == [(n, n, 1)]
    for member in greedy:
        assert acquired(member.end()) == []
