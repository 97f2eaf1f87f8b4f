"""The walks in docs/ARCHITECTURE.md are true: real requests call their functions, in their order."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

import barnabas
from barnabas.testing import Broker

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


def test_the_document_has_the_walks() -> None:
    assert set(WALKS) == {"a produce", "a fetch", "a join", "a created topic", "a commit"}
    assert all(len(walk) > 5 for walk in WALKS.values())


@pytest.mark.parametrize("name", sorted(WALKS))
def test_requests_take_the_walk(name: str, recorded: dict[str, list[Call]]) -> None:
    calls = iter(recorded[name])
    for step in WALKS[name]:
        assert step in calls, f"{step} is not called there: {name}"
