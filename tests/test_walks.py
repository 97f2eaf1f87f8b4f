"""The walks in docs/ARCHITECTURE.md are true: real requests call their functions, in their order."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.streams.spark.local import LocalApplication

import barnabas
from barnabas.connect.plugins import Plugins
from barnabas.connect.tasks.runner import TaskRunner
from barnabas.sql.testing.driver import SqlTestDriver
from barnabas.streams import StreamsBuilder
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

ROOT = Path(__file__).parents[1]
PACKAGE = str(Path(barnabas.__file__).parent) + "/"
TIMEOUT_S = 30.0


class Call(NamedTuple):
    module: str
    function: str


def walks() -> dict[str, list[Call]]:
    """By name: `### Walk: a produce` and the lines below that name a module, a function and a text."""
    found = {}
    for section in (ROOT / "docs" / "ARCHITECTURE.md").read_text().split("### Walk: ")[1:]:
        name, _, text = section.partition("\n")
        lines = re.findall(r"^    (\S+\.py) +([\w.]+)  +\S", text.partition("\n#")[0], re.MULTILINE)
        found[name] = [Call(*line) for line in lines]
    return found


WALKS = walks()


class Recorder:
    """Every call of a function of ours, while it is recording, in the threads started after it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._is_recording = False

    @contextlib.contextmanager
    def threads(self) -> Iterator[None]:
        threading.setprofile(self._called)
        try:
            yield
        finally:
            threading.setprofile(None)

    def record(self, act: Callable[[], object]) -> list[Call]:
        self.calls = []
        self._is_recording = True
        act()
        self._is_recording = False
        return self.calls

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if self._is_recording and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            code = frame.f_code
            self.calls.append(Call(code.co_filename.removeprefix(PACKAGE), code.co_qualname))


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Call]]:
    """What was called, by the name of the walk."""
    if sys.version_info >= (3, 12):
        pytest.skip("a profiler sees other calls than the ones of Python 3.11")
    recorder = Recorder()
    calls = {}
    with recorder.threads(), Broker() as broker:
        bootstrap = {"bootstrap.servers": broker.bootstrap}
        admin = AdminClient(bootstrap)
        topics = [NewTopic("walked", 1)]

        def create() -> None:
            admin.create_topics(topics)["walked"].result(TIMEOUT_S)

        calls["a created topic"] = recorder.record(create)
        producer = Producer({**bootstrap, "acks": "all"})

        def produce() -> None:
            producer.produce("walked", b"value")
            assert producer.flush(TIMEOUT_S) == 0

        produce()
        calls["a produce"] = recorder.record(produce)
        settings = {"group.id": "walkers", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer({**bootstrap, **settings})

        def join_and_fetch() -> None:
            consumer.subscribe(["walked"])
            assert consumer.poll(TIMEOUT_S) is not None

        calls["a join"] = calls["a fetch"] = recorder.record(join_and_fetch)
        calls["a commit"] = recorder.record(lambda: consumer.commit(asynchronous=False))
        consumer.close()
    return calls


def count_words(recorder: Recorder, broker: Broker, folder: Path) -> list[Call]:
    builder = StreamsBuilder("walking")
    words = builder.stream("words", key=str, value=str)
    words.group_by_key().count().to_stream().to("counts", key=str, value=int)
    with LocalApplication(broker, builder.build(), folder) as application:
        application.create("words", "counts", partitions=1)
        application.produce("words", [("a", "x", 1)])
        return recorder.record(lambda: in_a_thread(application.run))


def read_a_file(recorder: Recorder, broker: Broker, folder: Path) -> list[Call]:
    (folder / "lines.txt").write_text("one\n")
    offsets = folder / "offsets"
    text = "org.apache.kafka.connect.storage.StringConverter"
    worker = {
        "bootstrap.servers": broker.bootstrap,
        "offset.storage.file.filename": str(offsets),
        "offset.flush.interval.ms": "50",
        "key.converter": text,
        "value.converter": text,
    }
    connector = {"connector.class": "FileStreamSource", "file": str(folder / "lines.txt"), "topic": "lines"}
    runner = TaskRunner(worker, Plugins([]))

    def read() -> None:
        runner.start("lines", 0, {"name": "lines", **connector}, "STARTED", lambda *state: None)
        wait_until(offsets.exists)
        runner.stop("lines", 0)

    return recorder.record(read)


def count_clicks() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM clicks (user STRING KEY, page STRING)"
        " WITH (KAFKA_TOPIC='clicks', PARTITIONS=1, VALUE_FORMAT='JSON');",
        "CREATE TABLE pages AS SELECT page, COUNT(*) AS n FROM clicks GROUP BY page;",
    )
    driver.pipe("CLICKS", {"USER": "ann", "PAGE": "home"}, timestamp=1000)
    assert driver.table("PAGES") == {("home",): {"N": 1}}


def in_a_thread(act: Callable[[], object]) -> None:
    """Profilers see threads that were started after them, not the one that set them."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


@pytest.fixture(scope="module")
def recorded_above(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Call]]:
    """The same for what stands on a broker."""
    if sys.version_info >= (3, 12):
        pytest.skip("a profiler sees other calls than the ones of Python 3.11")
    recorder = Recorder()
    with recorder.threads(), Broker() as broker:
        return {
            "a SQL statement": recorder.record(lambda: in_a_thread(count_clicks)),
            "a batch of Streams": count_words(recorder, broker, tmp_path_factory.mktemp("streams")),
            "a record of a Connect source": read_a_file(recorder, broker, tmp_path_factory.mktemp("connect")),
        }


ON_A_BROKER = {"a produce", "a fetch", "a join", "a created topic", "a commit"}
ABOVE = {"a SQL statement", "a batch of Streams", "a record of a Connect source"}


def test_the_document_has_the_walks() -> None:
    assert set(WALKS) == ON_A_BROKER | ABOVE
    assert all(len(walk) > 5 for walk in WALKS.values())


@pytest.mark.parametrize("name", sorted(ON_A_BROKER))
def test_requests_take_the_walk(name: str, recorded: dict[str, list[Call]]) -> None:
    assert_in_order(name, recorded[name])


@pytest.mark.parametrize("name", sorted(ABOVE))
def test_what_stands_on_a_broker_takes_the_walk(name: str, recorded_above: dict[str, list[Call]]) -> None:
    assert_in_order(name, recorded_above[name])


def assert_in_order(name: str, recorded: list[Call]) -> None:
    calls = iter(recorded)
    for step in WALKS[name]:
        assert step in calls, f"{step} is not called there: {name}"
