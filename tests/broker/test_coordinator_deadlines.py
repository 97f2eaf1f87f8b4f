"""The timer of a coordinator: calls at deadlines, and deadlines when the clock is set."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.coordinators.deadlines import RETRY_MS, Deadlines
from barnabas.runtime.unexpected import UnexpectedErrors

START_MS = 1_700_000_000_000


class Host:
    """A shard with one deadline; when it is called too early, it arms the timer again."""

    def __init__(self) -> None:
        self.armed_ms: int | None = None
        self.shard = self
        self.partition = "shard-0"
        self.deadline_ms: int | None = None
        self.rang_ms: list[int] = []
        self.deadlines: Deadlines
        self.steady: World

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms

    def on_clock_set(self, by_ms: int) -> None:
        if self.deadline_ms is not None:
            self.deadline_ms += by_ms

    def on_timer(self, now_ms: int) -> None:
        if self.deadline_ms is not None and self.deadline_ms <= now_ms:
            self.deadline_ms = None
            self.rang_ms.append(self.steady.steady_ms)
        self.deadlines.arm(self)  # type: ignore[arg-type]


class World:
    """A loop whose time the test advances, and a wall clock that the test sets."""

    def __init__(self) -> None:
        self.steady_ms = 0
        self.set_by_ms = 0
        self.timers: list[Any] = []
        clock = SimpleNamespace(
            now_ms=lambda: START_MS + self.steady_ms + self.set_by_ms, steady_ms=lambda: self.steady_ms
        )
        loop = SimpleNamespace(call_later=self._call_later, time=lambda: self.steady_ms / 1000)
        self.unexpected = UnexpectedErrors()
        broker: Any = SimpleNamespace(clock=clock, loop=loop, unexpected=self.unexpected)
        self.deadlines = Deadlines(broker, lambda host: True)
        self.host = Host()
        self.host.deadlines, self.host.steady = self.deadlines, self

    def _call_later(self, delay: float, call: Any) -> Any:
        timer = SimpleNamespace(at_ms=self.steady_ms + round(delay * 1000), call=call)
        timer.cancel = lambda: self.timers.remove(timer) if timer in self.timers else None
        self.timers.append(timer)
        return timer

    def due_in(self, ms: int) -> None:
        """Set the shard's deadline, relative to now."""
        self.host.deadline_ms = self.deadlines.now_ms() + ms
        self.deadlines.arm(self.host)  # type: ignore[arg-type]

    def pass_ms(self, ms: int) -> None:
        end_ms = self.steady_ms + ms
        while due := [timer for timer in self.timers if timer.at_ms <= end_ms]:
            first = min(due, key=lambda timer: timer.at_ms)
            self.timers.remove(first)
            self.steady_ms = max(self.steady_ms, first.at_ms)
            first.call()
        self.steady_ms = end_ms


@pytest.fixture
def world() -> World:
    return World()


def test_a_shard_is_called_at_its_deadline(world: World) -> None:
    world.due_in(500)
    world.pass_ms(499)
    assert world.host.rang_ms == []
    world.pass_ms(1)
    assert world.host.rang_ms == [500]


@pytest.mark.parametrize("by_ms", [-40_000, 40_000])
def test_a_clock_that_is_set_moves_deadlines_once(world: World, by_ms: int) -> None:
    world.due_in(6000)
    world.due_in(500)
    world.host.deadline_ms = START_MS + 6000  # a heartbeat moved it again
    world.pass_ms(1000)  # called at 500, too early: the shard waits for the same time twice now
    world.set_by_ms = by_ms
    world.pass_ms(4999)
    assert world.host.rang_ms == []
    world.pass_ms(1)
    assert world.host.rang_ms == [6000]


@pytest.mark.parametrize("by_ms", [-40_000, 40_000])
def test_a_clock_that_is_set_is_noticed_when_a_deadline_is_made(world: World, by_ms: int) -> None:
    world.due_in(6000)
    world.pass_ms(10)
    world.set_by_ms = by_ms
    world.due_in(500)
    world.pass_ms(499)
    assert world.host.rang_ms == []
    world.pass_ms(1)
    assert world.host.rang_ms == [510]


def test_a_paused_process_reads_its_sockets_before_sessions_expire(world: World) -> None:
    world.due_in(500)
    world.steady_ms = 3000
    world.pass_ms(0)
    assert world.host.rang_ms == []
    world.pass_ms(50)
    assert world.host.rang_ms == [3050]


def test_a_shard_that_fails_at_its_deadline_is_called_again_and_others_are_called(world: World) -> None:
    failing = Host()
    failing.deadlines, failing.steady = world.deadlines, world
    whole, failing.on_timer = failing.on_timer, lambda now_ms: 1 / 0  # type: ignore[assignment, method-assign, return-value]
    failing.deadline_ms = world.deadlines.now_ms() + 400
    world.deadlines.arm(failing)  # type: ignore[arg-type]
    world.due_in(500)
    world.pass_ms(500)
    assert world.host.rang_ms == [500]
    assert world.unexpected.count == 1
    failing.on_timer = whole  # type: ignore[method-assign]
    world.pass_ms(RETRY_MS)
    assert failing.rang_ms == [400 + RETRY_MS]
