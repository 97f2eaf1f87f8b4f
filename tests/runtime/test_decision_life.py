"""A decision host refuses what it must: too many waiting requests, and decisions whose state was dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from barnabas.decisions import host as decision_host
from barnabas.decisions.awaited import AwaitedHost
from barnabas.decisions.commit_waits import CommitWaits
from barnabas.decisions.host import DecisionHost
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import PIECE_S, Pieces, Steps

from .test_decision_host import Decision, Journal, Sum

REFUSED = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large")
CLOSED = KafkaError(ErrorCode.NOT_COORDINATOR, "not here")


@dataclass(frozen=True)
class Records:
    records: Sequence[int]


class Host(DecisionHost[Records]):
    """Appends to a list; refuses what `refuses` says."""

    def __init__(self) -> None:
        looks = count()
        super().__init__(
            Pieces(lambda: next(looks) * PIECE_S),  # one step a turn
            CommitWaits("the log"),
            queue_full=KafkaError(ErrorCode.REQUEST_TIMED_OUT),
            full=KafkaError(ErrorCode.REQUEST_TIMED_OUT),
        )
        self.log: list[int] = []
        self.state: list[int] = []
        self.refuses: KafkaError | None = None
        self.reloaded: list[KafkaError] = []
        self.told: list[tuple[Records, KafkaError]] = []

    def append(self, decided: Records, now_ms: int) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.log += decided.records

    def apply(self, decided: Records) -> None:
        self.state += decided.records

    def keeps_state_after(self, error: KafkaError, request: Any) -> bool:
        return request == "harmless"

    def reload_after(self, error: KafkaError) -> None:
        self.reloaded.append(error)

    def as_refusal(self, error: KafkaError) -> KafkaError:
        return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)

    def refuse_waiting(self, decided: Records, error: KafkaError) -> None:
        self.told.append((decided, error))


class Slow:
    """Applies one record a step."""

    def __init__(self, host: Host, records: Sequence[int]) -> None:
        self.host = host
        self.records = records

    def decide(self) -> Steps[Records]:
        yield
        return Records(self.records)

    def write(self, decided: Records) -> Steps[None]:
        self.host.log += decided.records
        for each in decided.records:
            self.host.state.append(each)
            yield

    def keeps_state_after(self, error: KafkaError) -> bool:
        return False


def test_a_refused_append_is_not_applied_and_the_state_is_replayed() -> None:
    host, decided = Host(), Records([1])
    host.refuses = REFUSED
    with pytest.raises(KafkaError) as refused:
        host.append_and_apply(decided, 0)
    assert (refused.value.code, refused.value.__cause__) == (ErrorCode.NOT_COORDINATOR, REFUSED)
    assert (host.state, host.reloaded, host.told) == ([], [REFUSED], [(decided, refused.value)])


def test_a_refused_append_that_changed_nothing_keeps_the_state() -> None:
    host = Host()
    host.refuses = REFUSED
    with pytest.raises(KafkaError):
        host.append_and_apply(Records([1]), 0, "harmless")
    assert host.reloaded == []


def test_a_decision_is_refused_when_the_host_closes_between_two_steps() -> None:
    host = Host()
    steps = host.in_steps(Slow(host, [1, 2]))
    next(steps)
    host.error = CLOSED
    with pytest.raises(KafkaError, match="not here"):
        next(steps)
    assert (host.log, host.told) == ([], [])


def test_a_decision_is_refused_when_its_state_was_dropped_between_two_steps() -> None:
    host = Host()
    steps = host.in_steps(Slow(host, [1, 2]))
    next(steps)
    host.generation += 1
    with pytest.raises(KafkaError) as refused:
        next(steps)
    assert (refused.value.code, host.log) == (ErrorCode.NOT_COORDINATOR, [])


def test_requests_that_wait_for_a_decision_are_refused_when_the_host_closes_while_it_is_applied() -> None:
    host = Host()
    steps = host.in_steps(Slow(host, [1, 2]))
    next(steps)
    next(steps)
    assert (host.log, host.state) == ([1, 2], [1])
    host.error = CLOSED
    with pytest.raises(KafkaError):
        next(steps)
    [(decided, error)] = host.told
    assert (decided.records, error.message, host.reloaded) == ([1, 2], "not here", [])


def test_closing_refuses_the_decisions_in_the_queue_at_once() -> None:
    async def main() -> None:
        host, refusals = Host(), list[str]()

        def refused() -> Steps[None]:
            yield
            try:
                yield from host.in_steps(Slow(host, [1]))
            except KafkaError as error:
                refusals.append(error.message or "")

        host.work_queue.add(refused())
        host.work_queue.add(refused())
        host.refuse_all(CLOSED)
        assert refusals == ["not here", "not here"]

    asyncio.run(main())


def test_requests_are_refused_when_too_many_wait_for_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_host, "WAITING_MAX", 2)

    async def main() -> None:
        journal, machine = Journal(), Sum()
        host = AwaitedHost(machine, journal)
        waiting = [asyncio.ensure_future(host.write(lambda: Decision([1], "done"))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(KafkaError, match="too many requests wait for the commit"):
            await host.write(lambda: Decision([1], "never"))
        with pytest.raises(KafkaError, match="too many requests wait for the commit"):
            await host.read(lambda: "never")
        journal.commit()
        assert await asyncio.gather(*waiting) == ["done", "done"]
        assert await host.read(lambda: machine.total) == 2

    asyncio.run(main())


def test_a_decision_that_cannot_be_applied_closes_the_host() -> None:
    class Bug(Sum):
        def apply(self, records: Sequence[int], first_offset: int) -> None:
            raise ValueError("planted")

    async def main() -> None:
        host = AwaitedHost(Bug(), Journal())
        with pytest.raises(ValueError, match="planted"):
            await host.write(lambda: Decision([1], "never"))
        with pytest.raises(KafkaError, match="could not be applied"):
            await host.write(lambda: Decision([1], "never"))

    asyncio.run(main())


def test_futures_for_commits_may_come_in_any_order() -> None:
    async def main() -> None:
        journal = Journal()
        late, early = journal.committed(5), journal.committed(2)
        assert isinstance(late, asyncio.Future)
        assert isinstance(early, asyncio.Future)
        journal.commit_waits.tell_committed(2)
        assert (early.done(), late.done()) == (True, False)
        journal.commit_waits.tell_lost(-1, REFUSED)
        assert late.exception() is REFUSED

    asyncio.run(main())
