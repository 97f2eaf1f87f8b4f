"""The work queue of a coordinator's shard: long work runs in pieces; later work waits behind it, in order.

In: steps that change the shard, or must not see it change. Out: all of them run, one after the other. While
nothing long is under way the host does not use the queue.
Does not know: what the work is, the shard.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.protocol import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.metadata.steps import Steps
    from barnabas.runtime.pieces import Pieces, Work

log = logging.getLogger("barnabas.coordinator")
WAITING_MAX = 10_000
FULL = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Too many requests wait for a long one.")


def as_steps(call: Callable[..., None], *arguments: Any) -> Steps[None]:
    """A call as steps: one of them."""
    call(*arguments)
    return
    yield


class WorkQueue:
    __slots__ = ("_pieces", "_waiting", "_work", "is_busy")

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._waiting: deque[Steps[None]] = deque()
        self._work: Work[None] | None = None
        self.is_busy = False  # work is under way: touch the shard only by `add`

    def check_capacity(self) -> None:
        """Raise KafkaError if the queue is full."""
        if len(self._waiting) >= WAITING_MAX:
            raise FULL.copy()

    def add(self, steps: Steps[None]) -> None:
        """Run the steps behind those before them. An idle queue runs their first piece at once."""
        self._waiting.append(steps)
        if not self.is_busy:
            self.is_busy = True
            self._work = self._pieces.begin(self._in_order())

    def finish(self) -> None:
        """Run all that is left now: the host drops the shard, and waiting requests get their refusals."""
        if self.is_busy and self._work is not None:
            self._work.finish()

    def _in_order(self) -> Steps[None]:
        while self._waiting:
            try:
                yield from self._waiting.popleft()
            except Exception:
                log.exception("long work of a coordinator failed")
            yield
        self.is_busy = False
