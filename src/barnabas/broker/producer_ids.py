"""Producer ids of this broker: taken one by one from blocks that the controller grants.

In: AllocateProducerIds answers. Out: ids that no other broker gives. A block that is nearly used up is not
fetched ahead: the next one costs one round trip per thousand producers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse


class ProducerIds:
    __slots__ = ("_allocate", "_end", "_lock", "_next")

    def __init__(self, allocate: Callable[[], Awaitable[AllocateProducerIdsResponse]]) -> None:
        self._allocate = allocate
        self._lock = asyncio.Lock()
        self._next = 0
        self._end = 0  # invariant: ids in [_next, _end) are this broker's and unused

    def next_at_hand(self) -> int | None:
        """An id of the block at hand, or None when it is used up."""
        if self._next >= self._end:
            return None
        self._next += 1
        return self._next - 1

    async def next(self) -> int:
        """An id, from a new block if need be. Many that ask at once share one new block."""
        async with self._lock:
            found = self.next_at_hand()
            if found is not None:
                return found
            block = await self._allocate()
            if block.error_code:
                raise KafkaError(ErrorCode(block.error_code))
            self._next, self._end = block.producer_id_start, block.producer_id_start + block.producer_id_len
            self._next += 1
            return self._next - 1
