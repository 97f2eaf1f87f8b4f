"""Responses that wait until the records they depend on are committed, for a limited time.

In: responses with the offset they wait for; `committed` when the high watermark has moved. Out: each response
is given once, turned into an error if its records were lost or if followers take too long. As in Kafka such
records stay in the log and may be committed later: clients retry.
The queue is a `CommitWaits` of its own; deadlines are added here. No response needs a future or a task.
Does not know: what the responses say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.decisions.commit_waits import CommitWaits
from barnabas.protocol import KafkaError

Give = Callable[[Any], None]
TurnIntoError = Callable[[Any, KafkaError], None]


class UncommittedResponse:
    __slots__ = ("_give", "_response", "_turn_into_error", "deadline", "is_ready")

    def __init__(self, give: Give, response: Any, turn_into_error: TurnIntoError, deadline: float) -> None:
        self.deadline = deadline
        self.is_ready = False
        self._give = give
        self._response = response
        self._turn_into_error = turn_into_error

    def on_commit(self, log: Any, error: KafkaError | None) -> None:
        if error is not None:
            self._turn_into_error(self._response, error)
        self._give(self._response)


class UncommittedResponses:
    __slots__ = ("_loop", "_observe", "_timeout_s", "_timer", "_too_late", "_turn_into_error", "_waits")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout_ms: int,
        too_late: KafkaError,
        turn_into_error: TurnIntoError,
        waits: CommitWaits[UncommittedResponse],
        observe: Callable[[float], object] = lambda seconds: None,
    ) -> None:
        """`observe`: told how long the oldest of the responses waited that are given together."""
        self._observe = observe
        self._loop = loop
        self._timeout_s = timeout_ms / 1000
        self._too_late = too_late  # the error of responses that timed out
        self._turn_into_error = turn_into_error
        self._waits = waits  # in the order of offsets, and of deadlines
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, offset: int, give: Give, response: Any) -> None:
        """Give the response when every record below the offset is committed."""
        deadline = self._loop.time() + self._timeout_s
        waiter = UncommittedResponse(give, response, self._turn_into_error, deadline)
        self._waits.append((offset - 1, waiter))
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._on_time)

    def committed(self, high_watermark: int) -> None:
        """Give the responses that the high watermark has reached."""
        waits = self._waits
        if waits and waits[0][0] < high_watermark:
            self._observe(self._timeout_s - (waits[0][1].deadline - self._loop.time()))
        waits.tell_committed(high_watermark)

    def fail_all(self, error: KafkaError) -> None:
        """Turn all responses into errors: this node will not commit their records."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waits.tell_lost(-1, error)

    def _on_time(self) -> None:
        """Time out responses. One timer serves all: it may run for a response that was given meanwhile."""
        self._timer = None
        waits, now = self._waits, self._loop.time()
        while waits and waits[0][1].deadline <= now:
            waits.tell(waits.popleft()[1], self._too_late)
        if waits and self._timer is None:
            self._timer = self._loop.call_at(waits[0][1].deadline, self._on_time)
