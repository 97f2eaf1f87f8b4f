"""Rebalances of sinks that commit less than they were given: each record is written once, none is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.config import Settings
from barnabas.connect.data import Records
from barnabas.connect.plugins import Plugins, RetriableError, SinkContext, SinkTask
from barnabas.connect.tasks.chain import Chain
from barnabas.connect.tasks.errors import ErrorHandler, ErrorSettings
from barnabas.connect.tasks.polled import Polled
from barnabas.connect.tasks.progress import Progress
from barnabas.connect.tasks.raw_records import RawRecords
from barnabas.connect.tasks.runner import TaskRunner
from barnabas.connect.tasks.sink_loop import SinkLoop
from barnabas.testing.broker import Broker
from connect.tasks.parts import States, runner, until

WHERE = TopicPartition("t", 0)
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
GROUP = 30  # records of a file
SOON = {"consumer.override.metadata.max.age.ms": "200", "consumer.override.heartbeat.interval.ms": "200"}


@pytest.fixture
def tasks(barnabas_broker: Broker, tmp_path: Path) -> Iterator[TaskRunner]:
    made = runner(barnabas_broker.bootstrap, tmp_path)
    yield made
    made.stop_all()


def folder_sink(topic: str, folder: Path) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.connect.hdfs3.Hdfs3SinkConnector", "name": topic, "topics": topic,
        "hdfs.url": str(folder), "format.class": "StringFormat", "flush.size": str(GROUP),
        "value.converter": "org.apache.kafka.connect.storage.StringConverter", **SOON,
    }  # fmt: skip


def write(bootstrap: str, topic: str, partitions: int, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for n in numbers:
        producer.produce(topic, str(n).encode(), partition=n % partitions)
    assert producer.flush(30) == 0


def ids(folder: Path) -> list[int]:
    return sorted(int(line) for each in folder.rglob("*.txt") for line in each.read_text().splitlines())


class OneMember:
    """A consumer of one partition."""

    def __init__(self) -> None:
        self.assignment = (WHERE,)
        self.losses = 0
        self.must_release = False
        self.batches: list[list[Polled]] = []
        self.sought: dict[TopicPartition, int] = {}

    def poll(self, timeout_ms: float) -> list[Polled]:
        return self.batches.pop(0) if self.batches else []

    def seek(self, offsets: dict[TopicPartition, int]) -> None:
        self.sought |= offsets

    def release(self) -> None:
        self.must_release = False

    def position(self, partition: TopicPartition) -> int | None:
        return None

    def commit(self, offsets: dict[TopicPartition, int], timeout_s: float) -> None:
        pass

    def set_paused(self, partitions: list[TopicPartition], *, is_paused: bool) -> None:
        pass

    def committed(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {}

    def made_anew(self) -> list[TopicPartition]:
        return []

    def ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {}


class Noting(SinkTask):
    def __init__(self, then: Callable[[str], None]) -> None:
        self.seen: list[str] = []
        self._then = then

    def _note(self, what: str) -> None:
        self.seen.append(what)
        self._then(what)

    def start(self, context: SinkContext) -> None:
        pass

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        self._note("open")

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        self._note("close")

    def put(self, records: Records) -> None:
        self._note(f"put {records.offsets.to_pylist()}")


def loop_of(task: SinkTask, consumer: OneMember) -> SinkLoop:
    progress = Progress("c", 0, "sink")
    errors = ErrorHandler(ErrorSettings(), progress, Event())
    chain = Chain.of({"key.converter": BYTES, "value.converter": BYTES}, {"name": "c"}, Plugins([]), errors)
    context = SinkContext("c", 0, Settings({}, {}), {}, Event(), progress.report)
    return SinkLoop(task, context, chain, consumer, progress)  # type: ignore[arg-type]


def test_partitions_that_were_lost_and_came_back_are_opened_again() -> None:
    """Another member may have written behind the records that this task still holds."""
    consumer, stopping = OneMember(), Event()

    def then(what: str) -> None:
        if task.seen.count("open") == 2:
            stopping.set()
        consumer.losses = 1

    task = Noting(then)
    loop_of(task, consumer).run(stopping, Event())
    assert task.seen == ["open", "close", "open", "close"]


def test_records_of_a_partition_that_was_not_opened_in_time_come_again() -> None:
    consumer, stopping = OneMember(), Event()
    consumer.batches.append([Polled(WHERE, RawRecords.joined("t", []), 7, 9)])

    def then(what: str) -> None:
        if task.seen == ["open"]:
            consumer.must_release = True
            raise RetriableError("away")
        stopping.set()

    task = Noting(then)
    loop_of(task, consumer).run(stopping, Event())
    assert consumer.sought == {WHERE: 7}


def has_read(tasks: TaskRunner, count: int) -> bool:
    return sum(each.records_out for each in tasks.progress()) >= count


def test_records_of_open_files_come_again_when_another_task_joins(
    tasks: TaskRunner, barnabas_broker: Broker, tmp_path: Path
) -> None:
    topic, folder = "open-files", tmp_path / "files"
    barnabas_broker.create_topic(topic, partitions=2)
    write(barnabas_broker.bootstrap, topic, 2, range(40))  # 20 for each partition: no file is complete
    tasks.start(topic, 0, folder_sink(topic, folder), "STARTED", States())
    until(lambda: has_read(tasks, 40))
    tasks.start(topic, 1, folder_sink(topic, folder), "STARTED", States())
    until(lambda: [each.partitions for each in tasks.progress()] == [1, 1])
    write(barnabas_broker.bootstrap, topic, 2, range(40, 120))
    until(lambda: len(ids(folder)) >= 120)
    assert ids(folder) == list(range(120))


def test_records_of_open_files_come_again_when_a_partition_is_added(
    tasks: TaskRunner, barnabas_broker: Broker, tmp_path: Path
) -> None:
    topic, folder = "more-partitions", tmp_path / "files"
    barnabas_broker.create_topic(topic, partitions=2)
    write(barnabas_broker.bootstrap, topic, 2, range(40))
    tasks.start(topic, 0, folder_sink(topic, folder), "STARTED", States())
    until(lambda: has_read(tasks, 40))
    admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    until(lambda: tasks.progress()[0].partitions == 3)
    write(barnabas_broker.bootstrap, topic, 2, range(40, 120))
    until(lambda: len(ids(folder)) >= 120)
    assert ids(folder) == list(range(120))
