"""A ShareFetch while it is served: acknowledgements stored, records acquired at once or when there are some.

In: a request within its session. Out: the response, when the acknowledgements of the request are stored and
records were acquired, or after `max_wait_ms`. A thread first reads batches that are not in the page cache.
Partitions are served in turns: the session's order is rotated with its epoch, and `max_bytes` is divided
among those that can deliver. Does not know: sessions of others, how records are acquired.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.fetch.fetching import ColdRead
from barnabas.broker.shares.acknowledgements import Acknowledging, message_of
from barnabas.broker.shares.log_batches import STAGE_BYTES, LogBatches
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.runtime.shortage import Shortage
from barnabas.shares.sessions.share_sessions import ShareSession, TopicIdPartition

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.quotas.client_quotas import FetchLimit
    from barnabas.broker.shares.led_share_partition import LedSharePartition

Topic = ShareFetchResponse.ShareFetchableTopicResponse
PartitionData = Topic.PartitionData
AcquiredRecords = PartitionData.AcquiredRecords
LeaderIdAndEpoch = PartitionData.LeaderIdAndEpoch
RECORD_LIMIT = 1  # ShareAcquireMode (KIP-1206)
EMPTY = b""
NAMES_LEADER = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
Results = dict[TopicIdPartition, PartitionData]
Read = tuple[TopicIdPartition, "LedSharePartition", LogBatches | None]


class ShareFetch:
    __slots__ = (
        "_acknowledging", "_broker", "_channel", "_deferred", "_ending", "_is_checking", "_is_fetched",
        "_is_first", "_limit", "_listener", "_max_bytes", "_member", "_request", "_results", "_session",
        "_shares", "_throttle_ms", "_timer", "_waiting_at", "_warming",
    )  # fmt: skip

    def __init__(
        self,
        request: ShareFetchRequest,
        context: RequestContext,
        session: ShareSession | None,
        acknowledging: Acknowledging,
        ending: ShareSession | None = None,
    ) -> None:
        """Without a session (the final epoch, a renewal) there is nothing to fetch. `ending` is the session
        that ends with this request."""
        broker = context.broker
        self._broker = broker
        self._channel = context.channel
        self._listener = context.listener
        self._request = request
        self._member = request.member_id or ""
        self._session = session
        self._ending = ending
        self._is_first = request.share_session_epoch == 0
        self._acknowledging = acknowledging
        self._shares: dict[TopicIdPartition, LedSharePartition] = {}  # to fetch from, in this order
        self._results: Results = {}
        self._is_fetched = session is None
        self._is_checking = False
        self._warming: asyncio.Future[None] | None = None
        self._waiting_at: list[LedSharePartition] = []
        self._max_bytes = min(request.max_bytes, broker.fetch_bytes_max)
        self._limit: FetchLimit | None = None
        self._throttle_ms = 0
        self._deferred: Deferred | None = None
        self._timer: asyncio.TimerHandle | None = None

    def limit(self, limit: FetchLimit | None) -> None:
        """Apply the client's quota."""
        self._limit = limit
        if limit is not None:
            self._max_bytes = min(self._max_bytes, limit.bytes_max)

    @property
    def is_wanting(self) -> bool:
        """Whether the request asks for records at all."""
        return self._request.max_records > 0 and self._max_bytes > 0

    def add(self, topic_id_partition: TopicIdPartition, share: LedSharePartition) -> None:
        self._shares[topic_id_partition] = share

    def refuse(self, topic_id_partition: TopicIdPartition, error: KafkaError) -> None:
        """Put an error into the response, instead of records."""
        self._shares.pop(topic_id_partition, None)
        topic = self._broker.image.topics.by_id.get(topic_id_partition.topic_id)
        if topic is not None:
            self._broker.metrics.topic(topic.name).failed_share_fetch_requests += 1
        data = self._results[topic_id_partition] = PartitionData(
            partition_index=topic_id_partition.partition, error_code=error.code, records=EMPTY
        )
        if error.code in NAMES_LEADER:
            found = topic.partitions.get(topic_id_partition.partition) if topic is not None else None
            if found is not None:
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=found.leader, leader_epoch=found.leader_epoch
                )

    # -- responding and waiting --------------------------------------------------------------------

    def serve(self) -> ShareFetchResponse | Deferred:
        if not self._is_fetched:
            if not self._shares or not self.is_wanting:
                self._is_fetched = True
            else:
                self._try()
                if not self._is_fetched and self._request.max_wait_ms <= 0 and self._warming is None:
                    self._try(is_final=True)
        if self._is_fetched and self._acknowledging.is_done:
            return self._respond()
        deferred = self._deferred = Deferred(self._stop)
        if not self._acknowledging.is_done:
            self._acknowledging.when_done(self._finish_if_ready)
        if not self._is_fetched:
            self._wait()
        return deferred

    def _wait(self) -> None:
        self._broker.shares.waiting_fetches += 1
        self._waiting_at = list(self._shares.values())
        for share in self._waiting_at:
            share.wait(self)
        wait_s = max(self._request.max_wait_ms, 0) / 1000
        self._timer = self._broker.loop.call_later(wait_s, self._give_up)

    def check_again(self) -> None:
        """Try again: a partition has more, or has ended."""
        if self._is_fetched or self._is_checking:
            return
        self._is_checking = True
        try:
            self._try()
        except Exception:
            self._fail()
        finally:
            self._is_checking = False
        self._finish_if_ready()

    def _give_up(self) -> None:
        if self._is_fetched:
            return
        self._broker.shares.metrics.expired_fetches += 1
        try:
            self._try(is_final=True)
        except Exception:
            self._fail()
        self._is_fetched = True
        self._finish_if_ready()

    def _fail(self) -> None:
        self._broker.unexpected.note("serving a share fetch")
        for topic_id_partition in list(self._shares):
            self.refuse(topic_id_partition, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        self._is_fetched = True

    def _finish_if_ready(self) -> None:
        if not self._is_fetched:
            return
        self._stop()
        if self._acknowledging.is_done and self._deferred is not None and not self._deferred.is_done:
            self._deferred.resolve(self._respond())

    def _stop(self) -> None:
        """Release what the wait held. Also called when the connection is lost."""
        self._is_fetched = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._broker.shares.waiting_fetches -= 1
        waiting_at, self._waiting_at = self._waiting_at, []
        for share in waiting_at:
            share.leave(self)

    # -- fetching ----------------------------------------------------------------------------------

    def _try(self, *, is_final: bool = False, is_warm: bool = False) -> None:
        """Acquire records if there are enough. `is_final`: with whatever there is. `is_warm`: a thread has
        just read the pages. Partitions are read one after the other, until the member has what it asked
        for."""
        is_urgent = self._drop_ended() or is_final
        if self._warming is not None and not is_final:
            return
        ready = [
            (topic_id_partition, share)
            for topic_id_partition, share in self._shares.items()
            if share.can_acquire
        ]
        bytes_each = max(self._max_bytes // max(len(ready), 1), 1)
        bytes_min = max(self._request.min_bytes, 1)
        left, total = self._request.max_records, 0
        read: list[Read] = []  # and not acquired yet
        cold: list[ColdRead] = []
        for topic_id_partition, share in ready:
            batches = None
            if left > 0 and total < self._max_bytes:
                found = None if is_final or is_warm else cold_read(share, min(bytes_each, STAGE_BYTES))
                if found is not None:
                    cold.append(found)
                    continue
                try:
                    room = min(bytes_each, self._max_bytes - total)
                    batches = share.read(left, room, at_least_one=not total)
                except Shortage:  # of descriptors: too many files are open at this moment
                    pass
                except KafkaError as error:
                    self.refuse(topic_id_partition, error)
                    is_urgent = True
                    continue
            read.append((topic_id_partition, share, batches))
            total += batches.size if batches is not None else 0
            if self._limit is None and (is_urgent or total >= bytes_min):
                left, read = self._acquire(read, left), []
        if not is_urgent and total < bytes_min:
            if cold:
                self._warm(cold)
            return
        self._is_fetched = True
        if self._limit is not None and total:
            self._throttle_ms = self._limit.wait_ms(total)
        if not self._throttle_ms:
            self._acquire(read, left)

    def _drop_ended(self) -> bool:
        """Put errors of share partitions that have ended into the response."""
        ended = [
            (topic_id_partition, share)
            for topic_id_partition, share in self._shares.items()
            if not share.is_current
        ]
        for topic_id_partition, share in ended:
            self.refuse(topic_id_partition, share.error or KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return bool(ended)

    def _warm(self, cold: list[ColdRead]) -> None:
        """Let a thread read what is not in the page cache, and try again then."""
        self._broker.fetch_stats.cold_fetches += 1
        self._warming = asyncio.ensure_future(self._broker.threads.reads.run(warm_all, cold))
        self._warming.add_done_callback(self._warmed)

    def _warmed(self, done: asyncio.Future[None]) -> None:
        self._warming = None
        if self._is_fetched or done.cancelled():
            return
        self._is_checking = True
        try:
            self._try(is_final=self._request.max_wait_ms <= 0, is_warm=True)
        except Exception:
            self._fail()
        finally:
            self._is_checking = False
        self._finish_if_ready()

    def _acquire(self, read: list[Read], left: int) -> int:
        """Acquire records of what was read, at most `left`. Returns how many may still be acquired."""
        request = self._request
        for topic_id_partition, share, batches in read:
            data = self._results[topic_id_partition] = PartitionData(
                partition_index=topic_id_partition.partition, records=EMPTY
            )
            if batches is None or left <= 0:
                continue
            acquired = share.acquire(
                batches,
                self._member,
                left,
                request.batch_size,
                has_strict_limit=request.share_acquire_mode == RECORD_LIMIT,
            )
            if not acquired:
                continue
            data.records = records = batches.records(acquired)
            data.acquired_records = [
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=deliveries)
                for first, last, deliveries in acquired
            ]
            left -= sum(last - first + 1 for first, last, _ in acquired)
            share.partition.metrics.bytes_out += len(records)
        return left

    # -- the response ------------------------------------------------------------------------------

    def _respond(self) -> ShareFetchResponse:
        request = self._request
        if self._ending is not None:
            self._broker.shares.release_session(self._ending)
        topics: dict[bytes, Topic] = {}
        session = None if self._is_first else self._session
        for topic_id_partition, data in self._results.items():
            if session is None or session.include(
                topic_id_partition, has_records=bool(data.acquired_records), has_error=data.error_code != 0
            ):
                topic_of(topics, topic_id_partition).partitions.append(data)
        self._add_acknowledgements(topics)
        response = ShareFetchResponse(
            throttle_time_ms=self._throttle_ms,
            acquisition_lock_timeout_ms=self._broker.shares.settings_of(
                request.group_id or ""
            ).limits.lock_duration_ms,
            responses=list(topics.values()),
        )
        if self._throttle_ms:
            self._channel.mute(self._throttle_ms)
        self._add_endpoints(response)
        return response

    def _add_acknowledgements(self, topics: dict[bytes, Topic]) -> None:
        results = self._acknowledging.results
        if not results:
            return
        known = {
            (topic.topic_id, data.partition_index): data
            for topic in topics.values()
            for data in topic.partitions
        }
        for topic_id_partition, error in results.items():
            data = known.get(topic_id_partition)
            if data is None:
                data = PartitionData(partition_index=topic_id_partition.partition, records=EMPTY)
                topic_of(topics, topic_id_partition).partitions.append(data)
            if error is not None:
                data.acknowledge_error_code = error.code
                data.acknowledge_error_message = message_of(error)

    def _add_endpoints(self, response: ShareFetchResponse) -> None:
        """Add the addresses of the current leaders that the response names (KIP-951)."""
        leaders = {
            data.current_leader.leader_id
            for topic in response.responses
            for data in topic.partitions
            if data.error_code in NAMES_LEADER
        }
        if leaders:
            response.node_endpoints = [
                ShareFetchResponse.NodeEndpoint(
                    node_id=node.id, host=node.host, port=node.port, rack=node.rack
                )
                for node in self._broker.nodes(self._listener)
                if node.id in leaders
            ]


def topic_of(topics: dict[bytes, Topic], topic_id_partition: TopicIdPartition) -> Topic:
    topic = topics.get(topic_id_partition.topic_id)
    if topic is None:
        topic = topics[topic_id_partition.topic_id] = Topic(
            topic_id=topic_id_partition.topic_id, partitions=[]
        )
    return topic


def cold_read(share: LedSharePartition, size: int) -> ColdRead | None:
    """The read that a thread must do before the loop reads a share partition; None if it is in memory."""
    log, offset, upper = share.partition.log, share.fetch_offset, share.upper_offset
    if not log.log_start_offset <= offset < upper:
        return None
    is_warm = log.can_read_without_disk(offset, size)
    has_aborted = not share.settings.reads_committed or log.has_loaded_aborted(offset)
    if is_warm and has_aborted:
        return None
    return ColdRead(log, offset, size, upper, not has_aborted, not is_warm)


def warm_all(cold: list[ColdRead]) -> None:
    for each in cold:
        each.warm()
