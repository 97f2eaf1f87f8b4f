"""Lag that was read too long ago is not told as if it were of now."""

from __future__ import annotations

import asyncio
import logging
import time

from barnabas.client.core.address import parse_bootstrap
from barnabas.monitor.lag_service.cluster_watch import ClusterWatch, WatchSettings
from barnabas.monitor.lag_service.repeating import STALE_S_MIN, TOOK_S_MAX, Jobs
from barnabas.runtime.pieces import Pieces
from barnabas.testing import Broker

INTERVAL_S = 30.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_reading_is_stale_after_three_intervals_and_the_time_that_it_takes() -> None:
    clock = Clock()
    jobs = Jobs("main", logging.getLogger("test"), clock)
    assert jobs.why_stale("ends", INTERVAL_S) == "nothing was read yet"

    async def slow() -> None:
        clock.now_s += 5

    asyncio.run(jobs.run("ends", slow))
    clock.now_s += 3 * (INTERVAL_S + 5)
    assert jobs.why_stale("ends", INTERVAL_S) is None
    clock.now_s += 1
    assert jobs.why_stale("ends", INTERVAL_S) == "the last reading is 106 s old: the next one does not end"

    async def broken() -> None:
        raise TimeoutError("no answer")

    asyncio.run(jobs.run("ends", broken))
    assert jobs.why_stale("ends", INTERVAL_S) == "the last reading is 106 s old: no answer"
    asyncio.run(jobs.run("ends", slow))
    assert jobs.why_stale("ends", INTERVAL_S) is None


def test_short_intervals_have_a_floor_and_long_readings_a_bound() -> None:
    clock = Clock()
    jobs = Jobs("main", logging.getLogger("test"), clock)
    jobs.note_success("commits")
    clock.now_s += STALE_S_MIN
    assert jobs.why_stale("commits", 0.1) is None
    clock.now_s += 1
    assert jobs.why_stale("commits", 0.1) is not None
    jobs.note_success("commits", took_s=3_600)
    clock.now_s += 3 * (0.1 + TOOK_S_MAX) + 1
    assert jobs.why_stale("commits", 0.1) is not None


def test_a_watch_whose_cluster_is_gone_is_not_ready_any_more() -> None:
    async def until(is_so: object, watch: ClusterWatch) -> None:
        async with asyncio.timeout(30):
            while not is_so(watch.why_not_ready()):  # type: ignore[operator]
                await asyncio.sleep(0.05)

    async def use(broker: Broker) -> None:
        settings = WatchSettings(
            "main", tuple(parse_bootstrap(broker.bootstrap)), offset_refresh_s=0.2, commits_poll_s=0.2
        )
        watch = ClusterWatch(settings, Pieces(time.perf_counter))
        watch.start()
        try:
            await until(lambda reason: reason is None, watch)
            await asyncio.to_thread(broker.stop)
            ahead_s = 4 * settings.groups_refresh_s
            watch.jobs.now_s = lambda: time.monotonic() + ahead_s
            await until(lambda reason: reason is not None and "s old" in reason, watch)
        finally:
            await watch.stop()

    with Broker() as broker:
        broker.create_topic("orders")
        asyncio.run(use(broker))
