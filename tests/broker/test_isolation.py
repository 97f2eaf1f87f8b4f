"""An unexpected exception is logged and fails its own request only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.fetch.consumer_fetch import ConsumerFetch
from barnabas.broker.metrics import Metrics
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.topic_rules import TopicRules
from barnabas.broker.produce.purgatory import CommittedResponse
from barnabas.broker.produce.tick import Tick
from barnabas.broker.replicas.leader_fetcher import LeaderFetcher
from barnabas.broker.wire.outbox import Outbox
from barnabas.connection.arena import Arena
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol import uuid as protocol_uuid
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.records.record import Record, build_batch
from barnabas.records.validation import AppendRules
from barnabas.runtime import unexpected
from barnabas.runtime.unexpected import KINDS_MAX, OTHERS, UnexpectedErrors
from barnabas.settings import TopicSettings
from barnabas.simulation.world.world import World
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.segment_writer import SegmentWriter
from barnabas.storage.segments.settings import LogSettings

from .hanging_follower import TOPIC, Scene, code_of, play

NOW_MS = 1_700_000_000_000


class Planted(Exception):
    """An exception that no code expects."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world that ignores noted exceptions, since these tests cause them."""
    quiet = logging.getLogger("barnabas-planted")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    monkeypatch.setattr(unexpected, "log", quiet)
    with World(7) as world:
        yield world


def fail(*_: object, **__: object) -> None:
    raise Planted


def once(
    patch: pytest.MonkeyPatch, owner: Any, name: str, when: Callable[..., bool] = lambda *_: True
) -> None:
    """Let a method fail at its next call for which `when` is true."""
    whole = getattr(owner, name)
    left = [None]

    def planted(*arguments: Any, **options: Any) -> Any:
        if left and when(*arguments):
            left.pop()
            raise Planted
        return whole(*arguments, **options)

    patch.setattr(owner, name, planted)


# -- the tick ----------------------------------------------------------------------------------------


class Two:
    """Two partitions that one tick writes."""

    def __init__(self, folder: Path) -> None:
        self.tick = Tick(Arena(), lambda turn: None, lambda due, done: done({}))
        self.partitions = [self._partition(folder, index) for index in range(2)]

    def _partition(self, folder: Path, index: int) -> Partition:
        log = Log.create(str(folder / f"t-{index}"), LogSettings(), now_ms=NOW_MS)
        found = Partition("t", index, b"i" * 16, log, 1, self.tick, Metrics().topic("t"))
        found.configure(TopicRules(TopicSettings(), LogSettings(), AppendRules()))
        found.lead(0, (1,))
        return found

    def append(self) -> None:
        for partition in self.partitions:
            batch = build_batch([Record(timestamp=NOW_MS, value=b"v")])
            partition.append(memoryview(batch), -1, 11, NOW_MS)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def test_a_failing_waiter_does_not_delay_other_waiters_or_partitions(two: Two) -> None:
    woken: list[str] = []
    first, second = two.partitions
    first.wait(fail)
    first.wait(lambda partition: woken.append(str(partition)))
    second.wait(lambda partition: woken.append(str(partition)))
    two.append()
    two.tick.when_written(fail)
    two.tick.when_written(lambda: woken.append("after"))
    two.tick.close()
    assert woken == ["t-0", "t-1", "after"]
    assert two.tick.unexpected.count == 2


def test_a_partition_that_cannot_advance_does_not_stop_others(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, Partition, "advance")
    two.append()
    two.tick.close()
    assert [partition.high_watermark for partition in two.partitions] == [0, 1]
    assert not two.tick.is_open


def test_other_waiters_are_told_of_a_commit_when_one_fails(two: Two) -> None:
    told: list[tuple[str, object]] = []
    for partition in two.partitions:
        partition.when_committed(0, fail)
        partition.when_committed(0, lambda error, where=partition: told.append((str(where), error)))
    two.append()
    two.tick.close()
    assert told == [("t-0", None), ("t-1", None)]


