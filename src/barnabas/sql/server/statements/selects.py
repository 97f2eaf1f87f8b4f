"""SELECTs that run on this node: how many may, which there are, and how they end.

In: running SELECTs of the engine. Out: the same, noted until they are closed; ApiError 40003 and 42900 beyond
the limits. A SELECT is closed once, whatever becomes of its reader. Does not know: HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from barnabas.services.errors import ApiError
from barnabas.sql.execution.port import RunningSelect
from barnabas.sql.server.statements.errors import MAX_PUSH_QUERIES, TOO_MANY

CLOSE_S_MAX = 30.0

log = logging.getLogger("barnabas.sql")


@dataclass(slots=True)
class OpenSelect:
    """`ended` is set by TERMINATE and /close-query: the reader stops then."""

    select: RunningSelect
    text: str
    ended: asyncio.Event


class Selects:
    def __init__(self, push_max: int, pulls_max: int, pulls_per_s: int) -> None:
        self.open: dict[str, OpenSelect] = {}
        self._push_max = push_max
        self._pulls_max = pulls_max
        self._pulls_per_s = pulls_per_s
        self._pulls = 0
        self._second = 0
        self._pulls_of_second = 0
        self._closing: set[asyncio.Task[None]] = set()

    def check_push(self) -> None:
        if len(self.open) >= self._push_max:
            raise ApiError(
                400,
                MAX_PUSH_QUERIES,
                f"The server has {len(self.open)} push queries, and ksql.max.push.queries={self._push_max} "
                "allows no more: end one of them, or raise the limit",
            )

    @asynccontextmanager
    async def noted(self, select: RunningSelect, text: str) -> AsyncIterator[OpenSelect]:
        found = self.open[select.query_id] = OpenSelect(select, text, asyncio.Event())
        try:
            yield found
        finally:
            self.open.pop(select.query_id, None)
            self._close(select)

    def _close(self, select: RunningSelect) -> None:
        """In a task of its own: the reader's one may be cancelled."""
        task = asyncio.get_running_loop().create_task(closed(select))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def find(self, query_id: str) -> OpenSelect | None:
        """The SELECT of an id, in any case of letters: statements turn them into capitals."""
        wanted = query_id.upper()
        return next((each for name, each in self.open.items() if name.upper() == wanted), None)

    def end(self, query_id: str) -> bool:
        """End a SELECT. False if none has this id."""
        found = self.find(query_id)
        if found is None:
            return False
        found.ended.set()
        return True

    def end_all(self) -> None:
        for each in self.open.values():
            each.ended.set()

    async def close(self) -> None:
        self.end_all()
        if self._closing:
            await asyncio.wait(self._closing)

    @contextmanager
    def pulling(self) -> Iterator[None]:
        """Counts a pull query, by how many run and by how many began this second."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._pulls_of_second = second, 0
        if self._pulls >= self._pulls_max:
            raise too_many(f"{self._pulls} pull queries are running", "max.concurrent.requests")
        if self._pulls_of_second >= self._pulls_per_s:
            raise too_many(f"{self._pulls_of_second} pull queries began this second", "max.qps")
        self._pulls += 1
        self._pulls_of_second += 1
        try:
            yield
        finally:
            self._pulls -= 1


def too_many(state: str, setting: str) -> ApiError:
    return ApiError(
        429, TOO_MANY, f"{state}: ksql.query.pull.{setting} allows no more; try again", {"retry-after": "1"}
    )


async def closed(select: RunningSelect) -> None:
    try:
        async with asyncio.timeout(CLOSE_S_MAX):
            await select.close()
    except Exception:
        log.exception("the query %s did not close", select.query_id)
