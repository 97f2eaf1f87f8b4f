"""The loop polls after requests that follow each other quickly, and not longer than allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.runtime import busy_polling as module
from barnabas.runtime.busy_polling import BusyPolling, busy_polling

LIMIT_US = 60
TURN_NS = 1_000


class Loop:
    """Turns of a loop, each of which takes a microsecond."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 1_000_000_000
        self.calls: list[Callable[[], None]] = []
        monkeypatch.setattr(module, "perf_counter_ns", lambda: self.now_ns)
        self.polling = BusyPolling(self.calls.append, LIMIT_US)

    def turns(self, count: int) -> int:
        """The number of turns, of this many, that would not have slept."""
        awake = 0
        for _ in range(count):
            self.now_ns += TURN_NS
            calls, self.calls[:] = list(self.calls), []
            awake += bool(calls)
            for call in calls:
                call()
        return awake

    def request(self, after_us: int) -> None:
        """A request arrives this long after the last response, and takes a while."""
        self.now_ns += after_us * 1000
        came_ns = self.now_ns
        self.now_ns += 20_000
        self.polling.poll_for_next(came_ns)


def test_the_loop_sleeps_after_a_request_that_came_late(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch)
    for _ in range(3):
        loop.request(after_us=LIMIT_US)
        assert loop.turns(10) == 0


def test_the_loop_stays_awake_while_requests_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch)
    loop.request(after_us=500)
    loop.request(after_us=LIMIT_US - 1)
    for _ in range(5):
        assert loop.turns(40) == 40
        loop.request(after_us=0)
    assert len(loop.calls) == 1  # one call a turn, however many requests came


def test_it_gives_up_after_its_limit_and_begins_again_after_a_short_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = Loop(monkeypatch)
    loop.request(after_us=500)
    loop.request(after_us=10)
    assert loop.turns(1000) == LIMIT_US
    loop.request(after_us=0)  # 1,000 us after the last one
    assert loop.turns(10) == 0
    loop.request(after_us=10)
    assert loop.turns(1000) == LIMIT_US


def test_no_polling_where_it_is_off_or_where_there_is_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "processors", lambda: 2)
    assert busy_polling(print, LIMIT_US) is not None
    assert busy_polling(print, 0) is None
    monkeypatch.setattr(module, "processors", lambda: 1)
    assert busy_polling(print, LIMIT_US) is None
