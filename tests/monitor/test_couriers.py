"""Couriers: reporters that fail or hang never hold the node."""

from __future__ import annotations

import threading

import pytest

from barnabas.broker.reporters.courier import BACKOFF_S_MAX, QUEUE_MAX, Courier
from barnabas.testing.waiting import wait_until


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fail() -> None:
    raise OSError("nobody listens")


def test_calls_run_in_order_and_the_last_one_at_the_end() -> None:
    done: list[int] = []
    courier = Courier("test")
    for number in range(QUEUE_MAX):
        wait_until(lambda number=number: courier.send(lambda: done.append(number)))  # type: ignore[misc]
    courier.close(lambda: done.append(99), 10)
    assert done == [*range(QUEUE_MAX), 99]


def test_a_reporter_that_hangs_gets_no_more_than_its_queue() -> None:
    release, begun = threading.Event(), threading.Event()
    courier = Courier("test")
    courier.send(lambda: (begun.set(), release.wait(), None)[2])
    assert begun.wait(10)
    assert [courier.send(lambda: None) for _ in range(QUEUE_MAX + 3)] == [True] * QUEUE_MAX + [False] * 3
    assert courier.dropped == 3
    release.set()
    courier.close(None, 10)
    assert courier.done == QUEUE_MAX + 1


def test_failures_double_the_pause_up_to_a_minute_and_log_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    courier = Courier("test", now_s=clock)
    pauses = []
    for failures in range(1, 10):
        assert courier.send(fail)
        wait_until(lambda failures=failures: courier.failed == failures)  # type: ignore[misc]
        before = clock.now
        while not courier.send(lambda: None):
            clock.now += 1
            assert clock.now - before <= BACKOFF_S_MAX
        pauses.append(clock.now - before)
        wait_until(lambda: courier.done == 1)
        courier.done = 0
        courier._backoff_s = pauses[-1]  # as if it had failed again at once
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    lines = [each for each in caplog.records if "nobody listens" in each.getMessage()]
    assert len(lines) == 1 + int(sum(pauses[:-1]) // 60)
    courier.close(None, 10)
