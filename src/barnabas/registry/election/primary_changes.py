"""Writes of the API on any node: decided and stored by the primary, forwarded to it by the others.

In: decisions and requests of endpoints. Out: replies, or ApiError in the registry's codes. After a forwarded
write this node reads up to the end of the log, so that its next response shows the write.
Does not know: what is written.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.core.transaction import Fenced
from barnabas.registry.election.forwarding import Forwarder, is_forwarded
from barnabas.registry.election.identity import Identity
from barnabas.registry.election.seat import Seat
from barnabas.registry.log.changes import Decide
from barnabas.registry.log.fenced_writer import TooLarge
from barnabas.registry.log.schema_log import SchemaLog, StoreFailed, StoreTimedOut
from barnabas.services.errors import ApiError

log = logging.getLogger("barnabas.registry")

T = TypeVar("T")

SETTLE_S = 10.0  # how long a write waits for the end of an election
KEEP_S = 60.0
RETRY_S = 0.5


class PrimaryChanges:
    """Implements `Changes`."""

    def __init__(self, seat: Seat, schema_log: SchemaLog, forwarder: Forwarder) -> None:
        self._seat = seat
        self._log = schema_log
        self._forwarder = forwarder
        self._tasks: set[asyncio.Task[object]] = set()
        self._forwards: dict[asyncio.Task[Response], Identity] = {}
        self._keeper: asyncio.Task[None] | None = None

    async def forwarded(self, request: Request) -> Response | None:
        await self._seat.settled(SETTLE_S)
        if self._seat.is_primary:
            return None
        primary = self._seat.primary
        if primary is None or primary.url == self._seat.identity.url or is_forwarded(request):
            raise no_primary()
        response = await self._forward(request, primary)
        if response.status_code < 300:
            try:
                await self._log.catch_up()
            except (StoreFailed, StoreTimedOut) as error:
                log.warning("this node may not show a write of the primary yet: %s", error)
        return response

    async def _forward(self, request: Request, primary: Identity) -> Response:
        """The primary's response. A primary that is replaced meanwhile may never send one."""
        task = asyncio.create_task(self._forwarder.send(request, primary))
        self._forwards[task] = primary
        try:
            await asyncio.wait((task,))
        finally:
            del self._forwards[task]
            task.cancel()
        if task.cancelled():
            text = f"Error while forwarding the request: {primary.url} is not the primary any more"
            raise ApiError(500, 50003, text)
        return task.result()

    async def change(self, decide: Decide[T]) -> T:
        # A caller that disconnects must not leave a batch in doubt.
        task = asyncio.create_task(self._log.change(decide, self._may_write))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except TooLarge as error:
            text = (
                f"The schema is too large: {error}; the topic's max.message.bytes says how many are allowed"
            )
            raise ApiError(422, 42209, text) from None
        except StoreFailed as error:
            raise ApiError(500, 50001, f"Error in the backend data store: {error}") from None
        except StoreTimedOut as error:
            raise ApiError(500, 50002, f"Operation timed out: {error}") from None
        except Fenced:
            self._log.give_up_writing()
            self._seat.doubt("another node has written as the primary")
            raise no_primary() from None

    def election_changed(self) -> None:
        """The group has a new outcome."""
        self._log.give_up_writing()
        for task, primary in self._forwards.items():
            if self._seat.primary is None or self._seat.primary.url != primary.url:
                task.cancel()
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None
        if self._seat.is_primary:
            self._keeper = asyncio.create_task(self._keep_log())

    async def _keep_log(self) -> None:
        """Take over the log at once, and again before brokers forget the fence."""
        problem = ""  # logged last
        while True:
            if self._log.is_prepared or not self._seat.is_primary:
                await asyncio.sleep(KEEP_S)
                continue
            try:
                await self._log.prepare()
            except (StoreFailed, StoreTimedOut, Fenced) as error:
                if str(error) != problem:
                    problem = str(error)
                    log.warning("this node is the primary, but cannot take over the log yet: %s", problem)
                await asyncio.sleep(RETRY_S)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved: the caller may have disconnected

    def _may_write(self) -> None:
        if not self._seat.is_primary:
            raise no_primary()

    async def close(self) -> None:
        """Wait for changes under way."""
        if self._keeper is not None:
            self._keeper.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def no_primary() -> ApiError:
    return ApiError(500, 50004, "No primary is known at this moment. Try again in a few seconds")
