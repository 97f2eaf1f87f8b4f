"""The memory of all responses with records together: reserved before records are fetched, released when sent.

In: sizes. Out: whether there is room. A read begins with a small share and asks for more as records come, so
that many reads that wait for records need little, and readers that take their responses slowly cannot make
the proxy hold more than the bound.
"""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from barnabas.rest.kafka_errors import THROTTLED
from barnabas.services.errors import ApiError

FIRST_SHARE_BYTES = 128 * 1024


class Budget:
    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_used = 0

    def share(self) -> Share:
        return Share(self)


class Share:
    """The part of one read."""

    __slots__ = ("budget", "bytes_reserved")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.bytes_reserved = 0

    def grow(self, size: int) -> bool:
        """Reserve more; False if there is no room."""
        if self.budget.bytes_used + size > self.budget.bytes_max:
            return False
        self.settle(self.bytes_reserved + size)
        return True

    def settle(self, size: int) -> None:
        """Hold exactly so much."""
        self.budget.bytes_used += size - self.bytes_reserved
        self.bytes_reserved = size

    def release(self) -> None:
        self.settle(0)


class SharedResponse(Response):
    """Releases its share when it is sent, or when its reader is gone."""

    def __init__(self, content: bytes, media_type: str, share: Share) -> None:
        super().__init__(content, media_type=media_type)
        self._share = share

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._share.release()


def no_room(budget: Budget) -> ApiError:
    return ApiError(
        429,
        THROTTLED,
        f"Responses with {budget.bytes_used} bytes of records are on their way: read again in a moment.",
        {"retry-after": "1"},
    )
