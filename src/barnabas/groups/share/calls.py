"""Requests to share coordinators whose responses a shard still waits for.

In: what to do with a response, by the number of the request. Out: numbers, and the work when the response
comes. The host sends the requests; a shard that is unloaded forgets them. Bounded.
Does not know: what the work is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from barnabas.groups.basics.outcome import StateCall
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest

CALLS_MAX = 1000  # of one shard

Work = TypeVar("Work")


class StateCalls(Generic[Work]):
    __slots__ = ("_last", "_waiting")

    def __init__(self) -> None:
        self._last = 0
        self._waiting: dict[int, Work] = {}

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= CALLS_MAX

    def check_capacity(self) -> None:
        if self.is_full:
            message = "Too many requests wait for the share coordinator."
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message)

    def add(
        self, request: InitializeShareGroupStateRequest | DeleteShareGroupStateRequest, work: Work
    ) -> StateCall:
        self._last += 1
        self._waiting[self._last] = work
        return StateCall(self._last, request)

    def pop(self, number: int) -> Work | None:
        """The work of a response; None if the shard was unloaded since."""
        return self._waiting.pop(number, None)

    def clear(self) -> Iterator[Work]:
        waiting, self._waiting = self._waiting, {}
        return iter(waiting.values())
