"""Connectors whose tasks cannot be configured at the moment go on trying; their own errors fail them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from barnabas.connect.herder.errors import Refused
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.states import State, Target, TaskId
from connect.fakes import QuietConnector, QuietPlugins, Recorder

CONFIG = {"name": "a", "connector.class": "Quiet", "topic": "t", "tasks.max": "2"}


class Refusing(Herder):
    """A worker whose leader refuses the first requests."""

    refusals = 0

    async def publish_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Refused(409, "a rebalance is underway")
        await super().publish_tasks(name, configs)


class Following(Refusing):
    def publishes_here(self) -> bool:
        return False


def running(kind: type[Refusing], then: Callable[[Refusing, Recorder], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        runner = Recorder()
        herder = kind({}, "one:1", QuietPlugins(), runner)
        herder.refusals = 2
        await herder.start()
        try:
            await herder.put("a", CONFIG, is_new=True)
            async with asyncio.timeout(30):
                await then(herder, runner)
        finally:
            await herder.stop()

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", [Refusing, Following])
def test_tasks_that_nobody_takes_at_the_moment_are_published_later(
    kind: type[Refusing], caplog: pytest.LogCaptureFixture
) -> None:
    async def then(herder: Refusing, runner: Recorder) -> None:
        await until(lambda: sorted(runner.running) == [("a", 0), ("a", 1)])
        assert herder.statuses["a", None].state is State.RUNNING

    with caplog.at_level(logging.WARNING):
        running(kind, then)
    assert "its tasks are not configured" in caplog.text and "a rebalance is underway" in caplog.text


def test_a_connector_that_asks_for_other_tasks_gets_them_later(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [1]
    monkeypatch.setattr(
        QuietConnector,
        "task_configs",
        lambda self, most: [{**self.context.config, "number": str(each)} for each in range(counts[0])],
    )

    async def then(herder: Refusing, runner: Recorder) -> None:
        await until(lambda: sorted(runner.running) == [("a", 0)])
        herder.refusals, counts[0] = 2, 2
        herder.running["a"]._connector.context.reconfigure()
        await until(lambda: sorted(runner.running) == [("a", 0), ("a", 1)])

    running(Refusing, then)


def test_a_connector_that_says_that_it_cannot_go_on_has_failed() -> None:
    async def then(herder: Refusing, runner: Recorder) -> None:
        await until(lambda: ("a", None) in herder.statuses)
        herder.running["a"]._connector.context.failed(ValueError("the system is gone"))
        await until(lambda: herder.statuses["a", None].state is State.FAILED)
        assert "the system is gone" in (herder.statuses["a", None].trace or "")

    running(Refusing, then)


@pytest.mark.parametrize("kind", [Refusing, Following])
def test_errors_of_its_own_fail_a_connector(kind: type[Refusing], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: QuietConnector, most: int) -> list[dict[str, str]]:
        raise ValueError("no tables")

    monkeypatch.setattr(QuietConnector, "task_configs", fails)

    async def then(herder: Refusing, runner: Recorder) -> None:
        await until(lambda: ("a", None) in herder.statuses)
        assert herder.statuses["a", None].state is State.FAILED
        assert "no tables" in (herder.statuses["a", None].trace or "")

    running(kind, then)


def test_tasks_that_may_not_start_at_the_moment_start_later() -> None:
    class Fencing(Refusing):
        async def before_task(self, task: TaskId) -> None:
            if self.refusals:
                self.refusals -= 1
                raise Refused(409, "a rebalance is underway")

        async def publish_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
            await Herder.publish_tasks(self, name, configs)

    async def then(herder: Refusing, runner: Recorder) -> None:
        await until(lambda: sorted(runner.running) == [("a", 0), ("a", 1)])
        assert herder.refusals == 0

    running(Fencing, then)


def test_tasks_are_removed_later_if_nobody_takes_that_at_the_moment() -> None:
    async def then(herder: Refusing, runner: Recorder) -> None:
        await until(lambda: sorted(runner.running) == [("a", 0), ("a", 1)])
        herder.refusals = 2
        await herder.set_target("a", Target.STOPPED)
        await until(lambda: not herder.state.tasks["a"])

    running(Refusing, then)
