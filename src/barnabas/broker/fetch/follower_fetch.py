"""A follower's fetch: it shows the follower's progress, and reads uncommitted batches too.

In: a request within the follower's session. Out: the progress of its replicas, which raises high watermarks;
then a response with batches, diverging epochs and log start offsets. The session marks the partitions that
have changed (`SessionPartition.mark`), and only those are read. If only the high watermark of a partition has
moved, the follower learns it with the next records or after `max_wait_ms`.
Does not know: consumers, quotas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from barnabas.broker.fetch.fetching import ColdRead, Fetching, Reading
from barnabas.broker.fetch.partition_data import (
    NOT_KNOWN,
    PartitionData,
    divergence,
    nothing_now,
    read_partition,
)
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.replication.fetch_sessions import LOG_AGREES, NOT_SENT_YET
from barnabas.runtime.shortage import Shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.fetch.followed_tail import FollowedTail
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition

UNCOMMITTED = 0  # isolation level
RESULTS_MAX = 500  # partitions of a response within a session; the next response has the others


class FollowerFetch(Fetching):
    __slots__ = ("_follower", "_tail", "_unnoted")
    is_follower: ClassVar[bool] = True

    def __init__(
        self,
        request: FetchRequest,
        session: FetchContext,
        context: RequestContext,
        follower: int,
        tail: FollowedTail | None = None,
    ) -> None:
        super().__init__(request, session, context)
        self._follower = follower
        self._tail = tail  # set if the request took the shortcut
        self._unnoted: list[SessionPartition] = []

    def begin(self, *, notes: bool = True) -> None:
        """`notes`: the progress at all named partitions is recorded now; if not, `note_progress` is called
        later."""
        if notes:
            self.note_progress(self.session.named)
        self.broker.followers_seen(self._follower)

    def note_progress(self, named: Iterable[SessionPartition]) -> None:
        """Record the follower's progress: it has every record below its fetch offset. A partition that is not
        led here yet is recorded later: it may be led here when the response is made, and then the follower
        sees no error and does not name it again."""
        unnoted = self._unnoted
        for asked in named:
            if not self._leads(asked):  # asked first, because a stopping node refuses thousands of partitions
                unnoted.append(asked)
                continue
            request = asked.request
            try:
                partition = self.find(asked)
                partition.check_epoch(request.current_leader_epoch)
                if (
                    divergence(partition, request) is None
                    and request.fetch_offset <= partition.log.written_offset
                ):
                    partition.follower_reached(
                        self._follower,
                        request.fetch_offset,
                        request.log_start_offset,
                        self.request.replica_state.replica_epoch,
                    )
                    asked.high_watermark = LOG_AGREES
            except KafkaError:
                unnoted.append(asked)  # the read reports the error, if it persists

    def pop_unnoted(self) -> list[SessionPartition]:
        """Return and forget the partitions whose progress could not be recorded."""
        unnoted, self._unnoted = self._unnoted, []
        return unnoted

    def _leads(self, asked: SessionPartition) -> bool:
        found: Partition | None = asked.attachment
        if found is None:
            partitions = self.broker.partitions
            if asked.topic:
                found = partitions.by_name.get((asked.topic, asked.index))
            else:
                found = partitions.by_id.get((asked.topic_id, asked.index))
        return found is not None and found.is_leader

    def find(self, asked: SessionPartition) -> Partition:
        """The partition. The session remembers it."""
        found: Partition | None = asked.attachment
        if found is None or not found.is_leader:
            asked.attachment = None
            partitions = self.broker.partitions
            if asked.topic:
                found = partitions.leader(asked.topic, asked.index)
            else:
                found = partitions.leader_by_id(asked.topic_id, asked.index)
            asked.attachment = found
            found.follow_tail(self._follower, asked)
        if self._follower not in found.state.followers:
            # The follower knows of a reassignment before this broker does.
            known = asked.request.current_leader_epoch >= 0
            asked.attachment = None
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found

    def find_cold(self, to_read: Iterable[SessionPartition], room: int, found: list[ColdRead]) -> int:
        for asked in to_read:
            partition: Partition | None = asked.attachment
            if partition is None or room <= 0:
                continue
            request, log = asked.request, partition.log
            offset, upper = request.fetch_offset, log.written_offset
            if log.log_start_offset <= offset < upper:
                size = min(request.partition_max_bytes, room)
                room -= size
                if not log.can_read_without_disk(offset, size):
                    found.append(ColdRead(log, offset, size, upper))
        return room

    def response_if_ready(self, *, final: bool = False) -> FetchResponse | None:
        if self._unnoted:
            self.note_progress(self.pop_unnoted())
        return super().response_if_ready(final=final)

    def begin_reading(self, final: bool) -> Reading:
        is_urgent = final or self.request.max_wait_ms <= 0
        return Reading(is_urgent, self.session.has_settled)

    def read(self, to_read: Iterable[SessionPartition], reading: Reading) -> None:
        session = self.session
        results, unhurried, total = reading.results, reading.unhurried, reading.bytes_total
        is_urgent, can_wait = reading.is_urgent, reading.can_wait
        results_max = RESULTS_MAX if session.is_incremental else None
        for asked in to_read:
            if len(results) == results_max:  # a node that stops has news of thousands of partitions
                reading.is_full = True
                return
            if not session.full and has_all(asked):
                can_wait = True
                if asked.high_watermark == asked.attachment.state.high_watermark:
                    session.mark_settled(asked)
                else:
                    unhurried.append(asked)
                continue
            data = self.read_one(asked, total)
            if data.error_code:
                is_urgent = is_urgent or data.error_code not in NOT_KNOWN
            else:
                can_wait = True
                total += len(data.records or b"")
                is_urgent = is_urgent or data.diverging_epoch.epoch >= 0 or starts_later(asked, data)
            results.append((asked, data))
        reading.bytes_total, reading.is_urgent, reading.can_wait = total, is_urgent, can_wait

    def read_unhurried(self, unhurried: Iterable[SessionPartition], reading: Reading) -> None:
        total = reading.bytes_total
        reading.results += [(asked, self.read_one(asked, total)) for asked in unhurried]

    def read_one(self, asked: SessionPartition, total: int) -> PartitionData:
        """One partition's part of a response that has `total` bytes so far."""
        partition = None
        try:
            partition = self.find(asked)
            waits = self.broker.leader_throttle.must_wait(partition, self._follower)
            room = min(asked.request.partition_max_bytes, self.bytes_max - total)
            return read_partition(
                partition,
                asked.request,
                0 if waits else room,
                UNCOMMITTED,
                at_least_one=not total and not waits,
                is_follower=True,
            )
        except KafkaError as error:
            if isinstance(error, Shortage) and partition is not None:
                return nothing_now(partition)
            return self.refuse(asked, error)

    def count(self, partition: Partition, size: int) -> None:
        partition.metrics.fetch_requests += 1
        partition.metrics.replication_bytes_out += size
        if partition.state.adding and self._follower in partition.state.adding:
            partition.metrics.reassignment_bytes_out += size
        self.broker.leader_throttle.count(partition, size)

    # -- waiting -----------------------------------------------------------------------------------

    def more(self, partition: Partition | None = None) -> None:
        tail = self._tail
        if tail is not None and not self._deferred.is_done and not self.session.superseded:
            try:
                response: FetchResponse | bytes | None = tail.response()
            except Exception:
                response = self.failed()
            if response is not None:
                self.finish(response)
                return
        super().more(partition)

    def watch(self) -> None:
        self._deferred.on_next = self.give_up  # the follower's next request waits behind this one
        session = self.session.follower_session
        assert session is not None
        session.on_change = self.more  # called when one of its partitions has changed

    def unwatch(self) -> None:
        session = self.session.follower_session
        assert session is not None
        if session.on_change == self.more:
            session.on_change = None

    def watch_session(self, more: Callable[[], None]) -> None:
        session = self.session.follower_session
        assert session is not None
        session.on_change = more

    def unwatch_session(self, more: Callable[[], None]) -> None:
        session = self.session.follower_session
        assert session is not None
        if session.on_change == more:
            session.on_change = None


def has_all(asked: SessionPartition) -> bool:
    """Whether a follower has every record of a partition, and knows all about it but the high watermark. True
    of most partitions at any time."""
    partition: Partition | None = asked.attachment
    if partition is None or not partition.is_leader:
        return False
    log, request = partition.log, asked.request
    return (
        log.written_offset == request.fetch_offset
        and asked.high_watermark != NOT_SENT_YET
        and log.log_start_offset == asked.log_start_offset
        and partition.leader_epoch == request.current_leader_epoch
    )


def starts_later(asked: SessionPartition, data: PartitionData) -> bool:
    """Whether the log start offset has moved since the last response: DeleteRecords waits for followers."""
    return 0 <= asked.log_start_offset < data.log_start_offset
