"""Long work in pieces: how much of it falls into one turn of the loop, in which order, and how it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from itertools import count
from typing import Any, ParamSpec

import pytest

from barnabas.runtime.pieces import PIECE_S, Pieces, Steps, WaitingSteps, at_once

STEPS_A_PIECE = 4
P = ParamSpec("P")


def on_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def clock() -> Iterator[float]:
    """Each look takes a quarter of a piece (and a little, for what floats lose), as a step would."""
    return (number * PIECE_S * 1.01 / STEPS_A_PIECE for number in count())


def pieces() -> Pieces:
    looks = clock()
    return Pieces(lambda: next(looks))


def items(number: int, done: list[int], result: str = "done") -> Steps[str]:
    for item in range(number):
        done.append(item)
        yield
    return result


async def turns_of(work_done: list[int], until: int) -> list[int]:
    """How many items each turn of the loop brought."""
    found = []
    before = len(work_done)
    while before < until:
        await asyncio.sleep(0)
        found.append(len(work_done) - before)
        before = len(work_done)
    return found


@on_a_loop
async def test_small_work_is_done_at_once() -> None:
    done: list[int] = []
    work = pieces().begin(items(3, done))
    assert (work.is_done, work.result, done) == (True, "done", [0, 1, 2])


@on_a_loop
async def test_large_work_takes_many_turns_of_a_few_items() -> None:
    done: list[int] = []
    work = pieces().begin(items(100, done))
    assert len(done) <= STEPS_A_PIECE
    turns = await turns_of(done, 100)
    assert len(turns) >= 100 // STEPS_A_PIECE - 1
    assert max(turns) <= STEPS_A_PIECE
    assert await work.wait() == "done"


@on_a_loop
async def test_all_work_of_a_node_shares_one_piece_a_turn() -> None:
    node, done = pieces(), [list[int]() for _ in range(10)]
    for each in done:
        node.begin(items(20, each))
    begun = sum(map(len, done))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sum(map(len, done)) - begun <= 2 * STEPS_A_PIECE
    while node.under_way:
        await asyncio.sleep(0)
    assert all(len(each) == 20 for each in done)


@on_a_loop
async def test_works_take_turns() -> None:
    node = pieces()
    long: list[int] = []
    short: list[int] = []
    node.begin(items(1000, long))
    await node.run(items(8, short))
    assert len(short) == 8
    assert len(long) < 50


@on_a_loop
async def test_a_failure_is_raised_in_the_waiting_task() -> None:
    def steps() -> Steps[None]:
        for _ in range(10):
            yield
        raise ValueError("no")

    node = pieces()
    with pytest.raises(ValueError, match="no"):
        await node.run(steps())
    assert not node.under_way


@on_a_loop
async def test_a_failure_without_a_waiting_task_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def steps() -> Steps[None]:
        for _ in range(10):
            yield
        raise ValueError("no")

    node = pieces()
    with caplog.at_level(logging.ERROR):
        node.begin(steps())
        while node.under_way:
            await asyncio.sleep(0)
    assert "Background work failed" in caplog.text


@on_a_loop
async def test_a_cancelled_caller_leaves_no_work_behind() -> None:
    node, done = pieces(), list[int]()
    task = asyncio.ensure_future(node.run(items(100, done)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while node.under_way:
        await asyncio.sleep(0)
    assert len(done) < 100


@on_a_loop
async def test_work_can_be_finished_at_once_when_there_is_no_time_to_wait() -> None:
    node, done = pieces(), list[int]()
    work = node.begin(items(100, done))
    assert (work.finish(), len(done)) == ("done", 100)
    assert at_once(items(3, [])) == "done"


@on_a_loop
async def test_other_work_runs_while_steps_wait_for_a_future() -> None:
    node, done = pieces(), list[str]()
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def waiting() -> WaitingSteps[str]:
        done.append("begun")
        yield future
        done.append(future.result())
        yield None
        return "over"

    work = node.begin(waiting())
    assert await node.run(items(20, [])) == "done"
    assert done == ["begun"]
    future.set_result("went on")
    assert await work.wait() == "over"
    assert done == ["begun", "went on"]


@on_a_loop
async def test_a_future_that_fails_is_the_steps_own_matter() -> None:
    node = pieces()
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def waiting() -> WaitingSteps[str]:
        yield future
        try:
            return future.result()
        except OSError:
            return "mended"

    work = node.begin(waiting())
    future.set_exception(OSError())
    assert await work.wait() == "mended"
