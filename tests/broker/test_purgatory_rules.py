"""Rules of responses that wait for followers: for which offset, how long, in which order they leave, and
what they say. Most on two real brokers and virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.broker.coordinators.host import TOO_LATE
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.produce.purgatory import SWEEP_SECONDS
from barnabas.broker.produce.tick import Tick
from barnabas.decisions.commit_waits import CommitCall, CommitWaits
from barnabas.decisions.uncommitted import UncommittedResponses
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.record import Record, build_batch
from barnabas.runtime.unexpected import UnexpectedErrors
from barnabas.simulation.histories.stage import create_topic
from barnabas.simulation.world.world import World

from .hanging_follower import TOPIC, Scene, code_of, play

SECONDS = 0.1  # how exactly moments are told


@pytest.fixture
def world() -> Iterator[World]:
    with World(5) as world:
        yield world


def soon(coroutine: Any) -> asyncio.Future[Any]:
    return asyncio.ensure_future(coroutine)


async def codes_of(*asked: asyncio.Future[Any]) -> list[ErrorCode | None]:
    return [code_of(await each) for each in asked]


# -- producers ---------------------------------------------------------------------------------------


def test_a_response_waits_for_the_follower_and_no_longer(world: World) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        asked = soon(scene.produce(timeout_ms=30_000))
        await asyncio.sleep(5)
        assert not asked.done()
        assert len(scene.leader.purgatory) == 1
        started = scene.loop.time()
        await scene.resume_follower()
        assert await codes_of(asked) == [ErrorCode.NONE]
        assert scene.loop.time() - started < 1
        assert len(scene.leader.purgatory) == 0

    play(world, act)


def test_each_request_waits_for_its_own_timeout(world: World) -> None:
    """Whichever was sent first: on connections of their own none waits behind another."""

    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        started = scene.loop.time()
        took: dict[int, float] = {}

        async def produce(timeout_ms: int) -> None:
            answer = await scene.produce(timeout_ms=timeout_ms, purpose=str(timeout_ms))
            assert code_of(answer) is ErrorCode.REQUEST_TIMED_OUT
            took[timeout_ms] = scene.loop.time() - started

        await asyncio.gather(*(produce(timeout_ms) for timeout_ms in (9_000, 1_000, 4_000)))
        for timeout_ms, seconds in took.items():
            assert timeout_ms / 1000 <= seconds <= timeout_ms / 1000 + SWEEP_SECONDS + SECONDS

    play(world, act)


def test_timeouts_work_again_when_nothing_was_waiting_for_a_while(world: World) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        for _ in range(3):
            assert await scene.codes(2) == {ErrorCode.REQUEST_TIMED_OUT: 2}
            await asyncio.sleep(5 * SWEEP_SECONDS)

    play(world, act)


def test_writes_that_followers_do_not_confirm_do_not_count_as_succeeded(world: World) -> None:
    """The errors of Produce on the metrics page: each write is counted by one of them, NONE included."""

    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        assert await scene.codes(3) == {ErrorCode.REQUEST_TIMED_OUT: 3}
        await scene.resume_follower()
        assert code_of(await scene.produce()) is ErrorCode.NONE
        counters = scene.leader.metrics.topic(TOPIC)
        assert (counters.produce_requests, counters.refused_produce_requests) == (4, 3)

    play(world, act)


def test_responses_of_a_connection_leave_in_the_order_of_its_requests(world: World) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        order: list[int] = []

        async def produce(timeout_ms: int) -> ErrorCode | None:
            answer = await scene.produce(timeout_ms=timeout_ms)
            order.append(timeout_ms)
            return code_of(answer)

        asked = [soon(produce(6_000)), soon(produce(1_000))]
        await asyncio.sleep(3)
        assert order == []  # the second was given up, and has to wait for the first
        assert await asyncio.gather(*asked) == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert order == [6_000, 1_000]

    play(world, act)


def test_a_response_that_timed_out_stays_an_error_when_the_follower_catches_up(world: World) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        first = soon(scene.produce(timeout_ms=6_000))
        second = soon(scene.produce(timeout_ms=1_000))
        await asyncio.sleep(3)
        await scene.resume_follower()
        assert await codes_of(first, second) == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
        assert await scene.codes(3) == {ErrorCode.NONE: 3}

    play(world, act)


def test_a_former_leader_responds_not_leader(world: World) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        asked = soon(scene.produce(timeout_ms=30_000))
        await asyncio.sleep(0.5)
        scene.loop.call_soon(scene.partition.become_follower, scene.partition.leader_epoch + 1)
        assert await codes_of(asked) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    play(world, act)


def test_a_duplicate_batch_gets_its_response_at_once_and_in_order(world: World) -> None:
    """It is committed already, so nothing is waited for but the responses in front of it."""

    async def act(scene: Scene) -> None:
        async def produce(sequence: int, purpose: str = "") -> tuple[ErrorCode, int]:
            records = [Record(timestamp=scene.stage.world.clock.now_ms(), value=b"v")]
            batch = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=sequence)
            request = ProduceRequest(acks=-1, timeout_ms=3_000, topic_data=[one_batch(batch)])
            answer = await scene.client.ask_at(
                scene.address, request, ProduceResponse, timeout_ms=60_000, version_max=12, purpose=purpose
            )
            assert answer is not None
            part = answer.responses[0].partition_responses[0]
            return ErrorCode(part.error_code), part.base_offset

        assert await produce(0) == (ErrorCode.NONE, 0)
        await scene.pause_follower()
        started = scene.loop.time()
        assert await produce(0, "another connection") == (ErrorCode.NONE, 0)
        assert scene.loop.time() - started < 1
        new, again = soon(produce(1)), soon(produce(0))
        await asyncio.sleep(1)
        assert not new.done() and not again.done()
        assert await new == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert await again == (ErrorCode.NONE, 0)

    play(world, act)


def test_a_leader_that_resigns_before_the_write_responds_not_leader(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(scene: Scene) -> None:
        partition, close = scene.partition, Tick.close

        def resign_first(tick: Tick) -> None:
            if partition.is_dirty and partition.is_leader:
                partition.become_follower(partition.leader_epoch + 1)
            close(tick)

        await scene.pause_follower()
        monkeypatch.setattr(Tick, "close", resign_first)
        assert await codes_of(soon(scene.produce(timeout_ms=30_000))) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    play(world, act)


def test_records_that_the_leader_could_not_write_are_refused_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(scene: Scene) -> None:
        broken, write = scene.partition, Partition.write_staged

        def fail(partition: Partition) -> None:
            if partition is broken:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            write(partition)

        monkeypatch.setattr(Partition, "write_staged", fail)
        started = scene.loop.time()
        assert await codes_of(soon(scene.produce(timeout_ms=30_000))) == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert scene.loop.time() - started < 1

    play(world, act)


def one_batch(batch: bytearray) -> ProduceRequest.TopicProduceData:
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=0, records=memoryview(batch))
    return data(name=TOPIC, partition_data=[part])


def produce_to(scene: Scene, topic: str, indexes: list[int], timeout_ms: int) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    batches = [build_batch([Record(timestamp=scene.stage.world.clock.now_ms(), value=b"v")]) for _ in indexes]
    parts = [
        data.PartitionProduceData(index=index, records=memoryview(batch))
        for index, batch in zip(indexes, batches, strict=True)
    ]
    topics = [data(name=topic, partition_data=parts)]
    return ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=topics)


def test_a_response_for_several_partitions_waits_for_all_and_has_the_result_of_each(world: World) -> None:
    async def act(scene: Scene) -> None:
        topic = "several"
        await create_topic(scene.stage, topic, 4)
        await scene.stage.until(scene.stage.is_whole, 30, "replicas are in sync")
        indexes = [each.index for each in scene.leader.partitions if each.topic == topic and each.is_leader]
        assert len(indexes) == 2
        committed, waiting = (scene.leader.partitions.leader(topic, index) for index in indexes)

        async def ask(timeout_ms: int) -> list[ErrorCode]:
            request = produce_to(scene, topic, indexes, timeout_ms)
            answer = await scene.client.ask_at(
                scene.address, request, ProduceResponse, timeout_ms=60_000, version_max=12, purpose="several"
            )
            assert answer is not None
            return [ErrorCode(part.error_code) for part in answer.responses[0].partition_responses]

        await scene.pause_follower()
        asked = soon(ask(3_000))
        await asyncio.sleep(0.5)
        # The follower has one of the batches, as a fetch of it would show.
        where = next(iter(committed.state.followers))
        scene.loop.call_soon(committed.follower_reached, where, committed.log.end_offset)
        await asyncio.sleep(0.5)
        assert not asked.done()
        assert await asked == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]

        asked = soon(ask(30_000))
        await asyncio.sleep(0.5)
        for each in (committed, waiting):
            assert not asked.done()
            scene.loop.call_soon(each.follower_reached, where, each.log.end_offset)
            await asyncio.sleep(0.5)
        assert await asked == [ErrorCode.NONE, ErrorCode.NONE]

    play(world, act)


def test_written_records_are_refused_when_too_few_replicas_have_them(world: World) -> None:
    async def act(scene: Scene) -> None:
        partition = scene.partition
        await scene.pause_follower()
        asked = soon(scene.produce(timeout_ms=30_000))
        await asyncio.sleep(0.5)

        def commit_with_too_few() -> None:
            where = next(iter(partition.state.followers))
            partition.state.advance_follower(where, partition.log.end_offset)
            partition.state.min_isr, partition.state.maximal_isr = 2, (scene.leader_id,)
            partition._moved()

        scene.loop.call_soon(commit_with_too_few)
        assert await codes_of(asked) == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]

    play(world, act)


# -- calls for a commit ------------------------------------------------------------------------------


def test_a_commit_call_comes_once_unless_it_was_cancelled(world: World) -> None:
    async def act(scene: Scene) -> None:
        partition = scene.partition
        await scene.pause_follower()
        asked = soon(scene.produce(timeout_ms=30_000))
        await asyncio.sleep(0.5)
        told: list[tuple[str, KafkaError | None]] = []
        end = partition.log.end_offset

        def wait(name: str, offset: int) -> CommitCall:
            return partition.when_committed(offset, lambda error: told.append((name, error)))

        wait("this", end - 1)
        wait("unwanted", end - 1).is_ready = True
        wait("forgotten", end - 1).is_ready = True
        wait("next", end)
        committing = partition._committing
        assert committing is not None
        partition.forget_ready()
        assert [offset for offset, _ in committing] == [end - 1, end - 1, end]  # the producer waits, too
        wait("unwanted", end - 1).is_ready = True
        await scene.resume_follower()
        await asked
        assert told == [("this", None)]  # below the high watermark, which the next is not
        error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        committing.tell_lost(end + 1, error)
        assert (len(told), len(committing)) == (1, 2)  # the unwanted one stands behind the next
        committing.tell_lost(end - 1, error)
        assert told[1:] == [("next", error)]
        assert not committing

    play(world, act)


def test_a_commit_call_calls_its_function_once() -> None:
    told: list[KafkaError | None] = []
    call = CommitCall(told.append)
    where: Any = None
    call.on_commit(where, None)
    call.on_commit(where, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert (told, call.is_ready) == ([None], True)


# -- coordinators ------------------------------------------------------------------------------------


class Timers:
    """A loop's clock and timers, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[tuple[float, Callable[[], None], Timer]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        timer = Timer()
        self.due.append((when, call, timer))
        return timer

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        return self.call_at(self.now + delay, call)

    def pending(self) -> int:
        return sum(not timer.is_cancelled for _, _, timer in self.due)

    def move(self, seconds: float) -> None:
        end = self.now + seconds
        while ready := [each for each in self.due if each[0] <= end and not each[2].is_cancelled]:
            first = min(ready, key=lambda each: each[0])
            self.due.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = end