def test_other_waiters_are_told_of_lost_records_when_one_fails(two: Two) -> None:
    told: list[ErrorCode] = []
    partition = two.partitions[0]
    partition.when_committed(0, fail)
    partition.when_committed(0, lambda error: told.append(error.code) if error is not None else None)
    partition.become_follower(1)
    assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_all_followers_are_woken_when_one_of_them_fails(two: Two) -> None:
    woken: list[None] = []
    two.tick.wake(fail)
    two.tick.wake(lambda: woken.append(None))
    two.tick._wake()
    assert woken == [None]


def test_a_log_that_failed_refuses_appends_and_other_logs_accept_them(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, SegmentWriter, "add")
    lost: list[ErrorCode] = []
    two.partitions[0].when_committed(0, lambda error: lost.append(error.code) if error is not None else None)
    two.append()
    two.tick.close()
    assert lost == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert not two.tick.is_open
    assert [partition.high_watermark for partition in two.partitions] == [0, 1]
    with pytest.raises(KafkaError) as refused:
        two.append()
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_repeated_failures_log_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    noted = UnexpectedErrors()
    noted.call_all([fail] * 1000, "planting")
    assert noted.count == 1000
    assert sum(record.exc_info is not None for record in caplog.records) == 1
    assert len(caplog.records) == 10  # the 1st, 2nd, 4th, ... 512th


def test_kinds_of_failures_name_their_place_and_are_bounded() -> None:
    noted = UnexpectedErrors()
    for number in range(2 * KINDS_MAX):
        noted.call_all([fail], f"planting {number}")
    assert len(noted.by_kind) == KINDS_MAX + 1
    assert noted.by_kind[OTHERS] == KINDS_MAX
    assert sum(noted.by_kind.values()) == noted.count
    first = next(iter(noted.by_kind))
    assert first[:2] == ("planting 0", "Planted") and first.place.startswith("test_isolation.py:")


def test_the_place_of_a_failure_is_a_line_of_our_own_code() -> None:
    noted = UnexpectedErrors()
    noted.call_all([protocol_uuid.to_text], "reading", "", "no bytes")
    [kind] = noted.by_kind
    assert kind.place.startswith("protocol/uuid.py:")


# -- requests ----------------------------------------------------------------------------------------


def fetch_request() -> FetchRequest:
    topic = FetchRequest.FetchTopic
    partition = topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=20_000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[topic(topic=TOPIC, partitions=[partition])],
    )


