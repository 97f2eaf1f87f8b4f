"""A fetch of many partitions, served in pieces while other requests are served.

In: a fetch like any other. Out: the same response as of a fetch that is served at once, encoded. Each piece
opens, reads, sends or watches a few partitions. A fetch watches a partition from when it was read on, in the
same piece, so it misses no record that comes while it reads the others; then it reads all again. It stops
when a later request of its session arrives. Its results are of different moments, as of a client that
fetches the partitions in several requests.
Does not know: which records may be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.fetch.encoded_fetch import encode_in_steps
from barnabas.broker.fetch.fetching import ColdRead, Fetching, Reading, Result, Topics
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.replication.fetch_sessions import NOT_SENT_YET

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.metadata.steps import Steps
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext

PARTITIONS_AT_ONCE_MAX = 256  # a fetch of more is served in pieces
# Of a follower: its responses are bounded, producers wait for it, and pieces come in turn with other work.
FOLLOWED_AT_ONCE_MAX = 512
PARTITIONS_A_STEP = 16
REQUEST_BYTES_AT_ONCE_MAX = 8 * 1024  # names about as many partitions; a session with more is opened in steps
T = TypeVar("T")
Serve = Callable[["FetchContext"], "FetchResponse | Deferred | Awaitable[Response | None]"]


async def open_in_pieces(
    request: FetchRequest, context: RequestContext, serve: Serve, *, privileged: bool
) -> Response | None:
    """Open the session of a request that names many partitions, then serve it."""
    from barnabas.broker.api.large_requests import resolved

    broker = context.broker
    steps = broker.fetch_sessions.open_in_steps(
        request, context.version, broker.clock.now_ms(), privileged=privileged
    )
    result = serve(await broker.pieces.run(steps))
    if isinstance(result, Deferred):
        return await resolved(result)
    if isinstance(result, FetchResponse):
        return result
    return await result


def serve_in_pieces(fetching: Fetching, version: int) -> Deferred:
    """The response, when it is there."""
    return LargeFetch(fetching, version).start()


class LargeFetch:
    """Watches partitions instead of the fetch that it serves; they call `more`."""

    __slots__ = (
        "_broker", "_fetching", "_has_more", "_is_final", "_news", "_request", "_session", "_version",
    )  # fmt: skip

    def __init__(self, fetching: Fetching, version: int) -> None:
        self._broker = fetching.broker
        self._fetching = fetching
        self._request = fetching.request
        self._session = fetching.session
        self._version = version
        self._has_more = False  # since the last try began
        self._is_final = False  # the fetch must not wait any longer
        self._news: asyncio.Future[None] | None = None  # what a fetch without enough to send waits for

    def start(self) -> Deferred:
        task: asyncio.Task[None]

        def cancel() -> None:
            task.cancel()

        deferred = Deferred(cancel)
        if self._fetching.is_follower:
            deferred.on_next = self.give_up  # the follower's next request waits behind this one
        task = self._broker.loop.create_task(self._respond_to(deferred))
        return deferred

    async def _respond_to(self, deferred: Deferred) -> None:
        try:
            response: Response = await self._response()
        except Exception:
            response = self._fetching.failed()
        deferred.resolve(response)

    async def _response(self) -> FetchResponse:
        fetching, run = self._fetching, self._broker.pieces.run
        try:
            await run(self._note_progress())
            cold = await run(self._find_cold())
            if cold:
                await fetching.warm(cold)
            reading = await self._read_until_enough()
        finally:
            self._broker.pieces.begin(self._unwatch())
        return await run(self._respond(reading))

    # -- reading and waiting ------------------------------------------------------------------------

    async def _read_until_enough(self) -> Reading:
        request, loop = self._request, self._broker.loop
        deadline = loop.time() + request.max_wait_ms / 1000
        while True:
            self._has_more = False
            is_final = self._is_final
            reading = await self._broker.pieces.run(self._read(is_final))
            if self._session.superseded or is_final or not reading.is_short(request.min_bytes):
                return reading
            if not self._has_more and not self._is_final:
                await self._wait_until(deadline)
            if not self._is_final and loop.time() >= deadline:
                self._is_final = True
                self._broker.fetch_stats.expired[self._fetching.is_follower] += 1

    async def _wait_until(self, deadline: float) -> None:
        """Wait for more, or until this time."""
        waiting = self._broker.fetch_stats.waiting
        self._news = self._broker.loop.create_future()
        timer = self._broker.loop.call_at(deadline, self._wake)
        waiting[self._fetching.is_follower] += 1
        try:
            await self._news
        finally:
            timer.cancel()
            waiting[self._fetching.is_follower] -= 1
            self._news = None

    def more(self, partition: object = None) -> None:
        """Read all again: a partition has more."""
        self._has_more = True
        self._wake()

    def give_up(self) -> None:
        """Respond with what there is."""
        self._is_final = True
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # -- in steps -----------------------------------------------------------------------------------

    def _note_progress(self) -> Steps[None]:
        for some in parts(self._session.named):
            self._fetching.note_progress(some)
            yield

    def _find_cold(self) -> Steps[list[ColdRead]]:
        found: list[ColdRead] = []
        room = self._fetching.bytes_max
        for some in parts(self._session.to_read()):
            room = self._fetching.find_cold(some, room, found)
            yield
        return found

    def _read(self, is_final: bool) -> Steps[Reading]:
        fetching, bytes_min = self._fetching, self._request.min_bytes
        for some in parts(fetching.pop_unnoted()):
            fetching.note_progress(some)
            yield
        reading = fetching.begin_reading(is_final)
        fetching.watch_session(self.more)
        for some in parts(self._session.to_read()):
            fetching.read(some, reading)
            if not is_final and reading.is_short(bytes_min):
                fetching.watch_some(some, self.more)
            if reading.is_full or self._session.superseded:
                return reading
            yield
        if not reading.is_short(bytes_min):
            for some in parts(reading.unhurried):
                fetching.read_unhurried(some, reading)
                yield
        return reading

    def _unwatch(self) -> Steps[None]:
        self._fetching.unwatch_session(self.more)
        for some in parts(self._fetching.pop_watched()):
            for partition in some:
                partition.leave(self.more)
            yield

    def _respond(self, reading: Reading) -> Steps[FetchResponse]:
        fetching, results = self._fetching, reading.results
        refusal = fetching.refusal(reading)
        if refusal is not None:
            return refusal
        topics: Topics = {}
        for some in parts(results):
            fetching.include(some, topics)
            yield
            if self._session.superseded:
                yield from forget_sent(results)
                return fetching.superseded()
        return (yield from encode_in_steps(fetching.response_of(topics), self._version))


def forget_sent(results: Sequence[Result]) -> Steps[None]:
    """Let the session send these again: the client ignores the response that they were put into."""
    for some in parts(results):
        for asked, _ in some:
            asked.high_watermark = NOT_SENT_YET
        yield


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(items), PARTITIONS_A_STEP):
        yield items[first : first + PARTITIONS_A_STEP]
