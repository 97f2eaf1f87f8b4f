"""How a leader proposes an ISR: real partitions, a controller that responds as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.metrics import Metrics
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.partitions import Partitions
from barnabas.broker.partitions.topic_rules import TopicRules
from barnabas.broker.produce.tick import Tick
from barnabas.broker.replicas import isr
from barnabas.broker.replicas.isr import InSyncReplicas
from barnabas.connection.arena import Arena
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from barnabas.records.validation import AppendRules
from barnabas.replication.partition_state import PartitionState
from barnabas.runtime.pieces import Pieces
from barnabas.settings import TopicSettings
from barnabas.simulation.world.disk import SimulatedDisk
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings

LEADER, REPLICAS = 1, (1, 2, 3)
LAG_MS = 1_000
LIVES = {1: 11, 2: 22, 3: 33}  # broker epochs
Asked = AlterPartitionRequest.TopicData.PartitionData
Topic = AlterPartitionResponse.TopicData


class Leader:
    """A broker that leads some partitions, and the controller that it sends requests to."""

    def __init__(self, partitions: int = 1, isr: tuple[int, ...] = REPLICAS) -> None:
        self.loop = asyncio.get_running_loop()
        self.tick = Tick(Arena(), self.loop.call_soon, lambda due, done: done({}))
        self.requests: list[AlterPartitionRequest] = []
        self.answer: Callable[[AlterPartitionRequest], Awaitable[Any]] = self.agree
        self.partitions = [self._partition(index, isr) for index in range(partitions)]
        known = Partitions(lambda: EMPTY_IMAGE)
        for made in self.partitions:
            known.add(made)
        broker: Any = SimpleNamespace(
            loop=self.loop,
            settings={isr_lag(): LAG_MS},
            partitions=known,
            pieces=Pieces(lambda: 0.0),
            node_id=LEADER,
            epoch=LIVES[LEADER],
        )
        self.replicas = InSyncReplicas(broker, self._send)
        for each in self.partitions:
            each.on_joining = self.replicas.joining

    def _partition(self, index: int, isr: tuple[int, ...]) -> Partition:
        log = Log.create(f"/t-{index}", LogSettings(), now_ms=0, context=LogContext(SimulatedDisk()))
        state = PartitionState(LEADER, lag_ms_max=LAG_MS)
        made = Partition("t", index, b"i" * 16, log, LEADER, self.tick, Metrics().topic("t"), state)
        made.configure(TopicRules(TopicSettings(), LogSettings(), AppendRules()))
        made.lead(5, isr, REPLICAS, 7)
        return made

    async def _send(self, request: Any) -> Any:
        self.requests.append(request)
        return await self.answer(request)

    # -- controllers ---------------------------------------------------------------------------------

    async def agree(self, request: AlterPartitionRequest) -> Any:
        return response(request, ErrorCode.NONE)

    def refuse_once(self, code: ErrorCode) -> None:
        async def refuse(request: AlterPartitionRequest) -> Any:
            self.answer = self.agree
            return response(request, code)

        self.answer = refuse

    def hang(self) -> asyncio.Event:
        """Until the event is set; then it agrees."""
        over = asyncio.Event()

        async def wait(request: AlterPartitionRequest) -> Any:
            await over.wait()
            return response(request, ErrorCode.NONE)

        self.answer = wait
        return over

    # -- followers -----------------------------------------------------------------------------------

    def fetch(self, replica: int, partition: int = 0) -> None:
        """A follower that has everything fetches."""
        where = self.partitions[partition]
        where.follower_reached(replica, where.log.end_offset, 0, LIVES[replica])

    def asked(self, number: int = -1) -> dict[int, list[tuple[int, int]]]:
        """Of a request: partitions, and whom it wants in sync, in which lives."""
        return {
            part.partition_index: [(each.broker_id, each.broker_epoch) for each in part.new_isr_with_epochs]
            for topic in self.requests[number].topics
            for part in topic.partitions
        }


def isr_lag() -> str:
    return isr.LAG


def response(request: AlterPartitionRequest, code: ErrorCode) -> AlterPartitionResponse:
    """One response for all partitions: the proposed ISR, in the partition's next epoch."""
    return AlterPartitionResponse(
        topics=[
            Topic(
                topic_id=topic.topic_id,
                partitions=[
                    Topic.PartitionData(
                        partition_index=part.partition_index,
                        error_code=code,
                        leader_epoch=part.leader_epoch,
                        partition_epoch=part.partition_epoch + 1,
                        isr=[each.broker_id for each in part.new_isr_with_epochs],
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def settle(leader: Leader) -> None:
    """Until nothing is under way, and nothing was left undone."""
    while (sending := leader.replicas._sending) is not None:
        await sending
    assert leader.replicas._proposals == {}


def run(act: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(act(), 30))  # type: ignore[arg-type]


def test_a_follower_that_caught_up_is_proposed_with_its_broker_epoch() -> None:
    async def act() -> None:
        leader = Leader(isr=(1, 2))
        leader.fetch(2)
        leader.fetch(3)
        await settle(leader)
        assert len(leader.requests) == 1
        request = leader.requests[0]
        assert (request.broker_id, request.broker_epoch) == (LEADER, LIVES[LEADER])
        part = request.topics[0].partitions[0]
        assert (part.leader_epoch, part.partition_epoch) == (5, 7)
        assert leader.asked() == {0: [(1, 11), (2, 22), (3, 33)]}
        state = leader.partitions[0].state
        assert (state.isr, state.proposed_isr, state.partition_epoch) == (REPLICAS, None, 8)
        assert (leader.replicas.expands, leader.replicas.shrinks, leader.replicas.failures) == (1, 0, 0)

    run(act)


def test_a_replica_that_never_fetched_is_proposed_without_a_broker_epoch() -> None:
    async def act() -> None:
        leader = Leader(isr=(1, 2))
        leader.fetch(3)  # the second is in sync, and was not heard of in this epoch
        await settle(leader)
        assert leader.asked() == {0: [(1, 11), (2, -1), (3, 33)]}

    run(act)


def test_isr_changes_of_one_turn_of_the_loop_share_a_request() -> None:
    async def act() -> None:
        leader = Leader(partitions=3, isr=(1, 2))
        for partition in range(3):
            leader.fetch(3, partition)
        await settle(leader)
        assert len(leader.requests) == 1
        assert set(leader.asked()) == {0, 1, 2}

    run(act)


def test_one_request_is_under_way_and_the_rest_is_in_the_next() -> None:
    async def act() -> None:
        leader = Leader(partitions=3, isr=(1, 2))
        over = leader.hang()
        leader.fetch(3, 0)
        await asyncio.sleep(0.01)
        leader.fetch(3, 1)
        leader.fetch(3, 2)
        await asyncio.sleep(0.05)
        assert len(leader.requests) == 1
        over.set()
        await settle(leader)
        assert [set(leader.asked(number)) for number in range(2)] == [{0}, {1, 2}]
        assert all(each.state.isr == REPLICAS for each in leader.partitions)

    run(act)


def test_the_partitions_of_a_request_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr, "PARTITIONS_MAX", 2)

    async def act() -> None:
        leader = Leader(partitions=5, isr=(1, 2))
        for partition in range(5):
            leader.fetch(3, partition)
        await settle(leader)
        assert [set(leader.asked(number)) for number in range(3)] == [{0, 1}, {2, 3}, {4}]

    run(act)


def test_followers_that_fall_behind_leave_and_those_of_partitions_led_elsewhere_do_not() -> None:
    async def act() -> None:
        leader = Leader(partitions=3)
        partition, elsewhere, alone = leader.partitions
        elsewhere.become_follower(6)
        alone.lead(5, (1,), (1,), 8)
        for replica in (2, 3):
            leader.fetch(replica)
        for each in leader.partitions:
            each.state.log_end_offset = 9
        partition.state.followers[2].log_end_offset = 9
        partition.state.followers[2].caught_up_ms = int(leader.loop.time() * 1000)
        partition.state.followers[3].caught_up_ms = int(leader.loop.time() * 1000) - LAG_MS - 1
        leader.replicas.shrink()
        await settle(leader)
        assert leader.asked() == {0: [(1, 11), (2, 22)]}
        assert partition.state.isr == (1, 2)
        assert (leader.replicas.expands, leader.replicas.shrinks) == (0, 1)

    run(act)


def test_followers_that_caught_up_before_they_were_let_in_are_looked_for() -> None:
    async def act() -> None:
        leader = Leader(partitions=2, isr=(1, 2))
        partition, elsewhere = leader.partitions
        elsewhere.become_follower(6)
        partition.on_joining = None  # as if its broker was fenced when it fetched
        leader.fetch(3)
        leader.replicas.expand()
        await settle(leader)
        assert leader.asked() == {0: [(1, 11), (2, -1), (3, 33)]}
        leader.replicas.expand()  # all are in sync
        assert leader.replicas._sending is None

    run(act)


def test_a_follower_that_catches_up_during_a_proposal_is_proposed_after_the_response() -> None:
    async def act() -> None:
        leader = Leader(isr=(1,))
        over = leader.hang()
        leader.fetch(2)
        await asyncio.sleep(0.01)
        leader.fetch(3)  # nothing is proposed while a proposal is under way
        over.set()
        await settle(leader)
        assert [leader.asked(number)[0] for number in range(2)] == [
            [(1, 11), (2, 22)],
            [(1, 11), (2, 22), (3, 33)],
        ]
        assert leader.partitions[0].state.isr == REPLICAS

    run(act)


@pytest.mark.parametrize("code", isr.TRANSIENT)
def test_an_isr_change_is_sent_again_after_a_transient_error(code: ErrorCode) -> None:
    async def act() -> None:
        leader = Leader(isr=(1, 2))
        leader.refuse_once(code)
        leader.fetch(3)
        await settle(leader)
        assert len(leader.requests) == 2
        assert leader.partitions[0].state.isr == REPLICAS

    run(act)


@pytest.mark.parametrize("how", ["refused as a whole", "not reached"])
def test_a_failed_isr_request_is_sent_again_with_newer_changes(how: str) -> None:
    async def act() -> None:
        leader = Leader(partitions=2, isr=(1, 2))

        async def fail(request: AlterPartitionRequest) -> Any:
            leader.answer = leader.agree
            leader.fetch(3, 1)
            if how == "not reached":
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[])

        leader.answer = fail
        leader.fetch(3, 0)
        await settle(leader)
        assert [set(leader.asked(number)) for number in range(2)] == [{0}, {0, 1}]
        assert all(each.state.isr == REPLICAS for each in leader.partitions)
        assert leader.replicas.failures == 1

    run(act)


def test_an_unreachable_controller_gets_the_request_again_later() -> None:
    async def act() -> None:
        leader = Leader(isr=(1, 2))
        times: list[float] = []

        async def fail(request: AlterPartitionRequest) -> Any:
            times.append(leader.loop.time())
            if len(times) == 3:
                leader.answer = leader.agree
            raise KafkaError(ErrorCode.NOT_CONTROLLER)

        leader.answer = fail
        leader.fetch(3)
        await settle(leader)
        assert times[2] - times[0] >= 2 * isr.RETRY_MS / 1000 * 0.9
        assert leader.replicas.failures == 3

    run(act)


def test_an_isr_change_that_the_controller_refuses_is_withdrawn() -> None:
    async def act() -> None:
        leader = Leader(isr=(1, 2))
        leader.refuse_once(ErrorCode.INELIGIBLE_REPLICA)
        leader.fetch(3)
        await settle(leader)
        state = leader.partitions[0].state
        assert (state.isr, state.maximal_isr, state.proposed_isr) == ((1, 2), (1, 2), None)
        assert (len(leader.requests), leader.replicas.failures) == (1, 1)

    run(act)


def test_a_refusal_from_before_the_last_metadata_change_is_ignored() -> None:
    async def act() -> None:
        leader = Leader(isr=(1, 2))
        partition = leader.partitions[0]

        async def refuse(request: AlterPartitionRequest) -> Any:
            leader.answer = leader.agree
            partition.lead(5, (1,), REPLICAS, 9)  # the metadata log: the second is out
            partition.state.advance_follower(3, 0, broker_epoch=LIVES[3])
            leader.replicas.joining(partition, 3)
            return response(request, ErrorCode.INVALID_UPDATE_VERSION)

        leader.answer = refuse
        leader.fetch(3)
        await settle(leader)
        assert leader.asked() == {0: [(1, 11), (3, 33)]}
        assert partition.state.isr == (1, 3)
        assert leader.replicas.failures == 0

    run(act)


def test_a_response_for_a_settled_proposal_changes_nothing() -> None:
    async def act() -> None:
        leader = Leader(isr=(1, 2))
        partition = leader.partitions[0]

        async def too_late(request: AlterPartitionRequest) -> Any:
            partition.lead(5, (1,), REPLICAS, 9)
            return response(request, ErrorCode.INELIGIBLE_REPLICA)

        leader.answer = too_late
        leader.fetch(3)
        await settle(leader)
        assert partition.state.isr == (1,)
        assert leader.replicas.failures == 0

    run(act)


def test_an_isr_change_that_the_metadata_log_overtakes_is_not_sent() -> None:
    async def act() -> None:
        leader = Leader(partitions=2, isr=(1, 2))
        leader.fetch(3, 0)
        leader.fetch(3, 1)
        leader.partitions[0].become_follower(6)
        leader.partitions[1].lead(5, (1, 2), REPLICAS, 9)
        await settle(leader)
        assert leader.requests == []

    run(act)


def test_followers_are_checked_periodically() -> None:
    """Looked at every half of the time that a follower may be behind."""

    async def act() -> None:
        leader = Leader()
        looks: list[str] = []
        leader.replicas._shrink = lambda _: looks.append("shrink")  # type: ignore[method-assign]
        leader.replicas._expand = lambda _: looks.append("expand")  # type: ignore[method-assign]
        leader.replicas._broker.settings = {isr.LAG: 20}  # type: ignore[assignment]
        started = leader.loop.time()
        leader.replicas.start()
        while len(looks) < 6:
            await asyncio.sleep(0.001)
        assert leader.loop.time() - started >= 0.03
        assert looks[:4] == ["shrink", "expand", "shrink", "expand"]
        await leader.replicas.close()
        count = len(looks)
        await asyncio.sleep(0.05)
        assert len(looks) == count

    run(act)


def test_a_closing_broker_sends_no_more_requests() -> None:
    async def act() -> None:
        leader = Leader(isr=(1, 2))
        leader.hang()
        leader.fetch(3)
        await asyncio.sleep(0.01)
        await leader.replicas.close()
        assert leader.replicas._sending is None
        leader.partitions[0].lead(5, (1, 2), REPLICAS, 9)
        leader.replicas.joining(leader.partitions[0], 3)
        await asyncio.sleep(0.01)
        assert len(leader.requests) == 1

    run(act)
