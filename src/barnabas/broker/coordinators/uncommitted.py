"""Answers of a coordinator's shard that wait until everything they rest on is committed, for so long.

In: answers with the offset they wait for, the high watermark as it moves. Out: answers given, or spoiled:
because the records are lost, or because followers take too long (as in Kafka the records stay, and may be
committed later: clients ask again).
Does not know: what the answers say, partitions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.unexpected import UnexpectedErrors

TOO_LATE = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Followers have not taken it over in time.")
FULL = KafkaError(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many requests wait for the coordinator's followers."
)
HELD_MAX = 10_000  # answers of one shard; requests are refused then, before anything is appended

Give = Callable[[Any], None]


class HeldResponse(NamedTuple):
    offset: int
    deadline: float
    give: Give
    answer: Any


class UncommittedResponses:
    __slots__ = ("_held", "_loop", "_patience_s", "_timer", "_turn_into_error", "_unexpected")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        patience_ms: int,
        turn_into_error: Callable[[Any, KafkaError], None],
        unexpected: UnexpectedErrors,
    ) -> None:
        self._loop = loop
        self._unexpected = unexpected
        self._patience_s = patience_ms / 1000
        self._turn_into_error = turn_into_error
        self._held: deque[HeldResponse] = deque()  # in the order of offsets, and of deadlines
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_full(self) -> bool:
        """Whether a request should be refused now: followers would have to be waited for, as many wait for
        them already, and clients that give up and ask again make it more."""
        return len(self._held) >= HELD_MAX

    def hold(self, offset: int, give: Give, answer: Any) -> None:
        """Give the answer when everything below the offset is committed."""
        self._held.append(HeldResponse(offset, self._loop.time() + self._patience_s, give, answer))
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience_s, self._on_time)

    def committed(self, high_watermark: int) -> None:
        held = self._held
        while held and held[0].offset <= high_watermark:
            self._give(held.popleft(), None)

    def fail_all(self, error: KafkaError) -> None:
        """What they rest on will never be committed, or not by this broker."""
        held, self._held = self._held, deque()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for each in held:
            self._give(each, error)

    def _give(self, held: HeldResponse, error: KafkaError | None) -> None:
        """One answer that cannot be given does not keep the others from being given."""
        try:
            if error is not None:
                self._turn_into_error(held.answer, error)
            held.give(held.answer)
        except Exception:
            self._unexpected.note("answering a coordinator's client")

    def _on_time(self) -> None:
        """Later than the first deadline, if that answer was given meanwhile: one timer does for many."""
        self._timer = None
        held, now = self._held, self._loop.time()
        while held and held[0].deadline <= now:
            self._give(held.popleft(), TOO_LATE)
        if held and self._timer is None:
            self._timer = self._loop.call_at(held[0].deadline, self._on_time)
