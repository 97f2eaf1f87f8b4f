"""Responses of a coordinator's shard that wait until the records they depend on are committed.

In: responses with the offset they wait for, the high watermark as it moves. Out: responses sent, or turned
into errors because the records are lost or followers take too long. As in Kafka, the records stay in the log
after a timeout and may be committed later: clients retry.
Does not know: what the responses say, partitions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.unexpected import UnexpectedErrors

TOO_LATE = KafkaError(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "The followers have not replicated the records in time."
)
FULL = KafkaError(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many requests wait for the coordinator's followers."
)
HELD_MAX = 10_000  # responses of one shard; further requests are refused before they append anything

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
        """Whether to refuse requests: many responses wait for followers already, and clients that time out
        and retry would add more."""
        return len(self._held) >= HELD_MAX

    def hold(self, offset: int, give: Give, answer: Any) -> None:
        """Send the response when everything below the offset is committed."""
        self._held.append(HeldResponse(offset, self._loop.time() + self._patience_s, give, answer))
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience_s, self._on_time)

    def committed(self, high_watermark: int) -> None:
        held = self._held
        while held and held[0].offset <= high_watermark:
            self._give(held.popleft(), None)

    def fail_all(self, error: KafkaError) -> None:
        """Turn all responses into errors: their records will not be committed by this broker."""
        held, self._held = self._held, deque()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for each in held:
            self._give(each, error)

    def _give(self, held: HeldResponse, error: KafkaError | None) -> None:
        """Send one response; its failure must not keep the others from being sent."""
        try:
            if error is not None:
                self._turn_into_error(held.answer, error)
            held.give(held.answer)
        except Exception:
            self._unexpected.note("responding to a client of a coordinator")

    def _on_time(self) -> None:
        """Time out responses. One timer serves many: it may fire for a response that was sent meanwhile."""
        self._timer = None
        held, now = self._held, self._loop.time()
        while held and held[0].deadline <= now:
            self._give(held.popleft(), TOO_LATE)
        if held and self._timer is None:
            self._timer = self._loop.call_at(held[0].deadline, self._on_time)
