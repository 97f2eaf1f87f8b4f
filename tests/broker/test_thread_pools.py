"""Threads that wait for one thing do not keep others from theirs: a real broker whose disk hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.node import Node
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.runtime.threads import BACKGROUND_THREADS, READ_THREADS, SYNC_THREADS
from barnabas.storage.logs.log import Log
from barnabas.storage.logs.syncing import SyncWork
from barnabas.testing import Broker

from .conversation import Conversation, batch, fetch, produce, records_of

METADATA = "__cluster_metadata"


class Gate:
    """Calls that wait until the test lets them go on, and how many do."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._waiting = threading.Semaphore(0)

    def wait(self) -> None:
        self._waiting.release()
        assert self._open.wait(60)

    def until_waiting(self, count: int) -> None:
        for _ in range(count):
            assert self._waiting.acquire(timeout=60)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Those that were started."""
    started: list[Node] = []
    start = Node.start

    async def noted(node: Node) -> None:
        started.append(node)
        await start(node)

    monkeypatch.setattr(Node, "start", noted)
    return started


@pytest.fixture
def broker(nodes: list[Node]) -> Iterator[Broker]:
    """With cold segments in one topic, and another whose records are synced one by one."""
    with Broker(overrides={"log.initial.task.delay.ms": 86_400_000}) as broker:
        broker.create_topic("cold", configs={"segment.bytes": "1048576"})
        broker.create_topic("synced", configs={"flush.messages": "1"})
        with Conversation(broker) as talk:
            for _ in range(30):
                talk.ask(*produce("cold", batch(b"x" * 100_000)))
        yield broker


def create(name: str) -> tuple[CreateTopicsRequest, int]:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7


def goes_on(broker: Broker, *, reads: bool = True, syncs: bool = True) -> None:
    """Metadata is written, records are synced, cold segments are read."""
    with Conversation(broker) as talk:
        assert talk.ask(*create("new")).topics[0].error_code == ErrorCode.NONE
        if syncs:
            answer = talk.ask(*produce("synced", batch(b"1")))
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        if reads:
            assert records_of(talk.ask(*fetch("cold", 0)))


def test_consumers_whose_reads_hang_stop_neither_metadata_nor_syncs(
    broker: Broker, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = Log.warm

    def hang(log: Log, *arguments: Any) -> None:
        gate.wait()
        warm(log, *arguments)

    monkeypatch.setattr(Log, "warm", hang)
    consumers = [Conversation(broker) for _ in range(2 * READ_THREADS)]
    for consumer in consumers:
        consumer.send(fetch("cold", 0))
    gate.until_waiting(READ_THREADS)

    goes_on(broker, reads=False)

    gate.open()
    for consumer in consumers:
        with consumer:
            assert records_of(consumer.receive())


def test_syncs_that_hang_stop_neither_metadata_nor_reads(
    broker: Broker, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(SYNC_THREADS):
        broker.create_topic(f"slow-{number}", configs={"flush.messages": "1"})
    run = SyncWork.run

    def hang(work: SyncWork) -> None:
        if "slow-" in work.directory:
            gate.wait()
        run(work)

    monkeypatch.setattr(SyncWork, "run", hang)
    producers = [Conversation(broker) for _ in range(SYNC_THREADS)]
    for number, producer in enumerate(producers):
        producer.send(produce(f"slow-{number}", batch(b"1")))
        gate.until_waiting(1)

    goes_on(broker, syncs=False)

    gate.open()
    for producer in producers:
        with producer:
            assert producer.receive().responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_background_work_that_hangs_does_not_delay_requests(
    broker: Broker, nodes: list[Node], gate: Gate
) -> None:
    node = nodes[0]
    for _ in range(2 * BACKGROUND_THREADS):
        node.broker.loop.call_soon_threadsafe(node.broker.threads.run, gate.wait)
    gate.until_waiting(BACKGROUND_THREADS)

    goes_on(broker)


def test_the_metadata_log_waits_for_no_other_log(
    broker: Broker, nodes: list[Node], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else hangs at once."""
    run = SyncWork.run

    def hang(work: SyncWork) -> None:
        if METADATA not in work.directory:
            gate.wait()
        run(work)

    monkeypatch.setattr(SyncWork, "run", hang)
    monkeypatch.setattr(Log, "warm", lambda *_: gate.wait())
    node = nodes[0]
    threads = node.broker.threads
    for pool in (threads.reads, threads.background, threads.syncs):
        for _ in range(20):
            node.broker.loop.call_soon_threadsafe(pool.run, gate.wait)

    goes_on(broker, reads=False, syncs=False)
