"""Producer ids of this broker: taken one by one from blocks that the controller grants.

In: AllocateProducerIds answers. Out: ids that no other broker gives. When most of a block is used the next
one is fetched beside, so that nobody waits for it.
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
        self._unused: deque[int] = deque()  # invariant: these are this broker's, and nobody has them
        self._fetching: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether `pop` returns an id."""
        return bool(self._unused)

    def pop(self) -> int:
        """An id that is at hand. KafkaError: there is none (see `is_ready`) before the next block is here."""
        if len(self._unused) <= PREFETCH_BELOW and self._fetching is None:
            self._fetch()
        if not self._unused:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no producer id is at hand")
        return self._unused.popleft()

    def pop_if_ready(self) -> int | None:
        """An id of the block at hand, or None when it is used up."""
        return self.pop() if self._unused else None

    async def next(self) -> int:
        """An id, from a new block if need be. Many that ask at once share one new block."""
        await self.wait_until_ready()
        return self.pop()

    async def wait_until_ready(self) -> None:
        """Returns when an id is at hand; KafkaError when there is none to be had."""
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
    """A block could not be had: whoever needs an id asks again."""
    if not fetching.cancelled() and (error := fetching.exception()) is not None:
        log.warning("no producer ids could be had: %s", error)
