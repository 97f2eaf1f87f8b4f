"""Truncation beside the loop: what else may happen to a partition while its log is being cut.

A leader is cut off and writes what nobody else has; when it is back it must cut that off. A gate holds the
work on files back for as long as a test wants, while the metadata goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.replicas.truncations import Truncations
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.histories.stage import create_topic
from barnabas.simulation.world.cluster import Shape
from barnabas.simulation.world.faults import Fault, Kind
from barnabas.simulation.world.world import World
from barnabas.storage.logs.truncation import Truncation

from .asking import Asking, produced

TOPIC = "orders"
OTHER = "others"
SHAPE = Shape((1,), (2, 3, 4))
PATIENCE_S = 60
Check = Callable[["Divided"], Coroutine[Any, Any, None]]


class Gate:
    """Truncations that have begun, held back until it is opened."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.is_open = False
        self.held: list[tuple[Truncations, Truncation]] = []
        self._start = Truncations.start
        patch.setattr(Truncations, "start", lambda truncations, begun: self._hold(truncations, begun))

    def _hold(self, truncations: Truncations, truncation: Truncation) -> None:
        if self.is_open:
            self._start(truncations, truncation)
            return
        self.held.append((truncations, truncation))
        # A node that stops waits for it.
        is_done = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._wait(is_done))
        truncations._running[task] = None
        task.add_done_callback(truncations._running.pop)
        truncation.when_done(is_done.set)

    async def _wait(self, is_done: asyncio.Event) -> None:
        await is_done.wait()

    def open(self) -> None:
        self.is_open = True
        for truncations, truncation in self.held:
            self._start(truncations, truncation)


class Divided:
    """A cluster in which the first leader has come back with records that are its own."""

    def __init__(self, stage: ClusterStage, gate: Gate) -> None:
        self.stage = stage
        self.gate = gate
        self.old_leader = -1
        self._client = Asking()
        self.ask = self._client.ask

    async def begin(self) -> None:
        stage = self.stage
        await create_topic(stage, TOPIC, 1)
        await create_topic(stage, OTHER, 3)
        stage.add("client", self._client.serve)
        await stage.until(stage.is_whole, PATIENCE_S, "all replicas are in sync")
        assert await self.produce(TOPIC, b"shared", acks=-1)
        self.old_leader = self.leader(TOPIC)
        address = stage.cluster.brokers[self.old_leader]
        place = SHAPE.ids.index(self.old_leader)
        injector = stage._fault_injector([])
        injector.schedule([Fault(0.0, Kind.ISOLATE, 6.0, place + len(SHAPE.ids))])
        await asyncio.sleep(0.05)
        for _ in range(5):
            await self.ask(produced(TOPIC, b"lost", 1), ProduceResponse, address)
        assert self.partition(TOPIC).log.end_offset > 1
        await stage.until(lambda: self.leader(TOPIC) != self.old_leader, PATIENCE_S, "another leads")
        assert await self.produce(TOPIC, b"kept", acks=-1)
        await stage.until(lambda: bool(self.gate.held), PATIENCE_S, "the old leader begins to cut its log")

    async def produce(self, topic: str, value: bytes, acks: int) -> bool:
        for _ in range(200):
            answer = await self.ask(produced(topic, value, acks), ProduceResponse)
            if answer is not None and not answer.responses[0].partition_responses[0].error_code:
                return True
            await asyncio.sleep(0.1)
        return False

    def partition(self, topic: str, index: int = 0, broker_id: int | None = None) -> Partition:
        found = self.find(topic, index, broker_id)
        assert found is not None
        return found

    def find(self, topic: str, index: int = 0, broker_id: int | None = None) -> Partition | None:
        node = self.stage.cluster.nodes[self.old_leader if broker_id is None else broker_id].node
        return node.broker.partitions.get(topic, index) if node is not None else None

    def leader(self, topic: str) -> int:
        image = self.stage.cluster.image()
        registration = image.topics.partition(topic, 0) if image is not None else None
        return registration.leader if registration is not None else -1

    async def wait_until_whole(self) -> None:
        self.gate.open()
        await self.stage.wait_until_whole()


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Check], None]]:
    with World(5) as world:

        def live(check: Check) -> None:
            async def whole() -> None:
                stage = ClusterStage(world, {}, SHAPE)
                await stage.open()
                history = Divided(stage, Gate(monkeypatch))
                await history.begin()
                await check(history)

            world.run(whole(), 600)

        yield live


