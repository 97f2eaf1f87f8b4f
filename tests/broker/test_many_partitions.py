"""A large metadata change is applied in pieces, with the same result as at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.node import Node
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.runtime.clock import SystemClock
from barnabas.runtime.pieces import PIECE_S
from barnabas.settings import BrokerSettings
from barnabas.testing.ports import free_ports

ITEMS_A_TURN = 4
Grown = CreatePartitionsRequest.CreatePartitionsTopic


class StepClock(SystemClock):
    """Each step of long work takes a quarter of a piece."""

    def __init__(self) -> None:
        self._steps = count()

    def work_s(self) -> float:
        return next(self._steps) * PIECE_S * 1.01 / ITEMS_A_TURN


class EndlessClock(SystemClock):
    """A piece is never over: everything is done at once."""

    def work_s(self) -> float:
        return 0.0


def node_in(folder: Path, clock: SystemClock) -> Node:
    port, controller_port = free_ports(2)
    properties = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": str(folder),
        "log.cleaner.enable": "false",
    }
    return Node(BrokerSettings.load(properties), format_empty=True, clock=clock, rng=random.Random(1))


async def create(node: Node, topics: dict[str, int]) -> None:
    topic = CreateTopicsRequest.CreatableTopic
    asked = [topic(name=name, num_partitions=size, replication_factor=1) for name, size in topics.items()]
    response = await node.broker.controller.handle(CreateTopicsRequest(topics=asked))
    assert not any(each.error_code for each in response.topics)


async def delete(node: Node, *names: str) -> None:
    response = await node.broker.controller.handle(DeleteTopicsRequest(topic_names=list(names)))
    assert not any(each.error_code for each in response.responses)


async def grow(node: Node, name: str, size: int) -> None:
    asked = [Grown(name=name, count=size, assignments=None)]
    response = await node.broker.controller.handle(CreatePartitionsRequest(topics=asked))
    assert not any(each.error_code for each in response.results)


def with_node(folder: Path, clock: SystemClock, use: Callable[[Node], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        node = node_in(folder, clock)
        await node.start()
        try:
            return await use(node)
        finally:
            await node.stop()

    return asyncio.run(run())


async def turns_of(node: Node, change: Awaitable[None]) -> list[int]:
    """How many partitions came or went in each turn of the loop until the response to the change."""
    task, partitions = asyncio.ensure_future(change), node.broker.partitions
    turns, before = [], len(partitions)
    while not task.done():
        await asyncio.sleep(0)
        turns.append(abs(len(partitions) - before))
        before = len(partitions)
    task.result()
    return [each for each in turns if each]


def test_partitions_are_made_and_removed_a_few_in_each_turn_of_the_loop(tmp_path: Path) -> None:
    async def use(node: Node) -> None:
        turns = await turns_of(node, create(node, {"a": 40, "b": 60}))
        assert sum(turns) == 100  # all of them can be used when the response is there
        assert max(turns) <= ITEMS_A_TURN + 1
        turns = await turns_of(node, delete(node, "a", "b"))
        assert sum(turns) == 100
        assert max(turns) <= ITEMS_A_TURN + 1
        assert not list(tmp_path.glob("a-?"))

    with_node(tmp_path, StepClock(), use)


def test_partitions_are_taken_over_a_few_in_each_turn_of_the_loop(tmp_path: Path) -> None:
    with_node(tmp_path, EndlessClock(), lambda node: create(node, {"a": 100}))

    async def run() -> list[int]:
        node = node_in(tmp_path, StepClock())
        starting = asyncio.ensure_future(node.start())
        turns, before = [], 0
        while not starting.done():
            await asyncio.sleep(0)
            found = len(node.broker.partitions) if hasattr(node, "broker") else 0
            turns.append(found - before)
            before = found
        starting.result()
        await node.stop()
        return turns

    turns = asyncio.run(run())
    assert (sum(turns), max(turns) <= ITEMS_A_TURN + 1) == (100, True)


@pytest.mark.parametrize("seed", range(5))
def test_changes_in_pieces_end_where_changes_at_once_do(tmp_path: Path, seed: int) -> None:
    """Creations, growth and deletions under way at the same time, names used again among them."""

    async def use(node: Node) -> Any:
        rng, sizes = random.Random(seed), dict[str, int]()
        under_way = []
        for _ in range(30):
            name = rng.choice("abcd")
            if name not in sizes:
                sizes[name] = rng.randrange(1, 20)
                change: Any = create(node, {name: sizes[name]})
            elif rng.random() < 0.5:
                del sizes[name]
                change = delete(node, name)
            else:
                sizes[name] += rng.randrange(1, 10)
                change = grow(node, name, sizes[name])
            under_way.append(asyncio.ensure_future(change))
            await asyncio.sleep(0)  # it is decided; the next one may come before it is applied
        for task in under_way:
            await task
        topics = node.broker.image.topics.by_name
        assert {name: len(topic.partitions) for name, topic in topics.items()} == sizes
        found = {}
        for partition in node.broker.partitions:
            assert partition.topic_id == topics[partition.topic].id
            found[partition.topic, partition.index] = (partition.is_leader, partition.leader_epoch)
        logs = {tuple(where) for where in node.broker.log_dirs.logs}
        return found, logs

    in_pieces = with_node(tmp_path / "pieces", StepClock(), use)
    at_once = with_node(tmp_path / "once", EndlessClock(), use)
    assert in_pieces == at_once
    assert set(in_pieces[0]) == in_pieces[1]
