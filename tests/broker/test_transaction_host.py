"""The host of transactions: writes records before responses and markers, and retries failed markers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.coordinators.transaction_coordinator import TransactionCoordinator
from barnabas.broker.coordinators.transaction_host import TransactionHost
from barnabas.broker.partitions.partition import Partition
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.metadata.partitions import NO_LEADER, UNASSIGNED_DIRECTORY, PartitionRegistration
from barnabas.metadata.topic_changes import NO_CHANGES
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.records.control import EndMarker, read_end_marker
from barnabas.records.record import Record, build_batch
from barnabas.replication.verification import NOT_REQUIRED
from barnabas.testing.waiting import until
from barnabas.transactions.outcome import TopicPartition

from .coordinator_world import SETTINGS, CoordinatorWorld, disk_is_full, resolved, run

STATE = "__transaction_state"
DATA = TopicPartition("data", 0)


class Ids:
    """Producer ids without a controller."""

    is_ready = True
    _last = 0

    def pop(self) -> int:
        self._last += 1
        return self._last


class Topics:
    """An image in which exactly the partitions of the world exist."""

    def __init__(self, partitions: dict[TopicPartition, Partition]) -> None:
        self._partitions = partitions
        self.by_name: dict[str, object] = {}

    def partition(self, topic: str, index: int) -> PartitionRegistration | None:
        if TopicPartition(topic, index) not in self._partitions:
            return None
        return PartitionRegistration((1,), (UNASSIGNED_DIRECTORY,), (1,), leader=NO_LEADER)


class World(CoordinatorWorld):
    """A coordinator of transactions, and a partition with data."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(folder, loop)
        self.partitions: dict[TopicPartition, Partition] = {}
        self.state = self.new_partition(STATE, leader_epoch=3)
        self.data = self.partitions[DATA] = self.new_partition("data", leader_epoch=0)
        self.broker.image = SimpleNamespace(topics=Topics(self.partitions), features=EMPTY_IMAGE.features)
        self.broker.partitions = SimpleNamespace(
            get=lambda *where: self.partitions.get(TopicPartition(*where))
        )
        self.broker.producer_ids = Ids()
        self.coordinator = TransactionCoordinator(cast(Any, self.broker))

    @property
    def host(self) -> TransactionHost:
        return self.coordinator.hosts[0]

    def lead(self) -> TransactionHost:
        self.coordinator.leadership_changed(self.state)
        return self.host

    def lead_again(self) -> None:
        """Lose and regain leadership, so that everything is loaded again."""
        self.state.become_follower(self.state.leader_epoch + 1)
        self.coordinator.leadership_changed(self.state)
        self.state.lead(self.state.leader_epoch + 1, (1,))
        self.lead()

    async def begin(self, name: str = "tx") -> InitProducerIdResponse:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        answer = await resolved(self.ask(request))
        assert answer.error_code == ErrorCode.NONE
        return cast(InitProducerIdResponse, answer)

    def add(self, producer: InitProducerIdResponse, name: str = "tx") -> Any:
        owner = name, producer.producer_id, producer.producer_epoch
        return self.coordinator.verify(*owner, [DATA], add=True)

    async def write(self, producer: InitProducerIdResponse, name: str = "tx") -> None:
        """Append a record in the transaction."""
        errors = self.add(producer, name)
        if not isinstance(errors, dict):
            errors = await errors
        assert errors == {DATA: ErrorCode.NONE}
        batch = build_batch(
            [Record(timestamp=self.clock.ms, value=b"x")],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        self.data.append(memoryview(batch), -1, 12, self.clock.ms, NOT_REQUIRED)
        self.tick.close()

    def end(self, producer: InitProducerIdResponse, *, commit: bool = True, name: str = "tx") -> Any:
        owner = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        return self.ask(EndTxnRequest(transactional_id=name, committed=commit, **owner))

    async def open_transaction(self) -> InitProducerIdResponse:
        """Of a producer that wrote a record."""
        producer = await self.begin()
        await self.write(producer)
        return producer

    async def unmarked_transaction(self, *, commit: bool = True) -> InitProducerIdResponse:
        """Prepare the end of a transaction while the partition of its marker has no leader."""
        producer = await self.open_transaction()
        self.data.is_leader = False
        answer = await resolved(self.end(producer, commit=commit))
        assert answer.error_code == ErrorCode.NONE
        return producer

    def state_of(self, name: str = "tx") -> str:
        return self.host.shard.transactions[name].state.label

    def markers(self) -> list[EndMarker]:
        found = []
        log = self.data.log
        data = log.read(0, 1 << 20).read() if log.end_offset else b""
        for position, header in log.active.headers():
            if header.is_control:
                marker = read_end_marker(data, position=position)
                assert marker is not None
                found.append(marker)
        return found


Scenario = Callable[[World], Awaitable[None]]
Play = Callable[[Scenario], None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return partial(run, partial(World, tmp_path))


def test_a_transaction_ends_within_one_tick(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        producer = await world.open_transaction()
        answer = world.end(producer)
        assert world.state_of() == "CompleteCommit"
        assert not answer.is_done
        world.tick.close()
        assert answer.is_done
        assert world.markers() == [EndMarker(aborted=False, coordinator_epoch=3)]
        assert world.data.last_stable_offset == world.data.high_watermark == 2
        # Empty, Ongoing, PrepareCommit, CompleteCommit
        assert world.state.log.written_offset == 4

    play(scenario)


def test_the_prepared_end_is_written_before_any_marker(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        producer = await world.open_transaction()
        written: list[tuple[int, int]] = []
        append = Partition.append_marker

        def noting(self: Partition, *given: Any) -> int:
            written.append((world.state.log.written_offset, world.state.log.end_offset))
            return append(self, *given)

        monkeypatch.setattr(Partition, "append_marker", noting)
        world.end(producer)
        assert written == [(3, 3)]

    play(scenario)


def test_verification_waits_until_its_record_is_written(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        producer = await world.begin()
        before = world.state.log.written_offset
        assert world.add(producer) == {DATA: ErrorCode.NONE}
        assert world.state.log.written_offset == before + 1
        assert world.add(producer) == {DATA: ErrorCode.NONE}
        assert world.state.log.end_offset == before + 1
        owner = "tx", producer.producer_id, producer.producer_epoch + 1
        assert world.coordinator.verify(*owner, [DATA], add=True) == {DATA: ErrorCode.PRODUCER_FENCED}
        assert world.coordinator.verifications_failed == 1

    play(scenario)


def test_every_step_waits_for_followers(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        producer = await world.begin()
        for partition in (world.state, world.data):
            partition.lead(partition.leader_epoch, (1, 2))

        def follow(partition: Partition) -> None:
            world.tick.close()
            partition.follower_reached(2, partition.log.end_offset)

        added = world.add(producer)
        assert isinstance(added, asyncio.Future)
        follow(world.state)
        assert await added == {DATA: ErrorCode.NONE}
        await world.write(producer)
        follow(world.data)
        answer = world.end(producer)
        world.tick.close()
        assert (answer.is_done, world.markers(), world.state_of()) == (False, [], "PrepareCommit")
        follow(world.state)
        assert answer.is_done
        world.tick.close()
        assert len(world.markers()) == 1
        assert world.state_of() == "PrepareCommit"
        follow(world.data)
        assert world.state_of() == "CompleteCommit"

    play(scenario)


def test_a_response_that_waits_too_long_for_followers_is_an_error(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "request.timeout.ms", "20")

    async def scenario(world: World) -> None:
        world.lead()
        producer = await world.open_transaction()
        world.state.lead(world.state.leader_epoch, (1, 2))
        late = await resolved(world.end(producer))
        assert late.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (world.markers(), world.state_of()) == ([], "PrepareCommit")
        world.state.follower_reached(2, world.state.log.end_offset)
        assert world.state_of() == "CompleteCommit"
        assert len(world.markers()) == 1  # it was decided, and is done

    play(scenario)


def test_an_end_that_cannot_be_written_leaves_no_marker(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        producer = await world.open_transaction()
        with monkeypatch.context() as broken:
            broken.setattr(type(world.state.log.context.disk), "pwritev", disk_is_full)
            refused = await resolved(world.end(producer))
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        assert world.markers() == []
        await world.active()
        assert world.state_of() == "Ongoing"
        answer: EndTxnResponse = await resolved(world.end(producer))
        assert answer.error_code == ErrorCode.NONE
        assert len(world.markers()) == 1

    play(scenario)


def test_other_requests_of_the_tick_get_the_error_of_lost_records(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        producer = await world.open_transaction()
        other = world.ask(InitProducerIdRequest(transactional_id="other", transaction_timeout_ms=60_000))
        with monkeypatch.context() as broken:
            broken.setattr(type(world.state.log.context.disk), "pwritev", disk_is_full)
            world.end(producer)
        assert (await resolved(other)).error_code == ErrorCode.NOT_COORDINATOR
        await world.active()
        assert set(host.shard.transactions) == {"tx"}

    play(scenario)


def test_a_failed_marker_is_retried(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        producer = await world.unmarked_transaction()
        assert world.state_of() == "PrepareCommit"
        assert host.unwritten_markers == 1
        refused = await resolved(world.end(producer))
        assert refused.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        world.data.is_leader = True
        await until(lambda: world.state_of() == "CompleteCommit", what="the marker is written")
        world.tick.close()
        assert len(world.markers()) == 1
        assert host.unwritten_markers == 0

    play(scenario)


def test_a_deleted_partition_needs_no_marker(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        producer = await world.open_transaction()
        del world.partitions[DATA]
        assert (await resolved(world.end(producer))).error_code == ErrorCode.NONE
        assert world.state_of() == "CompleteCommit"

    play(scenario)


def test_a_partition_deleted_while_its_marker_waits_needs_none(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        await world.unmarked_transaction()
        del world.partitions[DATA]
        host.metadata_changed(NO_CHANGES, world.clock.ms)
        assert world.state_of() == "CompleteCommit"

    play(scenario)


def test_a_prepared_transaction_is_completed_after_a_restart(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        await world.unmarked_transaction(commit=False)
        world.data.is_leader = True
        world.lead_again()
        request = DescribeTransactionsRequest(transactional_ids=["tx"])
        [described] = world.ask(request, 0).transaction_states
        assert described.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await world.active()
        assert world.state_of() == "CompleteAbort"
        world.tick.close()
        assert world.markers() == [EndMarker(aborted=True, coordinator_epoch=5)]

    play(scenario)


def test_an_open_transaction_is_open_after_a_restart(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.lead()
        producer = await world.open_transaction()
        world.lead_again()
        await world.active()
        assert world.state_of() == "Ongoing"
        assert (await resolved(world.end(producer))).error_code == ErrorCode.NONE
        assert len(world.markers()) == 1

    play(scenario)


def test_a_host_without_leadership_writes_no_markers(play: Play) -> None:
    async def scenario(world: World) -> None:
        host = world.lead()
        await world.unmarked_transaction()
        writer = host._markers
        world.state.become_follower(4)
        world.coordinator.leadership_changed(world.state)
        world.data.is_leader = True
        writer._on_time()
        world.tick.close()
        assert world.markers() == []

    play(scenario)
