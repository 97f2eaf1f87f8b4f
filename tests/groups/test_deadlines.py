"""Deadlines come in order, cost nothing to move later, and stay bounded."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.basics.deadlines import Deadlines, Timer


class Named(Timer):
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def drain(deadlines: Deadlines[Named], now_ms: int) -> list[str]:
    found = []
    while (timer := deadlines.pop_due(now_ms)) is not None:
        found.append(timer.name)
    return found


def test_due_timers_come_in_order() -> None:
    deadlines: Deadlines[Named] = Deadlines()
    for name, at_ms in (("b", 20), ("a", 10), ("c", 30)):
        deadlines.set(Named(name), at_ms)
    soonest = deadlines.next_ms()
    assert soonest is not None and soonest <= 10
    assert drain(deadlines, 20) == ["a", "b"]
    assert deadlines.next_ms() == 30


def test_a_deadline_moved_later_or_earlier_is_kept() -> None:
    deadlines: Deadlines[Named] = Deadlines()
    timer = Named("a")
    deadlines.set(timer, 10)
    deadlines.set(timer, 50)
    assert drain(deadlines, 49) == []
    deadlines.set(timer, 20)
    assert drain(deadlines, 20) == ["a"]
    assert drain(deadlines, 1000) == []


def test_a_cancelled_deadline_is_not_due_and_can_be_set_again() -> None:
    deadlines: Deadlines[Named] = Deadlines()
    timer = Named("a")
    deadlines.set(timer, 10)
    timer.cancel()
    deadlines.set(timer, 30)
    assert drain(deadlines, 29) == []
    assert drain(deadlines, 30) == ["a"]


def test_a_clock_that_is_set_leaves_deadlines_as_far_off_as_they_were() -> None:
    for by_ms in (3_600_000, -3_600_000, 7):
        deadlines: Deadlines[Named] = Deadlines()
        now_ms = 10_000_000
        for name, in_ms in (("soon", 10), ("later", 5_000), ("again", 20), ("never", 30)):
            deadlines.set(timer := Named(name), now_ms + in_ms)
            if name == "again":
                deadlines.set(timer, now_ms + 5)
            elif name == "never":
                timer.cancel()
        assert drain(deadlines, now_ms) == []
        deadlines.shift(by_ms)
        now_ms += by_ms
        assert drain(deadlines, now_ms) == []
        assert drain(deadlines, now_ms + 10) == ["again", "soon"]
        assert drain(deadlines, now_ms + 4_999) == []
        assert drain(deadlines, now_ms + 5_000) == ["later"]
        assert len(deadlines) == 0


def test_a_million_heartbeats_leave_one_entry() -> None:
    deadlines: Deadlines[Named] = Deadlines()
    timer = Named("a")
    for now_ms in range(0, 100_000, 10):
        deadlines.set(timer, now_ms + 10_000)
        assert deadlines.pop_due(now_ms) is None
    assert len(deadlines) == 1


@given(st.integers(0, 2**32))
def test_no_timer_comes_too_early_or_gets_lost(seed: int) -> None:
    rng = random.Random(seed)
    deadlines: Deadlines[Named] = Deadlines()
    timers = [Named(str(number)) for number in range(5)]
    wanted: dict[str, int] = {}
    now_ms = 0
    for _ in range(60):
        timer = rng.choice(timers)
        if rng.random() < 0.6:
            wanted[timer.name] = now_ms + rng.choice((50, 5_000, 200_000)) * rng.randrange(100) // 100
            deadlines.set(timer, wanted[timer.name])
        elif rng.random() < 0.3:
            timer.cancel()
            wanted.pop(timer.name, None)
        now_ms += rng.choice((10, 1_000, 50_000)) * rng.randrange(100) // 100
        soonest = deadlines.next_ms()
        assert soonest is not None or not wanted
        assert not wanted or (soonest is not None and soonest <= min(wanted.values()))
        due = {name for name, at_ms in wanted.items() if at_ms <= now_ms}
        assert set(drain(deadlines, now_ms)) == due
        for name in due:
            del wanted[name]
