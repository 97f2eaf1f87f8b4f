"""Producer ids of this broker, from blocks that the controller grants.

In: AllocateProducerIds responses. Out: ids that no other broker hands out. When a block is nearly used up,
the next one is fetched in the background, so that requests seldom wait for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse

log = logging.getLogger("barnabas.producer_ids")
PREFETCH_BELOW = 100  # ids left, of a block's thousand


class ProducerIds:
    __slots__ = ("_allocate", "_fetching", "_unused")

    def __init__(self, allocate: Callable[[], Awaitable[AllocateProducerIdsResponse]]) -> None:
        self._allocate = allocate
        self._unused: deque[int] = deque()  # granted to this broker, not handed out yet
        self._fetching: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether `pop` returns an id."""
        return bool(self._unused)

    def pop(self) -> int:
        """Return an unused id. KafkaError: there is none until the next block arrives (see `is_ready`)."""
        if len(self._unused) <= PREFETCH_BELOW and self._fetching is None:
            self._fetch()
        if not self._unused:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no producer id is available")
        return self._unused.popleft()

    def pop_if_ready(self) -> int | None:
        """Return an unused id, or None when the block is used up."""
        return self.pop() if self._unused else None

    async def next(self) -> int:
        """Return an id, from a new block if needed. Concurrent calls share one new block."""
        await self.wait_until_ready()
        return self.pop()

    async def wait_until_ready(self) -> None:
        """Return when an id is available. KafkaError: the controller granted none."""
        while not self._unused:
            await asyncio.shield(self._fetching or self._fetch())

    def _fetch(self) -> asyncio.Task[None]:
        self._fetching = asyncio.get_running_loop().create_task(self._fetch_block())
        self._fetching.add_done_callback(log_failure)
        return self._fetching

    async def _fetch_block(self) -> None:
        try:
            block = await self._allocate()
        finally:
            self._fetching = None
        if block.error_code:
            raise KafkaError(ErrorCode(block.error_code))
        self._unused.extend(range(block.producer_id_start, block.producer_id_start + block.producer_id_len))


def log_failure(fetching: asyncio.Task[None]) -> None:
    """Log a failed fetch of a block; the next request for an id retries."""
    if not fetching.cancelled() and (error := fetching.exception()) is not None:
        log.warning("could not get producer ids from the controller: %s", error)
