"""The simulated loop: time jumps, thread work runs inline later, processes pause and end as a whole."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from barnabas.simulation.world.disk import Stopped
from barnabas.simulation.world.loop import Stuck
from barnabas.simulation.world.world import Unexpected, World


@pytest.fixture
def world() -> Iterator[World]:
    with World(1) as world:
        yield world


def test_an_hour_takes_no_time(world: World) -> None:
    async def history() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    started = time.process_time()

    assert world.run(history(), 4000) == pytest.approx(3600)
    assert time.process_time() - started < 60


def test_work_for_threads_is_done_later_and_its_errors_come_back(world: World) -> None:
    order: list[str] = []

    async def history() -> None:
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(None, order.append, "work")
        order.append("loop")
        await work
        order.append("done")
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 // 0)

    world.run(history(), 10)

    assert order == ["loop", "work", "done"]


def test_a_program_that_waits_for_nothing_is_stuck(world: World) -> None:
    async def history() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck):
        world.run(history(), 5)


def test_a_program_that_never_lets_time_go_on_is_stuck(world: World) -> None:
    async def history() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="without time going on"):
        world.run(history(), 5)


def test_an_unhandled_error_ends_the_history(world: World) -> None:
    async def history() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(Unexpected, match="ZeroDivisionError"):
        world.run(history(), 5)


def test_a_paused_process_does_nothing_and_catches_up(world: World) -> None:
    process = world.process("host")
    beats: list[float] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(1)
            beats.append(asyncio.get_running_loop().time())

    async def history() -> None:
        process.spawn(beat())
        await asyncio.sleep(2.5)
        process.pause()
        await asyncio.sleep(5)
        process.resume()
        await asyncio.sleep(1.5)

    world.run(history(), 60)

    assert beats == pytest.approx([1, 2, 7.5, 8.5])


def test_a_killed_process_is_unwound_before_anything_else_happens(world: World) -> None:
    process = world.process("host")
    heard: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            heard.append("unwound")

    async def history() -> None:
        task = process.spawn(work())
        process.context.copy().run(asyncio.get_running_loop().call_later, 50, heard.append, "late")
        await asyncio.sleep(1)
        asyncio.get_running_loop().call_soon(process.end)
        asyncio.get_running_loop().call_soon(heard.append, "after")
        await asyncio.wait([task])
        assert task.cancelled()
        await asyncio.sleep(200)

    world.run(history(), 300)

    assert heard == ["unwound", "after"]


def test_a_dead_process_may_fail_as_it_likes(world: World) -> None:
    process = world.process("host")

    async def work() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            raise Stopped

    async def history() -> None:
        process.spawn(work())
        await asyncio.sleep(1)
        asyncio.get_running_loop().call_soon(process.end)
        await asyncio.sleep(1)

    world.run(history(), 10)

    assert not world.problems
