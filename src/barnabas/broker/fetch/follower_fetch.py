"""A follower's fetch: what it asks for tells what it has, and it gets what is not committed yet, too.

In: a request within the follower's session. Out: progress of its replicas, which moves high watermarks; then
batches, where its log parts from this one, where this one starts. A follower's session marks the partitions
with news (`SessionPartition.mark`), so that only those are looked at; one whose high watermark alone has
moved is told of it with the next records, or when the wait is over.
Does not know: consumers, quotas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.fetch.fetching import ColdRead, Fetching, Results
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
    from collections.abc import Iterable

    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.fetch.followed_tail import FollowedTail
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition

UNCOMMITTED = 0  # isolation level


class FollowerFetch(Fetching):
    __slots__ = ("_follower", "_tail", "_unnoted")

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
        self._tail = tail  # it took the shortcut here
        self._unnoted: list[SessionPartition] = []

    def begin(self) -> None:
        self.note(self._session.named)
        self._broker.followers_seen(self._follower)

    def note(self, named: Iterable[SessionPartition]) -> None:
        """What a follower fetches from here on it has everything before: the high watermark may move. A
        partition that is not led here yet may be when the answer leaves: the follower, who is told of no
        error, would not name it again."""
        unnoted = []
        for asked in named:
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
                        self._request.replica_state.replica_epoch,
                    )
                    asked.high_watermark = LOG_AGREES
            except KafkaError:
                unnoted.append(asked)  # told when it is read, if it is still so
        self._unnoted = unnoted

    def find(self, asked: SessionPartition) -> Partition:
        """The partition; remembered in the session."""
        found: Partition | None = asked.attachment
        if found is None or not found.is_leader:
            asked.attachment = None
            partitions = self._broker.partitions
            if asked.topic:
                found = partitions.leader(asked.topic, asked.index)
            else:
                found = partitions.leader_by_id(asked.topic_id, asked.index)
            asked.attachment = found
            found.follow_tail(self._follower, asked)
        if self._follower not in found.state.followers:
            # It knows of a reassignment already that this broker has not heard of yet.
            known = asked.request.current_leader_epoch >= 0
            asked.attachment = None
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found

    def cold(self) -> list[ColdRead]:
        found: list[ColdRead] = []
        room = self._max_bytes
        for asked in self._session.to_read():
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
        return found

    def look(self, *, final: bool = False) -> FetchResponse | None:
        if self._unnoted:
            self.note(self._unnoted)
        session, request = self._session, self._request
        results: Results = []
        unhurried: list[SessionPartition] = []
        total = 0
        is_urgent = final or request.max_wait_ms <= 0
        can_wait = session.has_settled
        for asked in session.to_read():
            if not session.full and has_all(asked):
                can_wait = True
                if asked.high_watermark == asked.attachment.state.high_watermark:
                    session.mark_settled(asked)
                else:
                    unhurried.append(asked)
                continue
            data = self.read(asked, total)
            if data.error_code:
                is_urgent = is_urgent or data.error_code not in NOT_KNOWN
            else:
                can_wait = True
                total += len(data.records or b"")
                is_urgent = is_urgent or data.diverging_epoch.epoch >= 0 or starts_later(asked, data)
            results.append((asked, data))
        if can_wait and not is_urgent and total < request.min_bytes:
            return None
        results += [(asked, self.read(asked, total)) for asked in unhurried]
        return self.answer(results)

    def read(self, asked: SessionPartition, total: int) -> PartitionData:
        """One partition's part of an answer that has `total` bytes already."""
        partition = None
        try:
            partition = self.find(asked)
            waits = self._broker.leader_throttle.holds_back(partition, self._follower)
            room = min(asked.request.partition_max_bytes, self._max_bytes - total)
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
        partition.metrics.replication_bytes_out += size
        self._broker.leader_throttle.count(partition, size)

    # -- waiting -----------------------------------------------------------------------------------

    def more(self, partition: Partition | None = None) -> None:
        tail = self._tail
        if tail is not None and not self._deferred.is_done and not self._session.superseded:
            try:
                answer: FetchResponse | bytes | None = tail.answer()
            except Exception:
                answer = self.failed()
            if answer is not None:
                self.finish(answer)
                return
        super().more(partition)

    def watch(self) -> None:
        self._deferred.on_next = self.give_up  # it has more to ask for, and cannot ask while this waits
        session = self._session.follower_session
        assert session is not None
        session.on_change = self.more  # its partitions mark what has news

    def unwatch(self) -> None:
        session = self._session.follower_session
        assert session is not None
        if session.on_change == self.more:
            session.on_change = None


def has_all(asked: SessionPartition) -> bool:
    """Whether a follower has everything of a partition, and was told all there is to tell but for the high
    watermark: so it is with most of the many that it follows, at any time."""
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
    """Whether records were deleted since this follower was told last: somebody waits for it to follow."""
    return 0 <= asked.log_start_offset < data.log_start_offset
