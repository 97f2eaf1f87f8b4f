"""Only producers of records that must be synced wait for the sync."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.topic_rules import TopicRules
from barnabas.broker.produce.pending_responses import decoded
from barnabas.client.core.frames import request_frame
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.records.record import Record, build_batch
from barnabas.records.validation import AppendRules
from barnabas.settings import TopicSettings
from barnabas.storage.segments.settings import LogSettings

from .produce_worlds import FOLLOWED, NOW_MS, World

SYNCED, OTHER = 0, 1
ALL = -1
Done = Callable[[dict[Partition, KafkaError]], None]


class SlowWorld(World):
    """With a partition whose syncs end when the test says so."""

    def __init__(self) -> None:
        super().__init__(is_direct=True)
        self.syncs: list[tuple[list[Partition], Done]] = []
        self.tick._flushes._sync = lambda due, done: self.syncs.append((due, done))
        self.must_sync(SYNCED)
        self.first = self.channel, self.transport
        self.connect()
        self.second = self.channel, self.transport
        self.correlation_id = 0

    def at(self, index: int) -> Partition:
        found = self.partition("events", index)
        assert found is not None
        return found

    def must_sync(self, index: int) -> None:
        settings = LogSettings(flush_messages=1)
        self.at(index).configure(TopicRules(TopicSettings(), settings, AppendRules()))

    def produce(self, connection: tuple[Any, Any], *indexes: int, acks: int = 1, version: int = 9) -> None:
        """One request with a batch for each partition, in a tick that goes on."""
        self.tick._is_quiet = False
        data = ProduceRequest.TopicProduceData
        batches = [
            data.PartitionProduceData(
                index=index,
                records=memoryview(build_batch([Record(timestamp=NOW_MS, value=b"v")])),
            )
            for index in indexes
        ]
        request = ProduceRequest(
            acks=acks, timeout_ms=1000, topic_data=[data(name="events", partition_data=batches)]
        )
        self.correlation_id += 1
        self.channel, self.transport = connection
        self.send(b"".join(request_frame(request, version, self.correlation_id, "test")))

    def synced(self, number: int, error: KafkaError | None = None) -> None:
        due, done = self.syncs[number]
        done(dict.fromkeys(due, error) if error is not None else {})  # type: ignore[arg-type]
        self.settle()


def answered(connection: tuple[Any, Any], version: int = 9) -> list[list[tuple[int, ErrorCode]]]:
    """Partition and error, of each response that has left."""
    sent, found = connection[1].sent, []
    route: Any = SimpleNamespace(version=version, flexible_response=version >= 9)
    while sent:
        size = 4 + int.from_bytes(sent[:4], "big")
        response = decoded(sent[:size], route)
        found.append(
            [(each.index, ErrorCode(each.error_code)) for each in response.responses[0].partition_responses]
        )
        sent = sent[size:]
    return found


OK_SYNCED, OK_OTHER = [(SYNCED, ErrorCode.NONE)], [(OTHER, ErrorCode.NONE)]


@pytest.fixture
def world() -> SlowWorld:
    return SlowWorld()


def test_a_sync_does_not_delay_producers_of_other_partitions(world: SlowWorld) -> None:
    world.produce(world.first, SYNCED)
    world.produce(world.second, OTHER)
    world.settle()

    assert answered(world.first) == []
    assert answered(world.second) == [OK_OTHER]
    assert [world.at(index).high_watermark for index in (SYNCED, OTHER)] == [0, 1]

    world.synced(0)
    assert answered(world.first) == [OK_SYNCED]
    assert world.at(SYNCED).high_watermark == 1


def test_responses_of_one_connection_stay_in_order(world: SlowWorld) -> None:
    for index in (OTHER, SYNCED, OTHER):
        world.produce(world.first, index)
    world.settle()
    world.produce(world.first, OTHER)  # it is read on while the disk is busy
    world.settle()
    assert answered(world.first) == []  # the first is behind none: but one answer tells of all three

    world.synced(0)
    assert answered(world.first) == [OK_OTHER, OK_SYNCED, OK_OTHER, OK_OTHER]


def test_batches_that_arrive_during_a_sync_share_the_next_one(world: SlowWorld) -> None:
    for _ in range(5):
        world.produce(world.first, SYNCED)
        world.settle()
    assert len(world.syncs) == 1

    world.synced(0)
    assert answered(world.first) == [OK_SYNCED]
    assert world.at(SYNCED).high_watermark == 1

    world.synced(1)
    assert answered(world.first) == [OK_SYNCED] * 5
    assert world.at(SYNCED).high_watermark == 5
    assert len(world.syncs) == 2


def test_a_request_for_several_partitions_waits_for_the_syncs_of_its_own(world: SlowWorld) -> None:
    world.must_sync(2)
    world.produce(world.first, SYNCED, OTHER, 2)
    world.produce(world.second, OTHER)
    world.settle()
    assert len(world.syncs) == 2
    assert answered(world.second) == [OK_OTHER]

    world.synced(0)
    assert answered(world.first) == []
    world.synced(1)
    assert answered(world.first) == [[(index, ErrorCode.NONE) for index in (SYNCED, OTHER, 2)]]


@pytest.mark.parametrize("acks", [1, ALL])
def test_a_failed_sync_is_an_error_for_its_own_producers_only(world: SlowWorld, acks: int) -> None:
    world.must_sync(FOLLOWED)
    world.produce(world.first, FOLLOWED, acks=acks)
    world.produce(world.second, OTHER)
    world.settle()
    if acks == ALL:
        world.follow(world.at(FOLLOWED))
    assert answered(world.first) == []

    world.synced(0, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert answered(world.first) == [[(FOLLOWED, ErrorCode.KAFKA_STORAGE_ERROR)]]
    assert answered(world.second) == [OK_OTHER]
    assert world.at(FOLLOWED).high_watermark == 0


def test_followers_that_are_faster_than_the_leaders_disk_commit_nothing(world: SlowWorld) -> None:
    world.must_sync(FOLLOWED)
    world.produce(world.first, FOLLOWED, acks=ALL)
    world.settle()
    world.follow(world.at(FOLLOWED))
    assert answered(world.first) == []
    assert world.at(FOLLOWED).high_watermark == 0

    world.synced(0)
    assert answered(world.first) == [[(FOLLOWED, ErrorCode.NONE)]]


@pytest.mark.parametrize("is_led", [True, False])
def test_a_follower_reports_records_once_they_are_synced(world: SlowWorld, is_led: bool) -> None:
    """The next fetch tells it; fetches wait only where a followed partition has to be synced."""
    gone: list[None] = []
    world.produce(world.first, SYNCED)
    world.produce(world.second, OTHER)
    if not is_led:
        world.at(SYNCED).is_leader = False
    world.tick.when_written(lambda: gone.append(None))
    world.settle()
    assert len(gone) == is_led

    world.synced(0)
    assert len(gone) == 1


def test_a_closed_connection_gets_no_response(world: SlowWorld) -> None:
    world.listener.dismiss = lambda channel: None
    world.produce(world.first, SYNCED)
    world.settle()
    world.first[0].connection_lost(None)
    world.produce(world.second, SYNCED)
    world.settle()

    world.synced(0)
    world.synced(1)
    assert answered(world.first) == []
    assert answered(world.second) == [OK_SYNCED]