def test_records_only_on_an_old_leader_are_truncated(divided: Callable[[Check], None]) -> None:
    async def check(history: Divided) -> None:
        cut = history.partition(TOPIC).log
        assert (cut.end_offset, cut.truncation is None) == (1, False)
        await history.wait_until_whole()
        assert history.partition(TOPIC).log.end_offset == 2

    divided(check)


def test_other_partitions_are_followed_while_a_log_is_cut(divided: Callable[[Check], None]) -> None:
    async def check(history: Divided) -> None:
        assert await history.produce(OTHER, b"other", acks=1)
        stage = history.stage
        await stage.until(
            lambda: history.partition(OTHER).log.end_offset == 1, PATIENCE_S, "the others are followed"
        )
        assert history.partition(TOPIC).log.truncation is not None
        assert history.partition(TOPIC).log.end_offset == 1

    divided(check)


def test_a_log_that_is_cut_is_not_led_before_it_is_whole(divided: Callable[[Check], None]) -> None:
    """The controller makes the broker the leader again while it still cuts its log."""

    async def check(history: Divided) -> None:
        partition = history.partition(TOPIC)
        epoch = partition.leader_epoch
        node = history.stage.cluster.nodes[history.old_leader].node
        assert node is not None
        told = node.broker.image.topics.partition(TOPIC, 0)
        assert told is not None
        told = told._replace(leader=history.old_leader, leader_epoch=epoch + 5)
        node._replicas._update(TOPIC, partition.topic_id, 0, told)
        assert not partition.is_leader
        assert partition.leader_epoch == epoch
        history.gate.open()
        await history.stage.until(lambda: partition.is_leader, PATIENCE_S, "it leads")
        assert partition.leader_epoch == epoch + 5
        assert partition.log.epochs.latest_epoch == epoch + 5
        assert partition.log.truncation is None

    divided(check)


def test_another_leader_is_followed_when_the_log_is_whole(divided: Callable[[Check], None]) -> None:
    async def check(history: Divided) -> None:
        partition = history.partition(TOPIC)
        before = history.leader(TOPIC)
        history.stage.world.loop.call_soon(history.stage.cluster.nodes[before].kill)
        await history.stage.until(
            lambda: history.leader(TOPIC) not in (before, -1), PATIENCE_S, "a third broker leads"
        )
        await asyncio.sleep(1.0)
        assert partition.log.end_offset == 1
        assert partition.log.truncation is not None
        await history.wait_until_whole()

    divided(check)


def test_a_topic_is_deleted_and_made_again_while_its_log_is_cut(divided: Callable[[Check], None]) -> None:
    async def check(history: Divided) -> None:
        old = history.partition(TOPIC)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=TOPIC)], timeout_ms=5000
        )
        await history.ask(request, DeleteTopicsResponse)
        await history.stage.until(lambda: history.find(TOPIC) is None, PATIENCE_S, "it is gone")
        topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=3)
        await history.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000), CreateTopicsResponse)
        await asyncio.sleep(1.0)
        assert history.leader(TOPIC) >= 0, "it was made"
        assert history.find(TOPIC) is None, "its folder is not free yet"
        await history.wait_until_whole()
        assert await history.produce(TOPIC, b"new", acks=-1)

        made = history.partition(TOPIC)
        assert made.topic_id != old.topic_id
        assert made.log is not old.log
        assert (made.log.log_start_offset, made.log.end_offset) == (0, 1)
        assert old.log.directory.endswith("-delete")
        assert made.log.directory.endswith(f"/{TOPIC}-0")

    divided(check)


def test_a_node_that_stops_waits_for_its_truncations(divided: Callable[[Check], None]) -> None:
    async def check(history: Divided) -> None:
        node = history.stage.cluster.nodes[history.old_leader]
        lives = node.lives
        stopping = asyncio.ensure_future(node.stop())
        await asyncio.sleep(3.0)
        assert not stopping.done()
        history.gate.open()
        assert await stopping
        await history.stage.until(lambda: node.lives > lives and node.is_up, PATIENCE_S, "it is back")
        await history.wait_until_whole()

    divided(check)


def test_a_node_that_is_killed_within_a_truncation_cuts_its_log_again(
    divided: Callable[[Check], None],
) -> None:
    async def check(history: Divided) -> None:
        node = history.stage.cluster.nodes[history.old_leader]
        lives = node.lives
        history.stage.world.loop.call_soon(node.kill)
        history.gate.is_open = True
        await history.stage.until(lambda: node.lives > lives and node.is_up, PATIENCE_S, "it is back")
        await history.stage.wait_until_whole()
        assert history.partition(TOPIC).log.end_offset == 2

    divided(check)
