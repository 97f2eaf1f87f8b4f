"""The line of a coordinator's shard: long work is done in pieces, everything else waits behind it in order.

In: steps that change the shard, or must not see it change; whatever arrives while some are under way. Out:
all of it, one after the other. While nothing long is under way nobody stands in line.
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
    """One step."""
    call(*arguments)
    return
    yield


class WorkQueue:
    __slots__ = ("_due", "_pieces", "_work", "is_busy")

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._due: deque[Steps[None]] = deque()
        self._work: Work[None] | None = None
        self.is_busy = False  # something is under way: do nothing to the shard but by `add`

    def check_capacity(self) -> None:
        """KafkaError: too many wait already for one more request."""
        if len(self._due) >= WAITING_MAX:
            raise FULL.with_traceback(None)

    def add(self, steps: Steps[None]) -> None:
        """Do the steps when everything before them is done; a piece at once where nothing is before them."""
        self._due.append(steps)
        if not self.is_busy:
            self.is_busy = True
            self._work = self._pieces.begin(self._in_order())

    def finish(self) -> None:
        """Do all that is left now: the shard is given up, and whoever waits shall hear of it."""
        if self.is_busy and self._work is not None:
            self._work.finish()

    def _in_order(self) -> Steps[None]:
        while self._due:
            try:
                yield from self._due.popleft()
            except Exception:
                log.exception("long work of a coordinator failed")
            yield
        self.is_busy = False
