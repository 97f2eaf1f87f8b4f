"""A connector or a task that takes long holds up no other: each place of a worker has its own errand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from barnabas.connect.config import Settings
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.states import State, Target
from barnabas.connect.plugins import ConnectorContext
from connect.fakes import QuietConnector, QuietPlugins, Recorder

CONFIG = {"connector.class": "Quiet", "topic": "t", "tasks.max": "1"}


class Gate:
    """Holds up connectors and tasks named `slow…` until it opens, and notes what went through."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.waiting: list[str] = []
        self.stopped: list[str] = []

    def pass_through(self, name: str) -> None:
        if name.startswith("slow"):
            self.waiting.append(name)
            assert self.opened.wait(30)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    found = Gate()

    def start(self: QuietConnector, settings: Settings, context: ConnectorContext) -> None:
        self.settings, self.context = settings, context
        found.pass_through(context.connector)

    monkeypatch.setattr(QuietConnector, "start", start)
    monkeypatch.setattr(QuietConnector, "stop", lambda self: found.stopped.append(self.context.connector))
    yield found
    found.opened.set()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def running(
    then: Callable[[Herder, Recorder], Coroutine[Any, Any, None]], runner: Recorder | None = None
) -> None:
    async def main() -> None:
        used = runner or Recorder()
        worker = {"task.shutdown.graceful.timeout.ms": "50"}
        herder = Herder(worker, "one:1", QuietPlugins(), used)
        await herder.start()
        try:
            await then(herder, used)
        finally:
            await herder.stop()

    asyncio.run(main())


async def create(herder: Herder, name: str, **more: str) -> None:
    await herder.put(name, {**CONFIG, "name": name, **more}, is_new=True)


def is_running(herder: Herder, name: str) -> bool:
    return all(
        place in herder.statuses and herder.statuses[place].state is State.RUNNING
        for place in ((name, None), (name, 0))
    )


def test_others_start_restart_and_go_while_one_connector_still_starts(gate: Gate) -> None:
    async def then(herder: Herder, runner: Recorder) -> None:
        names = [f"slow{number}" for number in range(40)]  # more than a pool of threads would have
        for name in names:
            await create(herder, name)
        await until(lambda: len(gate.waiting) == len(names))
        await create(herder, "a")
        await until(lambda: is_running(herder, "a"))
        async with asyncio.timeout(30):
            await herder.restart_here("a", None)
            await herder.restart_here("a", 0)
        assert is_running(herder, "a") and runner.starts == 2
        await herder.delete("a")
        await until(lambda: ("a", None) not in herder.statuses and not runner.running)
        gate.opened.set()
        await until(lambda: all(is_running(herder, name) for name in names))

    running(then)


def test_a_connector_that_still_starts_is_stopped_when_it_can_be(gate: Gate) -> None:
    async def then(herder: Herder, runner: Recorder) -> None:
        await create(herder, "slow")
        await until(lambda: gate.waiting == ["slow"])
        await herder.delete("slow")
        await until(lambda: "slow" not in herder.running and ("slow", None) not in herder.statuses)
        assert gate.stopped == []
        gate.opened.set()
        await until(lambda: gate.stopped == ["slow"])
        assert not runner.running

    running(then)


def test_a_new_configuration_replaces_a_start_that_takes_long(gate: Gate) -> None:
    async def then(herder: Herder, runner: Recorder) -> None:
        await create(herder, "slow")
        await until(lambda: gate.waiting == ["slow"])
        await herder.patch("slow", {"number": "2"})
        await until(lambda: gate.waiting == ["slow", "slow"])
        gate.opened.set()
        await until(lambda: is_running(herder, "slow"))
        await until(lambda: gate.stopped == ["slow"])
        await herder.set_target("slow", Target.STOPPED)
        await until(lambda: gate.stopped == ["slow", "slow"])

    running(then)


def test_others_go_on_while_a_task_takes_long_to_stop(gate: Gate) -> None:
    class SlowToStop(Recorder):
        def stop(self, connector: str, task: int) -> None:
            gate.pass_through(connector)
            super().stop(connector, task)

    async def then(herder: Herder, runner: Recorder) -> None:
        gate.opened.set()
        await create(herder, "slow")
        await until(lambda: is_running(herder, "slow"))
        gate.opened.clear()
        gate.waiting.clear()
        await herder.delete("slow")
        await until(lambda: gate.waiting == ["slow"])
        await create(herder, "a")
        await until(lambda: is_running(herder, "a"))
        assert ("slow", 0) in runner.running
        gate.opened.set()
        await until(lambda: ("slow", 0) not in herder.statuses)

    running(then, SlowToStop())


def test_a_connector_of_an_unknown_class_fails_once() -> None:
    async def then(herder: Herder, runner: Recorder) -> None:
        herder.applied("connector-x", {"properties": {"name": "x", "connector.class": "org.example.Gone"}})
        await until(lambda: ("x", None) in herder.statuses)
        first = herder.statuses["x", None]
        herder.wake()
        await herder.settled()
        assert first.state is State.FAILED and herder.statuses["x", None] is first
        await herder.delete("x")
        await until(lambda: ("x", None) not in herder.statuses)

    running(then)
