"""A batch of a task counts once, wherever its process is killed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from tests.streams.spark.counting import Counted, Counting
from tests.streams.spark.local import KEEPS_OLD_RECORDS

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.protocol import KafkaError
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.producer import BlockingProducer
from barnabas.spark.reading.fetcher import OffsetRange
from barnabas.streams.spark import task_batches
from barnabas.streams.spark.state_files import StateFile
from barnabas.streams.spark.task_batches import run_task
from barnabas.streams.spark.task_outputs import write
from barnabas.streams.spark.task_port import InputRecord, TaskBatch, TaskId, TaskSettings
from barnabas.streams.spark.task_records import merged, read_range
from barnabas.testing.broker import Broker

STEPS = ["init", "settled", "sent", "prepared", "written", "offsets", "committed", "applied"]
KEYS = [b"a", b"b", b"a", b"c", b"a"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


class World:
    """Topics and a task of one test."""

    def __init__(self, broker: Broker, folder: Path, name: str, *, exactly_once: bool) -> None:
        self.name = name
        self.broker = broker
        self.folder = folder
        self.exactly_once = exactly_once
        self.attempts = 0
        self.cluster = WorkerCluster(self.client("reader"))
        for topic in (f"{name}-in", f"{name}-out"):
            run(TopicAdmin(self.cluster).create_topic(NewTopic(topic, 1, 1)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        run(self.cluster.close())

    def client(self, client_id: str) -> ClientSettings:
        return ClientSettings(
            self.broker.bootstrap, f"{self.name}-{client_id}", isolation_level="read_committed"
        )

    def settings(self) -> TaskSettings:
        self.attempts += 1  # another client id: a forked process must not share connections
        client = self.client(str(self.attempts))
        return TaskSettings(self.name, client, str(self.folder), self.exactly_once, wait_ms=20_000)

    def produce(self, keys: list[bytes]) -> None:
        transaction = Transaction(self.cluster)
        run(transaction.init())
        records = [Counted(f"{self.name}-in", key, b"x", 1000 + at) for at, key in enumerate(keys)]
        writer = WorkerCluster(self.client("writer"))
        write(self.settings(), writer, transaction, records)
        run(writer.close())

    def batch(self, stop: int) -> TaskBatch:
        return TaskBatch(TaskId(0, 0), (OffsetRange(f"{self.name}-in", b"", 0, 0, stop),))

    def run(self, stop: int, dies_at: str | None = None) -> int:
        """Run a batch in a process of its own; its exit code."""
        settings = self.settings()
        child = os.fork()
        if child == 0:
            try:
                run_task(
                    settings,
                    self.batch(stop),
                    lambda state, partition: Renamed(Counting(state, partition), f"{self.name}-out"),
                    lambda name: os._exit(9) if name == dies_at else None,
                )
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def results(self) -> list[tuple[bytes | None, bytes | None]]:
        place = TopicPartition(f"{self.name}-out", 0)
        end = self.cluster.offsets({place: -1})[place]
        found = read_range(self.cluster, OffsetRange(place.topic, b"", 0, 0, end), 10_000)
        return [(record.key, record.value) for record in found]

    def committed(self) -> int:
        found = run(Transaction(self.cluster).committed(self.name))
        return found[TopicPartition(f"{self.name}-in", 0)][0]


class Renamed:
    def __init__(self, inner: Counting, topic: str) -> None:
        self._inner, self._topic = inner, topic

    def process(self, topic: str, record: InputRecord) -> list[Counted]:
        return [each._replace(topic=self._topic) for each in self._inner.process(topic, record)]

    def finish(self) -> list[Counted]:
        return []


def counts_of(keys: list[bytes]) -> list[tuple[bytes, bytes]]:
    seen: Counter[bytes] = Counter()
    found = []
    for key in keys:
        seen[key] += 1
        found.append((key, str(seen[key]).encode()))
    return found


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_counts_each_record_once(broker: Broker, tmp_path: Path, step: str) -> None:
    with World(broker, tmp_path, f"once-{step}", exactly_once=True) as world:
        world.produce(KEYS)
        assert world.run(2) == 0
        assert world.run(4, dies_at=step) == 9
        assert world.run(4) == 0
        assert world.run(5) == 0
        assert world.results() == counts_of(KEYS)
        assert world.committed() == 5


@pytest.mark.parametrize("step", ["written", "committed"])
def test_at_least_once_repeats_results_and_never_counts_twice_in_its_state(
    broker: Broker, tmp_path: Path, step: str
) -> None:
    with World(broker, tmp_path, f"least-{step}", exactly_once=False) as world:
        world.produce(KEYS)
        assert world.run(2) == 0
        assert world.run(5, dies_at=step) == 9
        assert world.run(5) == 0
        assert dict(world.results()) == dict(counts_of(KEYS))
        assert world.committed() == 5


def test_records_of_two_partitions_are_taken_by_their_oldest_head() -> None:
    left = [InputRecord(b"l", b"", time) for time in (10, 50, 20)]
    right = [InputRecord(b"r", b"", time) for time in (15, 30, 60)]
    found = [(topic, record.timestamp) for topic, record in merged([("left", left), ("right", right)])]
    assert found == [("left", 10), ("right", 15), ("right", 30), ("left", 50), ("left", 20), ("right", 60)]
    assert list(merged([("left", []), ("right", [])])) == []


def test_offsets_that_a_tool_has_set_have_no_version() -> None:
    place = TopicPartition("t", 0)
    for metadata in ("", "[1]", "{}", '{"barnabas.version":7}'):
        assert task_batches.committed_facts({place: (3, metadata)}) == (None, "")
    offsets = task_batches.with_metadata({place: 3, TopicPartition("u", 0): 4}, "v", "f")
    assert [json.loads(text) for _, text in offsets.values()] == [
        {"barnabas.version": "v", "barnabas.facts": "f"},
        {"barnabas.version": "v"},
    ]
    assert task_batches.committed_facts(offsets) == ("v", "f")


def test_at_least_once_keeps_its_producer_id_until_a_write_fails(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with World(broker, tmp_path, "one-id", exactly_once=False) as world:
        settings = world.settings()

        def make(state: StateFile, partition: int) -> Renamed:
            return Renamed(Counting(state, partition), "one-id-out")

        def flush_and_fail(self: BlockingProducer) -> None:
            flush(self)
            raise ConnectionError("the response is lost")

        flush = BlockingProducer.flush
        for count in range(1, 4):
            world.produce(KEYS[:1])
            run_task(settings, world.batch(count), make)
        assert len(producer_ids(world)) == 1
        world.produce(KEYS[:1])
        with monkeypatch.context() as patch, pytest.raises(ConnectionError):
            patch.setattr(BlockingProducer, "flush", flush_and_fail)
            run_task(settings, world.batch(4), make)
        run_task(settings, world.batch(4), make)
        assert len(producer_ids(world)) == 2
        assert world.results() == [(b"a", str(count).encode()) for count in (1, 2, 3, 4, 4)]


def producer_ids(world: World) -> set[int]:
    """Producers that have written results."""
    place = TopicPartition(f"{world.name}-out", 0)
    found = run(TransactionAdmin(world.cluster).describe_producers([place]))[place]
    assert not isinstance(found, KafkaError)
    return {each.producer_id for each in found}


def test_a_task_reads_what_came_after_its_job_was_planned(broker: Broker, tmp_path: Path) -> None:
    with World(broker, tmp_path, "late", exactly_once=True) as world:
        world.produce(KEYS)

        def make(state: StateFile, partition: int) -> Renamed:
            return Renamed(Counting(state, partition), "late-out")

        for records_max, position in ((0, 1), (3, 4), (100, 5)):
            batch = replace(world.batch(1), records_max=records_max)
            result = run_task(world.settings(), batch, make)
            assert result.positions == {("late-in", 0): position}
        assert world.results() == counts_of(KEYS)
