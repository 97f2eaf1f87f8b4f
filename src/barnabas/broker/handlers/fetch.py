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

from barnabas.broker.channel import Channel
from barnabas.broker.client_quotas import FetchLimit
from barnabas.broker.context import RequestContext
from barnabas.broker.deferred import Deferred
from barnabas.broker.needs import read_topics
from barnabas.broker.partition import Partition
from barnabas.broker.reading import EMPTY, NOT_KNOWN, PartitionData, divergence, read, refused
from barnabas.broker.routes import handles
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.replication.fetch_sessions import FetchContext, SessionPartition
from barnabas.storage.log import Log

Topic = FetchResponse.FetchableTopicResponse
CLOSEST_SINCE = 11
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
    attempt = Fetching(request, session, context, follower)
    if follower >= FIRST_FOLLOWER:
        attempt.note_progress()
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
        "_broker", "_channel", "_deferred", "_follower", "_is_due", "_is_follower", "_limit", "_listener",
        "_max_bytes", "_names_leaders", "_reads_followers", "_request", "_session", "_tells_leaders",
        "_timer", "_unnoted", "_waiting_at",
    )  # fmt: skip

    def __init__(
        self, request: FetchRequest, session: FetchContext, context: RequestContext, follower: int
    ) -> None:
        broker, version = context.broker, context.version
        self._broker = broker
        self._listener = context.listener
        self._request = request
        self._session = session
        self._max_bytes = min(request.max_bytes, broker.fetch_bytes_max)
        self._names_leaders = False
        self._is_due = False  # a look is scheduled: more of a tick's partitions moved
        self._waiting_at: list[Partition] = []
        self._follower = follower
        self._is_follower = follower >= FIRST_FOLLOWER
        self._reads_followers = not self._is_follower and version >= CLOSEST_SINCE
        self._tells_leaders = version >= LEADERS_SINCE
        self._limit: FetchLimit | None = None
        self._unnoted: list[tuple[FetchRequest.FetchTopic, FetchRequest.FetchTopic.FetchPartition]] = []

    def limit(self, limit: FetchLimit | None, channel: Channel) -> None:
        """The client has a quota: answers are smaller, and empty when they come too soon."""
        self._limit, self._channel = limit, channel
        if limit is not None:
            self._max_bytes = min(self._max_bytes, limit.bytes_max)

    def look(self, *, final: bool = False) -> FetchResponse | None:
        """The answer, or None when it is better to wait."""
        request = self._request
        if self._unnoted:
            self.note_rest()
        results: list[tuple[SessionPartition, PartitionData]] = []
        total = 0
        throttle = self._broker.leader_throttle
        is_urgent = final or request.max_wait_ms <= 0
        can_wait = self._session.has_settled
        skips = self._is_follower and not self._session.full
        for asked in self._session.to_read():
            if skips and has_all(asked):
                self._session.settled(asked)
                can_wait = True
                continue
            try:
                partition = self.find(asked)
                room = min(asked.request.partition_max_bytes, self._max_bytes - total)
                closest = self.closest(partition) if self._reads_followers and request.rack_id else None
                if closest is not None:
                    data = elsewhere(partition, closest)
                    is_urgent = True
                else:
                    waits = self._is_follower and throttle.holds_back(partition, self._follower)
                    data = read(
                        partition,
                        asked.request,
                        0 if waits else room,
                        request.isolation_level,
                        at_least_one=not total and not waits,
                        is_follower=self._is_follower,
                    )
                total += len(data.records or b"")
                is_urgent = is_urgent or data.diverging_epoch.epoch >= 0 or self.starts_later(asked, data)
                can_wait = True
            except KafkaError as error:
                self._broker.metrics.topic(asked.topic).failed_fetch_requests += 1
                asked.attachment = None
                data = refused(asked.index, error)
                if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._tells_leaders:
                    data.current_leader = self.leader_of(asked)
                    self._names_leaders = True
                is_urgent = is_urgent or error.code not in NOT_KNOWN
            results.append((asked, data))
        if can_wait and not is_urgent and total < request.min_bytes:
            return None
        return self.answer(results)

    def cold(self) -> list[ColdRead]:
        """Reads that would wait for the disk."""
        found: list[ColdRead] = []
        room = self._max_bytes
        for asked in self._session.to_read():
            partition: Partition | None = asked.attachment
            if partition is None:
                try:
                    partition = self.find(asked)
                except KafkaError:
                    continue
            offset, log = asked.request.fetch_offset, partition.log
            upper = log.written_offset if self._is_follower else partition.high_watermark
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
        found: Partition | None = asked.attachment
        if found is None or not found.is_leader:
            asked.attachment = None
            partitions = self._broker.partitions
            if self._reads_followers:
                found = partitions.replica(asked.topic, asked.topic_id, asked.index)
            elif asked.topic:
                found = partitions.leader(asked.topic, asked.index)
            else:
                found = partitions.leader_by_id(asked.topic_id, asked.index)
            asked.attachment = found
            if self._is_follower:
                found.follow_tail(self._follower, asked)
        if self._is_follower and self._follower not in found.state.followers:
            # It knows of a reassignment already that this broker has not heard of yet.
            known = asked.request.current_leader_epoch >= 0
            asked.attachment = None
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found

    def note_progress(self) -> None:
        """What a follower fetches from here on it has everything before: the high watermark may move."""
        self._unnoted = [(topic, asked) for topic in self._request.topics for asked in topic.partitions]
        self.note_rest()
        self._broker.followers_seen(self._follower)

    def note_rest(self) -> None:
        """A partition that is not led here yet may be when the answer leaves: the follower, who is told of no
        error, would not name it again."""
        broker_epoch = self._request.replica_state.replica_epoch
        partitions = self._broker.partitions
        unnoted, self._unnoted = self._unnoted, []
        for topic, asked in unnoted:
            found = (
                partitions.get(topic.topic, asked.partition)
                if topic.topic
                else partitions.get_by_id(topic.topic_id, asked.partition)
            )
            if found is None or not found.is_leader or self._follower not in found.state.followers:
                self._unnoted.append((topic, asked))
                continue
            try:
                found.check_epoch(asked.current_leader_epoch)
                if divergence(found, asked) is None and asked.fetch_offset <= found.log.written_offset:
                    found.follower_reached(
                        self._follower, asked.fetch_offset, asked.log_start_offset, broker_epoch
                    )
            except KafkaError:
                self._unnoted.append((topic, asked))  # told when it is read, if it is still so

    def starts_later(self, asked: SessionPartition, data: PartitionData) -> bool:
        """Whether records were deleted since this follower was told last: somebody waits for it to follow."""
        return self._is_follower and 0 <= asked.log_start_offset < data.log_start_offset

    def closest(self, partition: Partition) -> int | None:
        """The replica that the consumer should read from instead, if there is one nearer to it."""
        if not partition.is_leader or partition.state.is_alone or self._broker.select_replica is None:
            return None
        found = self._broker.select_replica(partition, self._request.rack_id, self._listener)
        return found if found != self._broker.node_id else None

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
            if partition is not None and self._is_follower:
                partition.metrics.replication_bytes_out += len(data.records or b"")
                self._broker.leader_throttle.count(partition, len(data.records or b""))
            elif partition is not None:
                partition.metrics.bytes_out += len(data.records or b"")
                partition.metrics.fetch_requests += 1
        response = FetchResponse(session_id=session.session_id, responses=list(topics.values()))
        if self._names_leaders and not self._is_follower:  # a follower has them from the metadata
            self.tell_endpoints(response)
        return response

    def tell_endpoints(self, response: FetchResponse) -> None:
        """Where those are who lead instead (KIP-951)."""
        leaders = {
            data.current_leader.leader_id
            for topic in response.responses
            for data in topic.partitions
            if data.error_code and data.current_leader.leader_id >= 0
        }
        if leaders:
            response.node_endpoints = [
                FetchResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in self._broker.nodes(self._listener)
                if node.id in leaders
            ]

    # -- waiting ---------------------------------------------------------------------------------

    def wait(self) -> Deferred:
        self._deferred = Deferred(self.stop)
        if self._is_follower:
            self._deferred.on_next = self.give_up  # it has more to ask for, and cannot ask while this waits
        session = self._session.follower_session
        if session is not None:
            session.on_change = self.more  # its partitions mark what has news
        else:
            self._waiting_at = [asked.attachment for asked in self._session.partitions if asked.attachment]
        for partition in self._waiting_at:
            partition.wait(self.more)
        self._timer = self._broker.loop.call_later(self._request.max_wait_ms / 1000, self.give_up)
        return self._deferred

    def more(self, partition: Partition | None = None) -> None:
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
        if self._deferred.is_done:
            return
        response = self.look(final=True)
        assert response is not None
        self.finish(response)

    def finish(self, response: FetchResponse) -> None:
        self.stop()
        self._deferred.resolve(response)

    def stop(self) -> None:
        self._timer.cancel()
        session = self._session.follower_session
        if session is not None and session.on_change == self.more:
            session.on_change = None
        for partition in self._waiting_at:
            partition.leave(self.more)


def has_all(asked: SessionPartition) -> bool:
    """Whether a follower has everything of a partition, and was told all there is to tell: so it is with most
    of the many that it follows, at any time."""
    partition: Partition | None = asked.attachment
    if partition is None or not partition.is_leader:
        return False
    log, request = partition.log, asked.request
    return (
        log.written_offset == request.fetch_offset
        and partition.state.high_watermark == asked.high_watermark
        and log.log_start_offset == asked.log_start_offset
        and partition.leader_epoch == request.current_leader_epoch
    )


def elsewhere(partition: Partition, replica_id: int) -> PartitionData:
    """Read from that replica, it is closer."""
    return PartitionData(
        partition_index=partition.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=replica_id,
        records=EMPTY,
    )


def answer_size(results: list[tuple[SessionPartition, PartitionData]]) -> int:
    """About what an answer takes: what surrounds the records is small beside them."""
    return HEADER_BYTES + sum(len(data.records or b"") + PARTITION_BYTES for _, data in results)