def test_a_fetch_that_fails_when_woken_gets_a_response_and_so_do_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(scene: Scene) -> None:
        def fetch(purpose: str) -> Coroutine[Any, Any, FetchResponse | None]:
            return scene.client.ask_at(
                scene.address,
                fetch_request(),
                FetchResponse,
                purpose=purpose,
                timeout_ms=30_000,
                version_max=12,
            )

        first = asyncio.ensure_future(fetch("first"))
        await asyncio.sleep(0.5)
        second = asyncio.ensure_future(fetch("second"))
        await asyncio.sleep(0.5)
        once(monkeypatch, ConsumerFetch, "response_if_ready")
        assert code_of(await scene.produce()) is ErrorCode.NONE
        answers = [await first, await second]
        assert [answer.error_code if answer else None for answer in answers] == [
            ErrorCode.UNKNOWN_SERVER_ERROR,
            ErrorCode.NONE,
        ]
        assert answers[1] is not None
        assert answers[1].responses[0].partitions[0].records

    play(world, act)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(CommittedResponse, "encode_into"), (CommittedResponse, "_check"), (CommittedResponse, "finish")],
)
def test_a_failing_produce_response_closes_only_its_connection(
    world: World, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    async def act(scene: Scene) -> None:
        await scene.produce(purpose="planted")
        await scene.produce(purpose="other")
        await scene.pause_follower()
        planted = asyncio.ensure_future(scene.produce(timeout_ms=20_000, purpose="planted"))
        if name == "finish":
            once(monkeypatch, owner, name)
        await asyncio.sleep(0.2)
        other = asyncio.ensure_future(scene.produce(timeout_ms=20_000, purpose="other"))
        await asyncio.sleep(0.2)
        if name != "finish":
            once(monkeypatch, owner, name)
        await scene.resume_follower()
        assert code_of(await planted) is None
        assert code_of(await other) is ErrorCode.NONE
        assert code_of(await scene.produce(purpose="planted")) is ErrorCode.NONE

    play(world, act)


def test_a_failing_refusal_closes_its_connection_and_timeouts_continue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        asking = [asyncio.ensure_future(scene.produce(purpose=name)) for name in ("planted", "other")]
        await asyncio.sleep(0.2)
        once(monkeypatch, CommittedResponse, "_turn_into_error")
        codes = {code_of(answer) for answer in await asyncio.gather(*asking)}
        assert codes == {None, ErrorCode.REQUEST_TIMED_OUT}
        assert code_of(await scene.produce(purpose="other")) is ErrorCode.REQUEST_TIMED_OUT

    play(world, act)


def test_a_connection_that_cannot_be_written_to_is_closed_and_others_get_responses(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(scene: Scene) -> None:
        await scene.produce(purpose="planted")
        await scene.produce(purpose="other")
        await scene.pause_follower()
        asking = [
            asyncio.ensure_future(scene.produce(timeout_ms=20_000, purpose=name))
            for name in ("planted", "other")
        ]
        await asyncio.sleep(0.2)
        channels = [held.channel for _, held in scene.leader.purgatory._waiting]
        once(monkeypatch, Outbox, "put", lambda outbox, *_: outbox is channels[0].outbox)
        await scene.resume_follower()
        assert {code_of(answer) for answer in await asyncio.gather(*asking)} == {None, ErrorCode.NONE}

    play(world, act)


def test_a_follower_fetches_again_after_a_fetch_could_not_be_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(scene: Scene) -> None:
        followed = {scene.leader_id}
        once(monkeypatch, LeaderFetcher, "_ask", lambda fetcher: fetcher.leader_id in followed)
        assert code_of(await scene.produce(timeout_ms=20_000)) is ErrorCode.NONE
        assert code_of(await scene.produce(timeout_ms=20_000)) is ErrorCode.NONE

    play(world, act)


def test_a_follower_that_cannot_append_tries_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(scene: Scene) -> None:
        once(monkeypatch, Partition, "append_followed")
        assert code_of(await scene.produce(timeout_ms=20_000)) is ErrorCode.NONE

    play(world, act)


# -- the metadata ------------------------------------------------------------------------------------


def test_failing_metadata_listeners_do_not_stop_others_on_leaders_and_followers(world: World) -> None:
    async def act(scene: Scene) -> None:
        logs = {node_id: node.metadata for node_id, node in scene.stage.cluster.nodes.items()}
        for log in logs.values():
            assert log is not None
            log._listeners.insert(0, fail)
        from barnabas.simulation.histories.stage import create_topic

        await create_topic(scene.stage, "late", 2)
        await scene.stage.until(
            lambda: all(
                node.node is not None and "late" in node.node.broker.image.topics.by_name
                for node in scene.stage.cluster.nodes.values()
            ),
            30,
            "every node knows the topic",
        )
        assert all(log is not None and log.listener_errors for log in logs.values())
        assert scene.stage.cluster.lives == len(logs)  # nobody stopped

    play(world, act)


def test_a_setting_that_cannot_be_applied_does_not_block_others(world: World) -> None:
    from barnabas.protocol.messages.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    async def act(scene: Scene) -> None:
        told: list[None] = []
        names = ("log.cleaner.threads",)
        scene.leader.dynamic.on_change(names, fail)
        scene.leader.dynamic.on_change(names, lambda before, after: told.append(None))
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        config = resource.AlterableConfig(name=names[0], value="2")
        request = IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=4, resource_name=str(scene.leader_id), configs=[config])]
        )
        answer = await scene.client.ask_at(scene.address, request, IncrementalAlterConfigsResponse)
        assert answer is not None
        assert answer.responses[0].error_code == ErrorCode.NONE
        await scene.stage.until(lambda: bool(told), 10, "the other is told")

    play(world, act)


def test_a_simulation_fails_on_an_exception_that_a_node_isolates() -> None:
    from barnabas.simulation.world.world import Unexpected

    async def act(scene: Scene) -> None:
        scene.partition.wait(fail)
        await scene.produce()

    with World(7) as world, pytest.raises(Unexpected) as heard:
        play(world, act)
    assert isinstance(heard.value.__cause__, Planted)
