"""A fetch request while it is served: tried at once, and again whenever one of its partitions has more.

In: a request within its session. Out: the response, now, when there are `min_bytes`, or after `max_wait_ms`.
A thread first reads records that are not in the page cache.
Does not know: which records may be read (see `ConsumerFetch`, `FollowerFetch`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from time import perf_counter_ns
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.fetch.partition_data import refused
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition
    from barnabas.storage.logs.log import Log

Topic = FetchResponse.FetchableTopicResponse
LEADERS_SINCE = 16
LeaderIdAndEpoch = Topic.PartitionData.LeaderIdAndEpoch
Results = list[tuple["SessionPartition", Topic.PartitionData]]


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


class Fetching:
    __slots__ = (
        "_broker", "_deferred", "_is_due", "_max_bytes", "_request", "_session", "_tells_leaders", "_timer",
    )  # fmt: skip

    def __init__(self, request: FetchRequest, session: FetchContext, context: RequestContext) -> None:
        broker = context.broker
        self._broker = broker
        self._request = request
        self._session = session
        self._max_bytes = min(request.max_bytes, broker.fetch_bytes_max)
        self._is_due = False  # a try is scheduled
        self._tells_leaders = context.version >= LEADERS_SINCE

    # -- what consumers and followers do differently ------------------------------------------------

    is_follower: ClassVar[bool] = False

    def cold(self) -> list[ColdRead]:
        """The reads that would wait for the disk."""
        raise NotImplementedError

    def response_if_ready(self, *, final: bool = False) -> FetchResponse | None:
        """Try to make the response. Returns None if the request has to wait. `final`: it must not wait."""
        raise NotImplementedError

    def watch(self) -> None:
        """Register `more` to be called when a partition has more."""
        raise NotImplementedError

    def unwatch(self) -> None:
        raise NotImplementedError

    def count(self, partition: Partition, size: int) -> None:
        """Count the bytes of a partition that are sent."""
        raise NotImplementedError

    # -- responding and waiting ---------------------------------------------------------------------

    def serve(self) -> FetchResponse | Deferred | Awaitable[Response | None]:
        cold = self.cold()
        if cold:
            return self.after_warming(cold)
        return self.response_if_ready() or self.wait()

    async def after_warming(self, cold: list[ColdRead]) -> Response | None:
        """Let a thread read cold records, so that the event loop does not wait for the disk; then go on."""

        def warm() -> None:
            for each in cold:
                each.warm()

        stats, started_ns = self._broker.fetch_stats, perf_counter_ns()
        stats.cold_fetches += 1
        await self._broker.threads.reads.run(warm)
        stats.cold_reads.observe(perf_counter_ns() - started_ns)
        response = self.response_if_ready()
        if response is not None:
            return response
        waiting: asyncio.Future[Response | None] = self._broker.loop.create_future()
        deferred = self.wait()
        deferred.then(waiting.set_result)
        try:
            return await waiting
        finally:
            deferred.cancel()

    def wait(self) -> Deferred:
        self._deferred = deferred = Deferred(self.stop)
        self.watch()
        self._timer = self._broker.loop.call_later(self._request.max_wait_ms / 1000, self.give_up)
        self._broker.fetch_stats.waiting[self.is_follower] += 1
        return deferred

    def more(self, partition: Partition | None = None) -> None:
        """Try again: a partition has more. With a larger `min_bytes` than 1, try once for all partitions of a
        tick."""
        if self._request.min_bytes <= 1:
            self.check_again()
        elif not self._is_due:
            self._is_due = True
            self._broker.loop.call_soon(self.check_again)

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
        self._broker.fetch_stats.expired[self.is_follower] += 1
        try:
            response = self.response_if_ready(final=True)
            assert response is not None
        except Exception:
            response = self.failed()
        self.finish(response)

    def failed(self) -> FetchResponse:
        """The response after an unexpected exception. Call it in an `except` block."""
        self._broker.unexpected.note("responding to a fetch")
        return FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, session_id=self._session.session_id)

    def finish(self, response: FetchResponse | bytes) -> None:
        self.stop()
        self._deferred.resolve(response)

    def stop(self) -> None:
        self._timer.cancel()
        self._broker.fetch_stats.waiting[self.is_follower] -= 1
        self.unwatch()

    def respond(self, results: Results) -> FetchResponse:
        """Make the response of the results that the session has not sent yet."""
        session = self._session
        if session.superseded:  # the client has sent another fetch instead
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id
            )
        topics: dict[str | bytes, Topic] = {}
        for asked, data in results:
            if not session.include(asked, data):
                continue
            key = asked.topic or asked.topic_id
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = Topic(topic=asked.topic, topic_id=asked.topic_id, partitions=[])
            topic.partitions.append(data)
            partition: Partition | None = asked.attachment
            if partition is not None:
                self.count(partition, len(data.records or b""))
        return FetchResponse(session_id=session.session_id, responses=list(topics.values()))

    def refuse(self, asked: SessionPartition, error: KafkaError) -> Topic.PartitionData:
        """The error of a partition that cannot be read. It names the current leader, so that the client needs
        no metadata request (KIP-951)."""
        self._broker.metrics.topic(asked.topic).failed_fetch_requests += 1
        asked.attachment = None
        data = refused(asked.index, error)
        if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._tells_leaders:
            topics = self._broker.image.topics
            topic = topics.by_name.get(asked.topic) if asked.topic else topics.by_id.get(asked.topic_id)
            found = topic.partitions.get(asked.index) if topic is not None else None
            if found is not None:
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=found.leader, leader_epoch=found.leader_epoch
                )
        return data
