"""Decisions that take several turns of the loop run one after the other and take effect at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

import pytest

from barnabas.decisions.awaited import AwaitedHost
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import PIECE_S, Pieces, Steps

from .test_decision_host import Decision, Journal, Sum


def pieces() -> Pieces:
    looks = count()
    return Pieces(lambda: next(looks) * PIECE_S / 2)


def slowly(records: Sequence[int], reply: str, steps: int = 20) -> Steps[Decision]:
    for _ in range(steps):
        yield
    return Decision(records, reply)


class Stage:
    def __init__(self) -> None:
        self.journal, self.machine = Journal(high_watermark=1 << 60), Sum()
        self.prepared: list[int] = []
        self.shard: AwaitedHost[int] = AwaitedHost(self.machine, self.journal, pieces(), self.prepare)

    def prepare(self, records: Sequence[int]) -> Steps[Callable[[], int]]:
        for record in records:
            self.prepared.append(record)
            yield

        def append_and_apply() -> int:
            first = self.journal.end_offset
            end = self.journal.append(records)
            self.machine.apply(records, first)
            return end

        return append_and_apply


def test_a_decision_waits_for_the_slow_one_before_it_and_sees_its_effect() -> None:
    async def main() -> None:
        stage, seen = Stage(), list[int]()

        def look() -> Decision:
            seen.append(stage.machine.total)
            return Decision([1], "second")

        first = asyncio.ensure_future(stage.shard.write(lambda: slowly([5], "first")))
        await asyncio.sleep(0)
        assert stage.shard.is_busy
        second = asyncio.ensure_future(stage.shard.write(look))
        third = asyncio.ensure_future(stage.shard.write(look))
        assert [await first, await second, await third] == ["first", "second", "second"]
        assert seen == [5, 6]
        assert not stage.shard.is_busy

    asyncio.run(main())


def test_many_records_are_prepared_in_pieces_and_take_effect_together() -> None:
    async def main() -> None:
        stage = Stage()
        task = asyncio.ensure_future(stage.shard.write(lambda: Decision(range(1000), "done")))
        turns = []
        while not task.done():
            before = len(stage.prepared)
            await asyncio.sleep(0)
            turns.append(len(stage.prepared) - before)
            assert len(stage.journal.records) in (0, 1000)
        assert await task == "done"
        assert max(turns) <= 3
        assert stage.machine.offsets == [0]

    asyncio.run(main())


def test_a_slow_decision_is_repeated_when_other_records_were_appended() -> None:
    async def main() -> None:
        stage, offsets = Stage(), list[int]()

        def decide() -> Steps[Decision]:
            offsets.append(stage.journal.end_offset)
            return slowly([offsets[-1]], f"at {offsets[-1]}")

        task = asyncio.ensure_future(stage.shard.write(decide))
        await asyncio.sleep(0)
        stage.journal.append([0])
        assert await task == "at 1"
        assert (offsets, stage.journal.records) == ([0, 1], [0, 1])

    asyncio.run(main())


def test_a_slow_decision_of_a_closed_host_writes_nothing() -> None:
    async def main() -> None:
        stage = Stage()
        task = asyncio.ensure_future(stage.shard.write(lambda: slowly([1], "never")))
        waiting = asyncio.ensure_future(stage.shard.write(lambda: Decision([2], "never")))
        await asyncio.sleep(0)
        stage.shard.close(KafkaError(ErrorCode.NOT_CONTROLLER))
        for each in (task, waiting):
            with pytest.raises(KafkaError):
                await each
        assert not stage.journal.records

    asyncio.run(main())


def test_a_cancelled_decision_passes_its_turn_on() -> None:
    async def main() -> None:
        stage = Stage()
        first = asyncio.ensure_future(stage.shard.write(lambda: slowly([1], "first", 200)))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(stage.shard.write(lambda: Decision([2], "second")))
        third = asyncio.ensure_future(stage.shard.write(lambda: Decision([3], "third")))
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        assert await third == "third"
        assert stage.journal.records == [3]
        assert await stage.shard.write(lambda: Decision([4], "fourth")) == "fourth"

    asyncio.run(main())
