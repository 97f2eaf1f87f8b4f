"""Fetch: batches from the logs of partitions that this broker leads, within a session, waiting for more
if asked to.

The answer holds slices of log files; nothing is read here. A fetch that finds fewer than `min_bytes` waits
at its partitions until a tick brings more, or `max_wait_ms` is over. Versions 13 and later name topics by
id.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable

from barnabas.broker.broker import Broker
from barnabas.broker.channel import Channel
from barnabas.broker.client_quotas import FetchLimit
from barnabas.broker.context import RequestContext
from barnabas.broker.deferred import Deferred
from barnabas.broker.needs import read_topics
from barnabas.broker.partition import Partition
from barnabas.broker.reading import NOT_KNOWN, PartitionData, read, refused
from barnabas.broker.routes import handles
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.replication.fetch_sessions import FetchContext, SessionPartition
from barnabas.storage.log import Log

Topic = FetchResponse.FetchableTopicResponse
REPLICA_STATE_SINCE = 15
LEADERS_SINCE = 16
FIRST_FOLLOWER = 0
HEADER_BYTES, PARTITION_BYTES = 30, 60
ColdRead = tuple[Log, int, int, int]  # from which offset, how many bytes, up to which offset


@handles(FetchRequest, "4-18", needs=read_topics("topics.topic"))
def fetch(
    request: FetchRequest, context: RequestContext
) -> FetchResponse | Deferred | Awaitable[Message | None]:
    broker = context.broker
    follower = (
        request.replica_state.replica_id if context.version >= REPLICA_STATE_SINCE else request.replica_id
    )
    session = broker.fetch_sessions.open(
        request, context.version, broker.clock.now_ms(), privileged=follower >= FIRST_FOLLOWER
    )
    if session.error_code:
        return FetchResponse(error_code=session.error_code)
    attempt = Fetching(request, session, broker, follower, context.version)
    if broker.quotas.fetch is not None and follower < FIRST_FOLLOWER:
        attempt.limit(broker.quotas.fetching(context.user, context.client_id), context.channel)
    cold = attempt.cold()
    if cold:
        return attempt.after_warming(cold)
    response = attempt.look()
    if response is not None:
        return response
    return attempt.wait()


class Fetching:
    """One fetch request: looked at once, and again whenever one of its partitions has more."""

    __slots__ = (
        "_broker",
        "_channel",
        "_deferred",
        "_follower",
        "_is_due",
        "_limit",
        "_max_bytes",
        "_request",
        "_session",
        "_tells_leaders",
        "_timer",
        "_waiting_at",
    )

    def __init__(
        self, request: FetchRequest, session: FetchContext, broker: Broker, follower: int, version: int
    ) -> None:
        self._broker = broker
        self._request = request
        self._session = session
        self._max_bytes = min(request.max_bytes, broker.fetch_bytes_max)
        self._is_due = False  # a look is scheduled: more of a tick's partitions moved
        self._waiting_at: list[Partition] = []
        self._follower = follower
        self._tells_leaders = version >= LEADERS_SINCE
        self._limit: FetchLimit | None = None

    def limit(self, limit: FetchLimit | None, channel: Channel) -> None:
        """The client has a quota: answers are smaller, and empty when they come too soon."""
        self._limit, self._channel = limit, channel
        if limit is not None:
            self._max_bytes = min(self._max_bytes, limit.bytes_max)

    def look(self, *, final: bool = False) -> FetchResponse | None:
        """The answer, or None when it is better to wait."""
        request = self._request
        results: list[tuple[SessionPartition, PartitionData]] = []
        total = 0
        is_urgent = final or request.max_wait_ms <= 0
        can_wait = False
        for asked in self._session.partitions:
            try:
                partition = self.find(asked)
                room = min(asked.request.partition_max_bytes, self._max_bytes - total)
                data = read(partition, asked.request, room, request.isolation_level, at_least_one=not total)
                total += len(data.records or b"")
                is_urgent = is_urgent or data.diverging_epoch.epoch >= 0
                can_wait = True
            except KafkaError as error:
                self._broker.metrics.topic(asked.topic).failed_fetch_requests += 1
                asked.attachment = None
                data = refused(asked.index, error)
                if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._tells_leaders:
                    data.current_leader = self.leader_of(asked)
                is_urgent = is_urgent or error.code not in NOT_KNOWN
            results.append((asked, data))
        if can_wait and not is_urgent and total < request.min_bytes:
            return None
        return self.answer(results)

    def cold(self) -> list[ColdRead]:
        """Reads that would wait for the disk."""
        found: list[ColdRead] = []
        room = self._max_bytes
        for asked in self._session.partitions:
            partition: Partition | None = asked.attachment
            if partition is None:
                try:
                    partition = self.find(asked)
                except KafkaError:
                    continue
            offset, log = asked.request.fetch_offset, partition.log
            upper = partition.high_watermark
            if log.log_start_offset <= offset < upper and room > 0:
                size = min(asked.request.partition_max_bytes, room)
                room -= size
                if not log.is_at_hand(offset, size):
                    found.append((log, offset, size, upper))
        return found

    async def after_warming(self, cold: list[ColdRead]) -> Message | None:
        """A thread reads first, so that a cold catch-up delays nobody; then it is as any other fetch."""

        def warm() -> None:
            for log, offset, size, upper in cold:
                with contextlib.suppress(KafkaError):  # looking again says what is wrong
                    log.warm(offset, size, upper)

        await self._broker.threads.run(warm)
        response = self.look()
        if response is not None:
            return response
        waiting: asyncio.Future[Message | None] = self._broker.loop.create_future()
        deferred = self.wait()
        deferred.then(waiting.set_result)
        try:
            return await waiting
        finally:
            deferred.cancel()

    def find(self, asked: SessionPartition) -> Partition:
        """The partition; remembered in the session, since a consumer asks for the same ones again and
        again.
        """
        if self._follower >= FIRST_FOLLOWER:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        found: Partition | None = asked.attachment
        if found is None or not found.is_leader:
            partitions = self._broker.partitions
            if asked.topic:
                found = partitions.leader(asked.topic, asked.index)
            else:
                found = partitions.leader_by_id(asked.topic_id, asked.index)
            asked.attachment = found
        return found

    def leader_of(self, asked: SessionPartition) -> PartitionData.LeaderIdAndEpoch:
        """Who leads instead, so that the client need not ask for metadata (KIP-951)."""
        topics = self._broker.image.topics
        topic = topics.by_name.get(asked.topic) if asked.topic else topics.by_id.get(asked.topic_id)
        found = topic.partitions.get(asked.index) if topic is not None else None
        if found is None:
            return PartitionData.LeaderIdAndEpoch()
        return PartitionData.LeaderIdAndEpoch(leader_id=found.leader, leader_epoch=found.leader_epoch)

    def answer(self, results: list[tuple[SessionPartition, PartitionData]]) -> FetchResponse:
        session = self._session
        if session.superseded:
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id
            )
        if self._limit is not None:
            wait_ms = self._limit.wait_ms(answer_size(results))
            if wait_ms:
                self._channel.mute(wait_ms)
                return FetchResponse(throttle_time_ms=wait_ms, session_id=session.session_id)
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
                partition.metrics.bytes_out += len(data.records or b"")
                partition.metrics.fetch_requests += 1
        return FetchResponse(session_id=session.session_id, responses=list(topics.values()))

    # -- waiting ---------------------------------------------------------------------------------

    def wait(self) -> Deferred:
        self._deferred = Deferred(self.stop)
        self._waiting_at = [asked.attachment for asked in self._session.partitions if asked.attachment]
        for partition in self._waiting_at:
            partition.wait(self.more)
        self._timer = self._broker.loop.call_later(self._request.max_wait_ms / 1000, self.give_up)
        return self._deferred

    def more(self, partition: Partition) -> None:
        """A partition moved. With `min_bytes` of 1, which is the usual, that is enough; else look once a
        tick.
        """
        if self._request.min_bytes <= 1:
            self.look_again()
        elif not self._is_due:
            self._is_due = True
            self._broker.loop.call_soon(self.look_again)

    def look_again(self) -> None:
        self._is_due = False
        if not self._deferred.is_done:
            response = self.look()
            if response is not None:
                self.finish(response)

    def give_up(self) -> None:
        response = self.look(final=True)
        assert response is not None
        self.finish(response)

    def finish(self, response: FetchResponse) -> None:
        self.stop()
        self._deferred.resolve(response)

    def stop(self) -> None:
        self._timer.cancel()
        for partition in self._waiting_at:
            partition.leave(self.more)


def answer_size(results: list[tuple[SessionPartition, PartitionData]]) -> int:
    """About what an answer takes: what surrounds the records is small beside them."""
    return HEADER_BYTES + sum(len(data.records or b"") + PARTITION_BYTES for _, data in results)