class Timer:
    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Waiting:
    """Responses of a shard that wait two seconds at most, and their results."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.unexpected = UnexpectedErrors()
        self.given: list[tuple[str, ErrorCode]] = []
        waits: CommitWaits[Any] = CommitWaits(self, self.unexpected)
        self.held = UncommittedResponses(self.timers, 2_000, TOO_LATE, self.turn_into_error, waits)  # type: ignore[arg-type]

    def turn_into_error(self, answer: list[Any], error: KafkaError) -> None:
        answer[1] = error.code

    def hold(self, name: str, offset: int, give: Callable[[Any], None] | None = None) -> None:
        self.held.hold(offset, give or self.give, [name, ErrorCode.NONE])

    def committed(self, high_watermark: int) -> None:
        self.held.committed(high_watermark)

    def give(self, answer: list[Any]) -> None:
        self.given.append((answer[0], answer[1]))


def test_a_coordinator_s_response_leaves_when_everything_below_its_offset_is_committed() -> None:
    waiting = Waiting()
    for offset in (5, 7, 7, 9):
        waiting.hold(f"at {offset}", offset)

    waiting.committed(4)
    assert waiting.given == []
    waiting.committed(7)
    assert [name for name, _ in waiting.given] == ["at 5", "at 7", "at 7"]
    assert {code for _, code in waiting.given} == {ErrorCode.NONE}


def test_a_coordinator_s_response_is_refused_when_followers_take_too_long() -> None:
    waiting = Waiting()
    waiting.hold("early", 5)
    waiting.timers.move(1.5)
    waiting.hold("late", 6)
    waiting.timers.move(0.4)
    assert waiting.given == []
    waiting.timers.move(0.1)
    assert waiting.given == [("early", TOO_LATE.code)]
    waiting.timers.move(1.4)
    assert len(waiting.given) == 1
    waiting.timers.move(0.1)
    assert waiting.given[1:] == [("late", TOO_LATE.code)]
    assert waiting.timers.pending() == 0
    waiting.hold("again", 7)
    waiting.timers.move(2)
    assert waiting.given[2:] == [("again", TOO_LATE.code)]


def test_one_timer_serves_all_responses_of_a_coordinator() -> None:
    waiting = Waiting()
    for offset in range(5):
        waiting.hold("x", offset)
        assert waiting.timers.pending() == 1
    waiting.committed(100)
    waiting.timers.move(2)
    assert (len(waiting.given), waiting.timers.pending()) == (5, 0)


def test_a_coordinator_that_lost_its_log_refuses_all_waiting_responses_at_once() -> None:
    waiting = Waiting()
    waiting.hold("one", 5)
    waiting.hold("two", 6)
    waiting.held.fail_all(KafkaError(ErrorCode.NOT_COORDINATOR))

    assert waiting.given == [("one", ErrorCode.NOT_COORDINATOR), ("two", ErrorCode.NOT_COORDINATOR)]
    assert waiting.timers.pending() == 0
    waiting.committed(100)
    assert len(waiting.given) == 2
    waiting.hold("three", 7)
    waiting.timers.move(2)
    assert waiting.given[2:] == [("three", TOO_LATE.code)]


def test_a_response_that_cannot_be_given_does_not_delay_others(caplog: pytest.LogCaptureFixture) -> None:
    waiting = Waiting()

    def fail(answer: Any) -> None:
        raise ValueError("planted")

    waiting.hold("bad", 5, fail)
    waiting.hold("good", 5)
    waiting.committed(5)

    assert waiting.given == [("good", ErrorCode.NONE)]
    assert waiting.unexpected.count == 1
