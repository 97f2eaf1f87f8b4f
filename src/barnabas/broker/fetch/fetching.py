"""A fetch request while it is served: tried at once, and again whenever one of its partitions has more.

In: a request within its session. Out: the response, now, when there are `min_bytes`, or after `max_wait_ms`.
A thread first reads records that are not in the page cache.
Does not know: which records may be read (see `ConsumerFetch`, `FollowerFetch`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.fetch.partition_data import USUAL_ERRORS, refused
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.partitions.partition import Partition, Waiter
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition
    from barnabas.storage.logs.log import Log

Topic = FetchResponse.FetchableTopicResponse
LEADERS_SINCE = 16
LeaderIdAndEpoch = Topic.PartitionData.LeaderIdAndEpoch
Result = tuple["SessionPartition", Topic.PartitionData]
Topics = dict[str | bytes, Topic]


class ColdRead(NamedTuple):
    """A read that a thread must do first, into the page cache."""

    log: Log
    offset: int
    bytes_max: int
    upper_offset: int
    with_aborted: bool = False  # also load the index of aborted transactions
    with_records: bool = True

    def warm(self) -> None:
        with contextlib.suppress(KafkaError):  # the next try gets the same error and reports it
            if self.with_records:
                self.log.warm(self.offset, self.bytes_max, self.upper_offset)
            if self.with_aborted:
                self.log.load_aborted(self.offset)


class Reading:
    """One try to make a response: the results of the partitions that were read so far."""

    __slots__ = ("bytes_total", "can_wait", "is_full", "is_urgent", "results", "unhurried")

    def __init__(self, is_urgent: bool, can_wait: bool) -> None:
        self.results: list[Result] = []
        self.bytes_total = 0
        self.is_urgent = is_urgent  # the response must not wait
        self.can_wait = can_wait
        self.is_full = False  # it has as many results of a follower as a response may have
        # Partitions of a follower that are read only if there is a response; they are no reason for one.
        self.unhurried: list[SessionPartition] = []

    def is_short(self, bytes_min: int) -> bool:
        """Whether the fetch has to wait for more."""
        return self.can_wait and not (self.is_urgent or self.is_full) and self.bytes_total < bytes_min


class Fetching:
    __slots__ = (
        "_deferred", "_is_due", "_tells_leaders", "_timer", "broker", "bytes_max", "request", "session",
    )  # fmt: skip

    def __init__(self, request: FetchRequest, session: FetchContext, context: RequestContext) -> None:
        broker = context.broker
        self.broker = broker
        self.request = request
        self.session = session
        self.bytes_max = min(request.max_bytes, broker.fetch_bytes_max)
        self._is_due = False  # a try is scheduled
        self._tells_leaders = context.version >= LEADERS_SINCE

    # -- what consumers and followers do differently ------------------------------------------------

    is_follower: ClassVar[bool] = False

    def note_progress(self, named: Iterable[SessionPartition]) -> None:
        """Record a follower's progress at these partitions."""

    def pop_unnoted(self) -> list[SessionPartition]:
        """Return and forget the partitions whose progress could not be recorded."""
        return []

    def find_cold(self, to_read: Iterable[SessionPartition], room: int, found: list[ColdRead]) -> int:
        """Collect the reads of these partitions that would wait for the disk. `room`: the response's bytes
        that are left. Returns the room behind them."""
        raise NotImplementedError

    def begin_reading(self, final: bool) -> Reading:
        """Begin a try. `final`: the response must not wait."""
        return Reading(final or self.request.max_wait_ms <= 0, False)

    def read(self, to_read: Iterable[SessionPartition], reading: Reading) -> None:
        """Read these partitions, behind those that were read before."""
        raise NotImplementedError

    def read_unhurried(self, unhurried: Iterable[SessionPartition], reading: Reading) -> None:
        """Read the partitions that `read` left for a response."""

    def watch(self) -> None:
        """Register `more` to be called when a partition has more."""
        raise NotImplementedError

    def unwatch(self) -> None:
        raise NotImplementedError

    # A fetch in pieces (`large_fetch`) watches a few partitions at a time, or the session, by itself:

    def watch_some(self, read: Iterable[SessionPartition], more: Waiter) -> None:
        """Let each of these partitions call `more` when it has more."""

    def pop_watched(self) -> list[Partition]:
        """Return and forget the partitions that `watch_some` was called with."""
        return []

    def watch_session(self, more: Callable[[], None]) -> None:
        """Let a follower's session call `more` when one of its partitions has changed."""

    def unwatch_session(self, more: Callable[[], None]) -> None:
        """End `watch_session`."""

    def count(self, partition: Partition, size: int) -> None:
        """Count the fetch of a partition, and the bytes that are sent."""
        raise NotImplementedError

    # -- responding and waiting ---------------------------------------------------------------------

    def serve(self) -> FetchResponse | Deferred | Awaitable[Response | None]:
        cold: list[ColdRead] = []
        self.find_cold(self.session.to_read(), self.bytes_max, cold)
        if cold:
            return self.after_warming(cold)
        return self.response_if_ready() or self.wait()

    def response_if_ready(self, *, final: bool = False) -> FetchResponse | None:
        """Try to make the response. Returns None if the request has to wait. `final`: it must not wait."""
        reading = self.begin_reading(final)
        self.read(self.session.to_read(), reading)
        if reading.is_short(self.request.min_bytes):
            return None
        if reading.unhurried and not reading.is_full:
            self.read_unhurried(reading.unhurried, reading)
        return self.respond(reading)

    async def warm(self, cold: list[ColdRead]) -> None:
        """Let a thread read cold records, so that the event loop does not wait for the disk."""

        def warm() -> None:
            for each in cold:
                each.warm()

        stats, started_ns = self.broker.fetch_stats, perf_counter_ns()
        stats.cold_fetches += 1
        await self.broker.threads.reads.run(warm)
        stats.cold_reads.observe(perf_counter_ns() - started_ns)

    async def after_warming(self, cold: list[ColdRead]) -> Response | None:
        await self.warm(cold)
        response = self.response_if_ready()
        if response is not None:
            return response
        waiting: asyncio.Future[Response | None] = self.broker.loop.create_future()
        deferred = self.wait()
        deferred.then(waiting.set_result)
        try:
            return await waiting
        finally:
            deferred.cancel()

    def wait(self) -> Deferred:
        self._deferred = deferred = Deferred(self.stop)
        self.watch()
        self._timer = self.broker.loop.call_later(self.request.max_wait_ms / 1000, self.give_up)
        self.broker.fetch_stats.waiting[self.is_follower] += 1
        return deferred

    def more(self, partition: Partition | None = None) -> None:
        """Try again: a partition has more. With a larger `min_bytes` than 1, try once for all partitions of a
        tick."""
        if self.request.min_bytes <= 1:
            self.check_again()
        elif not self._is_due:
            self._is_due = True
            self.broker.loop.call_soon(self.check_again)

    def check_again(self) -> None:
        self._is_due = False
        if not self._deferred.is_done:
            try:
                response = self.response_if_ready()
            except Exception:
                response = self.failed()
            if response is not None:
                self.finish(response)

    def give_up(self) -> None:
        if self._deferred.is_done:
            return
        self.broker.fetch_stats.expired[self.is_follower] += 1
        try:
            response = self.response_if_ready(final=True)
            assert response is not None
        except Exception:
            response = self.failed()
        self.finish(response)

    def failed(self) -> FetchResponse:
        """The response after an unexpected exception. Call it in an `except` block."""
        self.broker.unexpected.note("responding to a fetch")
        return FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, session_id=self.session.session_id)

    def finish(self, response: FetchResponse | bytes) -> None:
        self.stop()
        self._deferred.resolve(response)

    def stop(self) -> None:
        self._timer.cancel()
        self.broker.fetch_stats.waiting[self.is_follower] -= 1
        self.unwatch()

    def respond(self, reading: Reading) -> FetchResponse:
        """Make the response of the results that the session has not sent yet."""
        refusal = self.refusal(reading)
        if refusal is not None:
            return refusal
        topics: Topics = {}
        self.include(reading.results, topics)
        return self.response_of(topics)

    def refusal(self, reading: Reading) -> FetchResponse | None:
        """The response without any partition, if the client cannot get the results."""
        return self.superseded() if self.session.superseded else None

    def superseded(self) -> FetchResponse:
        """The response to a client that has sent another fetch instead."""
        return FetchResponse(
            error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self.session.session_id
        )

    def include(self, results: Sequence[Result], topics: Topics) -> None:
        """Put the results that the session has not sent yet into the topics of a response."""
        session = self.session
        for asked, data in results:
            partition: Partition | None = asked.attachment
            if partition is not None:
                self.count(partition, len(data.records or b""))
            if not session.include(asked, data):
                continue
            key = asked.topic or asked.topic_id
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = Topic(topic=asked.topic, topic_id=asked.topic_id, partitions=[])
            topic.partitions.append(data)

    def response_of(self, topics: Topics) -> FetchResponse:
        return FetchResponse(session_id=self.session.session_id, responses=list(topics.values()))

    def refuse(self, asked: SessionPartition, error: KafkaError) -> Topic.PartitionData:
        """The error of a partition that cannot be read. It names the current leader, so that the client needs
        no metadata request (KIP-951)."""
        topics = self.broker.image.topics
        topic = topics.by_name.get(asked.topic) if asked.topic else topics.by_id.get(asked.topic_id)
        found = topic.partitions.get(asked.index) if topic is not None else None
        if topic is not None and found is not None and error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            metrics = self.broker.metrics.topic(topic.name)
            metrics.fetch_requests += 1
            metrics.failed_fetch_requests += error.code not in USUAL_ERRORS
        asked.attachment = None
        data = refused(asked.index, error)
        if found is not None and error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._tells_leaders:
            data.current_leader = LeaderIdAndEpoch(leader_id=found.leader, leader_epoch=found.leader_epoch)
        return data
