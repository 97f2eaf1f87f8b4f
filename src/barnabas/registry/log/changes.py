"""The seam between the API and the log: a write is decided on the state, stored as records, then applied.

In: functions that decide. Out: their replies, once this node has applied the records. On a node that is not
the primary, the primary's response to the forwarded request.
Does not know: subjects, records, HTTP beyond the request that is forwarded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

KeyValue = tuple[bytes, bytes | None]  # None: a tombstone


class Decision(Protocol[T_co]):
    """Records that are stored together or not at all, and the reply once they are applied."""

    @property
    def records(self) -> Sequence[KeyValue]: ...

    @property
    def reply(self) -> T_co: ...


Decide = Callable[[], Awaitable[Decision[T]]]


class Changes(Protocol):
    async def forwarded(self, request: Request) -> Response | None:
        """Send a write to the primary. None: this node is the primary, so the endpoint decides itself.

        ApiError 50003 if the primary cannot be reached, 50004 if there is none. Behind the response this
        node has applied the write as well.
        """

    async def change(self, decide: Decide[T]) -> T:
        """Decide on the newest state, alone; store the records; wait until they are applied here.

        `decide` may raise ApiError: nothing is stored then. ApiError 42209 if the records are too large for
        the topic, 50001 if the brokers refuse them, 50002 if it takes too long, 50004 if this node is not
        the primary any more.
        """


class Replica(Protocol):
    """The state that follows the log."""

    def apply(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        """Apply a record. A record that makes no sense changes nothing."""
