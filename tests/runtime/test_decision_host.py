import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

import pytest

from barnabas.decisions.awaited import AwaitedHost
from barnabas.decisions.commit_waits import CommitFuture, CommitWaits, committed_future
from barnabas.protocol import ErrorCode, KafkaError


@dataclass
class Decision:
    records: Sequence[int]
    reply: str


@dataclass
class Journal:
    """Commits when the test says so."""

    records: list[int] = field(default_factory=list)
    high_watermark: int = 0
    commit_waits: CommitWaits[CommitFuture] = field(default_factory=lambda: CommitWaits("the journal"))
    refuses: KafkaError | None = None

    @property
    def end_offset(self) -> int:
        return len(self.records)

    def append(self, records: Sequence[int]) -> int:
        if self.refuses is not None:
            raise self.refuses
        self.records.extend(records)
        return len(self.records)

    def committed(self, offset: int) -> Awaitable[None] | None:
        if offset <= self.high_watermark:
            return None
        return committed_future(self.commit_waits, offset - 1)

    def commit(self) -> None:
        self.high_watermark = len(self.records)
        self.commit_waits.tell_committed(self.high_watermark)

    def fail(self, error: KafkaError) -> None:
        self.commit_waits.tell_lost(-1, error)


@dataclass
class Sum:
    total: int = 0
    offsets: list[int] = field(default_factory=list)

    def apply(self, records: Sequence[int], first_offset: int) -> None:
        self.total += sum(records)
        self.offsets.append(first_offset)


LOST = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")


async def begun(coroutine: "asyncio.Task[str]") -> None:
    """Let a task run until it waits."""
    await asyncio.sleep(0)
    assert not coroutine.done()


def test_a_reply_comes_when_its_records_are_committed() -> None:
    async def main() -> None:
        journal, machine = Journal(), Sum()
        shard = AwaitedHost(machine, journal)
        task = asyncio.create_task(shard.write(lambda: Decision([1, 2], "done")))
        await begun(task)
        assert machine.total == 3
        journal.commit()
        assert await task == "done"

    asyncio.run(main())


def test_a_decision_sees_earlier_decisions_that_are_not_committed_yet() -> None:
    async def main() -> None:
        journal, machine = Journal(), Sum()
        shard = AwaitedHost(machine, journal)
        first = asyncio.create_task(shard.write(lambda: Decision([5], "first")))
        second = asyncio.create_task(shard.write(lambda: Decision([machine.total], f"saw {machine.total}")))
        await begun(first)
        journal.commit()
        assert await asyncio.gather(first, second) == ["first", "saw 5"]
        assert machine.offsets == [0, 1]

    asyncio.run(main())


def test_a_read_waits_until_what_it_read_is_committed() -> None:
    async def main() -> None:
        journal, machine = Journal(), Sum()
        shard = AwaitedHost(machine, journal)
        assert await shard.read(lambda: "nothing") == "nothing"
        write = asyncio.create_task(shard.write(lambda: Decision([1], "written")))
        await begun(write)
        read = asyncio.create_task(shard.read(lambda: f"total {machine.total}"))
        await begun(read)
        journal.commit()
        assert await read == "total 1"
        await write

    asyncio.run(main())


def test_an_error_waits_until_what_it_depends_on_is_committed() -> None:
    async def main() -> None:
        journal = Journal()
        shard = AwaitedHost(Sum(), journal)

        def refuse() -> Decision:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "there it is")

        write = asyncio.create_task(shard.write(lambda: Decision([1], "written")))
        await begun(write)
        refused = asyncio.create_task(shard.write(refuse))
        await begun(refused)
        journal.commit()
        with pytest.raises(KafkaError, match="there it is"):
            await refused
        assert shard.error is None
        await write

    asyncio.run(main())


def test_records_that_the_journal_refuses_are_not_applied() -> None:
    async def main() -> None:
        journal, machine = Journal(refuses=KafkaError(ErrorCode.POLICY_VIOLATION, "too large")), Sum()
        shard = AwaitedHost(machine, journal)
        with pytest.raises(KafkaError, match="too large"):
            await shard.write(lambda: Decision([1], "never"))
        assert machine.total == 0
        assert shard.error is None

    asyncio.run(main())


def test_when_a_commit_fails_all_decisions_are_refused_and_the_host_is_closed() -> None:
    async def main() -> None:
        journal = Journal()
        shard = AwaitedHost(Sum(), journal)
        tasks = [asyncio.create_task(shard.write(lambda: Decision([1], "never"))) for _ in range(3)]
        await begun(tasks[0])
        journal.fail(LOST)
        assert await asyncio.gather(*tasks, return_exceptions=True) == [LOST] * 3
        with pytest.raises(KafkaError, match="the disk is gone"):
            await shard.write(lambda: Decision([1], "never"))
        with pytest.raises(KafkaError, match="the disk is gone"):
            await shard.read(lambda: "never")

    asyncio.run(main())
