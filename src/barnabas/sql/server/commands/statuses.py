"""The fate of commands: QUEUED, EXECUTING, SUCCESS or ERROR, and waits for the end of one.

Bounded: the oldest statuses are forgotten first. Does not know: statements.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

STATUSES_MAX = 10_000


class CommandState(StrEnum):
    QUEUED = "QUEUED"
    PARSING = "PARSING"
    EXECUTING = "EXECUTING"
    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Status:
    state: CommandState
    message: str
    query_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"status": str(self.state), "message": self.message, "queryId": self.query_id}


class Statuses:
    """`by_id` has the newest status of each command id, `handled` counts the commands that ended."""

    def __init__(self) -> None:
        self.by_id: OrderedDict[str, Status] = OrderedDict()
        self.by_number: OrderedDict[int, Status] = OrderedDict()
        self.handled = 0
        self._changed = asyncio.Condition()

    def put(self, name: str, number: int, status: Status) -> None:
        for statuses, key in ((self.by_id, name), (self.by_number, number)):
            statuses[key] = status  # type: ignore[index]
            statuses.move_to_end(key)  # type: ignore[arg-type]
            while len(statuses) > STATUSES_MAX:
                statuses.popitem(last=False)

    async def ended(self, number: int) -> None:
        """Note that all commands up to this one have ended."""
        self.handled = number + 1
        async with self._changed:
            self._changed.notify_all()

    async def wait(self, number: int, timeout_s: float | None) -> bool:
        """Whether the command of this number has ended in time."""
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(lambda: self.handled > number)
        except TimeoutError:
            return self.handled > number
        return True
