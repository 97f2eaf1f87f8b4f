"""A processor lives over batches in one worker; in another one its timers come back, its fields do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication

from barnabas.plans.interpreter.records import Message
from barnabas.streams import StreamsBuilder, TestDriver
from barnabas.streams.spark import kept_tasks
from barnabas.testing.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


class Remembering:
    """Counts records in a field. The first record cancels the timer of `init`, the record `start` begins
    another one."""

    def init(self, context: Any) -> None:
        self.context, self.seen = context, 0
        self.first = context.schedule(10, "stream", lambda now: self.say("first", now))

    def say(self, name: str, now: int) -> None:
        self.context.forward(Message("timer", f"{name} at {now}", now))

    def tick(self, now: int) -> None:
        self.say("tick", now)

    def process(self, record: Message) -> None:
        self.seen += 1
        self.first.cancel()
        if record.value == "start":
            self.context.schedule(100, "stream", self.tick)
        if record.value == "stop":
            [timer] = self.context.timers
            timer.cancel()
        self.context.forward(record._replace(value=f"{record.value} {self.seen}"))


BATCHES = [("start", 150), ("x", 320), ("stop", 350), ("y", 900)]
EXPECTED = ["start 1", "tick at 150", "x 2", "tick at 320", "stop 3", "y 4"]


def plan(name: str) -> Any:
    builder = StreamsBuilder(name)
    builder.stream(f"{name}-in", value=str).process(Remembering).to(f"{name}-out", key=str, value=str)
    return builder.build()


def run_batches(broker: Broker, folder: Path, name: str, *, moves: bool) -> list[str]:
    with LocalApplication(broker, plan(name), folder) as application:
        application.create(f"{name}-in", f"{name}-out", partitions=1)
        for value, time in BATCHES:
            application.produce(f"{name}-in", [("a", value, time)])
            application.run()
            if moves:
                kept_tasks.clear()  # another worker has none
        return [value for _, value, _ in application.read(f"{name}-out")]


def test_a_processor_keeps_its_fields_and_timers_over_batches(broker: Broker, tmp_path: Path) -> None:
    assert run_batches(broker, tmp_path, "stays", moves=False) == EXPECTED


def test_timers_come_back_in_another_worker(broker: Broker, tmp_path: Path) -> None:
    found = run_batches(broker, tmp_path, "moves", moves=True)
    assert found == ["start 1", "tick at 150", "x 1", "tick at 320", "stop 1", "y 1"]


def test_the_test_driver_shows_both() -> None:
    for moves in (False, True):
        with TestDriver(plan("driven")) as driver:
            given, results = driver.input("driven-in", value=str), driver.output("driven-out", value=str)
            found = []
            for value, time in BATCHES:
                given.pipe("a", value, time)
                found += [message.value for message in results.read()]
                if moves:
                    driver.rebuild()
            timers = [text for text in found if "tick" in text or "first" in text]
            assert timers == ["tick at 150", "tick at 320"]
            assert found[-1] == ("y 1" if moves else "y 4")


def test_a_state_that_another_worker_changed_makes_the_processor_anew(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, plan("changed"), tmp_path) as application:
        application.create("changed-in", "changed-out", partitions=1)
        for number in range(3):
            application.produce("changed-in", [("a", "x", number)])
            if number == 2:
                kept = kept_tasks.take_all()
                application.run()  # as another worker
                kept_tasks.put_all(kept)
                application.produce("changed-in", [("a", "x", number)])
            application.run()
        values = [value for _, value, _ in application.read("changed-out")]
        assert values == ["x 1", "x 2", "x 1", "x 1"]


def test_a_batch_that_failed_leaves_no_processor(broker: Broker, tmp_path: Path) -> None:
    closed: list[int] = []

    class Failing:
        def __init__(self) -> None:
            self.seen = 0

        def process(self, record: Message) -> None:
            self.seen += 1
            if record.value == "bad" and not closed:
                raise ValueError("once")

        def close(self) -> None:
            closed.append(self.seen)

    builder = StreamsBuilder("leaves")
    builder.stream("leaves-in", value=str).process(Failing)
    with LocalApplication(broker, builder.build(), tmp_path) as application:
        application.create("leaves-in", partitions=1)
        application.produce("leaves-in", [("a", "x", 1)])
        application.run()
        application.produce("leaves-in", [("a", "y", 1), ("a", "bad", 2)])
        with pytest.raises(AssertionError, match="once"):
            application.run()
        [state] = (tmp_path / "leaves").glob("*.sqlite")
        assert not kept_tasks.has(state)
        application.run()
        assert kept_tasks.has(state)


def test_facts_of_timers_are_small() -> None:
    with TestDriver(plan("small")) as driver:
        driver.input("small-in", value=str).pipe("a", "start", 150)
        [task] = driver.tasks
        assert json.loads(json.dumps(task.numbers)) == {
            "KSTREAM-PROCESSOR-0000000001 timer 0": 2**62,
            "KSTREAM-PROCESSOR-0000000001 timer 1 of 100 ms by stream calls tick": 200,
        }
