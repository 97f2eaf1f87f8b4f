"""A share partition that this broker leads: its state in memory, loaded from and stored by the persister.

In: the partition with its log, requests of members. Out: acquired records, results of acknowledgements when
they are stored, calls of fetches that wait. Locks that run out are released by one timer. It ends when
another broker leads the partition, when the partition is deleted, when the group has no member here, or when
the coordinator refuses it; a new one loads the state again.
Does not know: requests, sessions, connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.shares.log_batches import LogBatches, read_batches
from barnabas.broker.shares.start_offsets import first_start_offset
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from barnabas.shares.partition.acknowledging import Acknowledgement, acknowledge
from barnabas.shares.partition.acquiring import Acquired, Wish, acquire, last_wanted
from barnabas.shares.partition.runs import ACQUIRED
from barnabas.shares.partition.share_partition import Change, SharePartition, StateRange, add_range
from barnabas.shares.partition.transactions import aborted_spans, without

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.shares.share_partitions import SharePartitions
    from barnabas.broker.shares.share_settings import ShareGroupSettings

ReadResult = ReadShareGroupStateResponse.ReadStateResult.PartitionResult
Done = Callable[[KafkaError | None], None]
NOT_INITIALIZED = -1  # the start offset of a group that has not begun to read
FETCHES_A_TURN = 4  # some milliseconds
TIMER_MS_MIN = 10  # between two rounds of lock timeouts
NOT_AVAILABLE = frozenset(
    (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
)
FENCED = frozenset((ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH))
PASSED_ON = frozenset((ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
ENDING = PASSED_ON | {ErrorCode.NOT_LEADER_OR_FOLLOWER}
"""A share partition with such an error ends: its state must be loaded again."""


class WaitingFetch(Protocol):
    def check_again(self) -> None: ...


class Unstored:
    """States to store, and the changes that wait for it."""

    __slots__ = ("changes", "ranges")

    def __init__(self) -> None:
        self.ranges: list[StateRange] = []
        self.changes: list[tuple[Change, Done]] = []


class LedSharePartition:
    __slots__ = (
        "_shares", "_timer", "_to_wake", "_unstored", "_waiting", "_wakes_again", "ends_when_stored", "error",
        "group", "is_over", "is_writing", "leader_epoch", "lock_timeouts", "partition", "state",
    )  # fmt: skip

    def __init__(self, shares: SharePartitions, group: str, partition: Partition) -> None:
        self._shares = shares
        self.group = group
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state: SharePartition | None = None  # until it is loaded
        self.error: KafkaError | None = None  # why it could not be loaded, or ended
        self.is_over = False
        self.is_writing = False
        self.ends_when_stored = False
        self.lock_timeouts = 0  # records whose lock ran out
        self._unstored = Unstored()
        self._waiting: dict[WaitingFetch, None] = {}  # fetches, in the order in which they are served
        self._to_wake: list[WaitingFetch] = []  # in the next turns of the loop
        self._wakes_again = False  # and all of them once more then
        self._timer: asyncio.TimerHandle | None = None

    def __str__(self) -> str:
        return f"{self.group}:{self.partition}"

    @property
    def settings(self) -> ShareGroupSettings:
        return self._shares.settings_of(self.group)

    # -- life --------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Load the state. Fetches that wait are served then, or get the error."""
        try:
            result = await self._read_state()
            if self.is_over:
                return
            start_offset = result.start_offset
            if start_offset == NOT_INITIALIZED:
                start_offset = await first_start_offset(
                    self.partition, self.settings.offset_reset, self._shares.broker
                )
            if self.is_over:
                return
            self.state = SharePartition.load(
                start_offset,
                result.state_epoch,
                [
                    StateRange(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                    for each in result.state_batches
                ],
            )
        except KafkaError as error:
            self.end(persister_error(error))
            return
        except Exception:
            self._shares.broker.unexpected.note("loading", self)
            self.end(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self.wake()

    async def _read_state(self) -> ReadResult:
        topic = ReadShareGroupStateRequest.ReadStateData
        asked = topic.PartitionData(partition=self.partition.index, leader_epoch=self.leader_epoch)
        request = ReadShareGroupStateRequest(
            group_id=self.group, topics=[topic(topic_id=self.partition.topic_id, partitions=[asked])]
        )
        response = await self._shares.broker.share_persister.read(request)
        result = response.results[0].partitions[0]
        if result.error_code:
            raise KafkaError(ErrorCode(result.error_code), result.error_message or "")
        return result

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads the partition, in the epoch in which the state was loaded."""
        partition = self.partition
        return not self.is_over and partition.is_leader and partition.leader_epoch == self.leader_epoch

    def end(self, error: KafkaError) -> None:
        """Give up the state. Waiting fetches get the error; locks are forgotten."""
        if self.is_over:
            return
        self.is_over = True
        self.error = error
        if self._timer is not None:
            self._timer.cancel()
        self._shares.forget(self)
        self.wake()

    def end_when_stored(self) -> None:
        """End after the last states are stored, unless members come back until then."""
        if self.is_writing or self.has_unstored:
            self.ends_when_stored = True
        else:
            self.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    # -- fetches that wait -------------------------------------------------------------------------

    def wait(self, fetch: WaitingFetch) -> None:
        """Call `check_again` of the fetch whenever there may be records for it, until `leave`."""
        if not self._waiting:
            self.partition.wait(self._partition_changed)
        self._waiting[fetch] = None

    def leave(self, fetch: WaitingFetch) -> None:
        self._waiting.pop(fetch, None)
        if not self._waiting:
            self.partition.leave(self._partition_changed)

    def _partition_changed(self, partition: Partition) -> None:
        self.wake()

    def wake(self) -> None:
        """Let waiting fetches try again, the oldest first, as long as there is something for them. Many are
        served in several turns of the loop, so that others are served in between."""
        if self._to_wake:
            self._wakes_again = True
            return
        self._to_wake = list(self._waiting)
        self._wake_some()

    def _wake_some(self) -> None:
        now, self._to_wake = self._to_wake[:FETCHES_A_TURN], self._to_wake[FETCHES_A_TURN:]
        for fetch in now:
            if self.is_current and not self.has_records:
                self._to_wake = []
                break
            if fetch in self._waiting:
                fetch.check_again()
        if self._to_wake:
            self._shares.broker.loop.call_soon(self._wake_some)
        elif self._wakes_again:
            self._wakes_again = False
            self._shares.broker.loop.call_soon(self.wake)

    @property
    def upper_offset(self) -> int:
        """Records from here on are not delivered yet."""
        partition = self.partition
        return partition.last_stable_offset if self.settings.reads_committed else partition.high_watermark

    @property
    def can_acquire(self) -> bool:
        """Whether a member could acquire records, if the log has more."""
        state = self.state
        return state is not None and state.can_acquire(self.settings.limits.record_locks_max)

    @property
    def has_records(self) -> bool:
        return self.can_acquire and self.fetch_offset < self.upper_offset

    @property
    def fetch_offset(self) -> int:
        assert self.state is not None
        return self.state.next_fetch_offset

    # -- acquiring ---------------------------------------------------------------------------------

    def read(self, records_max: int, bytes_max: int, *, at_least_one: bool) -> LogBatches | None:
        """Read what a member could acquire. None if there is nothing. Raises KafkaError."""
        state, log = self.state, self.partition.log
        assert state is not None
        offset = state.next_fetch_offset
        if offset < log.log_start_offset:  # retention or DeleteRecords
            state.move_log_start(log.log_start_offset)
            offset = state.next_fetch_offset
        upper = self.upper_offset
        if offset >= upper:
            return None
        wanted = last_wanted(state, offset, records_max, self.settings.limits.record_locks_max)
        return read_batches(log, offset, wanted, bytes_max, upper, at_least_one=at_least_one)

    def acquire(
        self, batches: LogBatches, member: str, records_max: int, batch_size: int, *, has_strict_limit: bool
    ) -> list[Acquired]:
        state, settings = self.state, self.settings
        assert state is not None
        limits, now_ms = settings.limits, self._shares.now_ms()
        deadline_ms = now_ms + limits.lock_duration_ms
        wish = Wish(member, state.next_fetch_offset, records_max, batch_size, has_strict_limit, deadline_ms)
        acquired = acquire(state, wish, batches.spans, limits)
        if acquired and settings.reads_committed:
            acquired = self._without_aborted(batches, acquired)
        if acquired:
            self._arm(deadline_ms)
        return acquired

    def _without_aborted(self, batches: LogBatches, acquired: list[Acquired]) -> list[Acquired]:
        """Archive records of aborted transactions, instead of delivering them."""
        spans = batches.spans
        aborted = self.partition.log.aborted_transactions(spans[0].first, spans[-1].last + 1)
        if not aborted:
            return acquired
        begun = [(each.first_offset, each.producer_id) for each in aborted]
        left_out = aborted_spans(batches.produced(), begun)
        state = self.state
        assert state is not None
        for span in left_out:
            state.archive(span.first, span.last, ACQUIRED)
        acquired = without(acquired, left_out)
        if not acquired:  # nobody will acknowledge anything here: nothing else would move and store the start
            for span in left_out:
                for run in state.runs.overlapping(span.first, span.last):
                    if run.is_done:
                        add_range(self._unstored.ranges, run)
            state.advance()
            self._shares.writer.add(self)
        return acquired

    # -- acknowledging -----------------------------------------------------------------------------

    def acknowledge(self, member: str, asked: Sequence[Acknowledgement], done: Done) -> None:
        """Acknowledge records of a member; `done` is called when that is stored, or with the error."""
        state = self.state
        if state is None:
            state = SharePartition(0)  # nothing is acquired while the state is loaded
        try:
            change = acknowledge(state, member, asked, self.settings.limits, self._shares.now_ms())
        except KafkaError as error:
            done(error)
            return
        if change.ranges:
            self._store(change, done)
        else:
            done(None)

    def release(self, member: str, done: Done) -> None:
        """Release all records of a member."""
        if self.state is None:
            done(None)
            return
        change = self.state.release(member, self.settings.limits.deliveries_max)
        if change.ranges:
            self._store(change, done)
        else:
            done(None)

    def _store(self, change: Change, done: Done) -> None:
        self._unstored.ranges += change.ranges
        self._unstored.changes.append((change, done))
        self._shares.writer.add(self)

    @property
    def has_unstored(self) -> bool:
        return bool(self._unstored.ranges)

    def take_unstored(self) -> Unstored:
        self.is_writing = True
        taken, self._unstored = self._unstored, Unstored()
        return taken

    def stored(self, unstored: Unstored, error: KafkaError | None) -> None:
        """A write is over: complete its changes, or roll them back."""
        self.is_writing = False
        state = self.state
        assert state is not None
        if error is not None:
            error = persister_error(error)
        now_ms = self._shares.now_ms()
        has_more = False
        for change, _ in unstored.changes:
            has_more = state.complete(change, error is None, now_ms) or has_more
        if not unstored.changes:
            has_more = state.advance() or has_more
        if error is not None and error.code in ENDING:
            self.end(error)
        for _, done in unstored.changes:
            done(error)
        if has_more:
            self.wake()
        if self.ends_when_stored and not self.has_unstored:
            self.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    # -- locks -------------------------------------------------------------------------------------

    def _arm(self, deadline_ms: int) -> None:
        """Check locks at this time. A timer that is set stays: it is set again when it fires."""
        if self._timer is None:
            self._timer = self._shares.broker.loop.call_at(deadline_ms / 1000, self._check_locks)

    def _check_locks(self) -> None:
        self._timer = None
        state = self.state
        if state is None or self.is_over:
            return
        now_ms = self._shares.now_ms()
        ranges = state.expire(now_ms, self.settings.limits.deliveries_max)
        deadline_ms = state.next_deadline_ms
        if deadline_ms:
            self._arm(max(deadline_ms, now_ms + TIMER_MS_MIN))
        if ranges:
            self.lock_timeouts += sum(each.last - each.first + 1 for each in ranges)
            self._unstored.ranges += ranges
            self._shares.writer.add(self)
            self.wake()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def persister_error(error: KafkaError) -> KafkaError:
    """The error for members when the coordinator of the state has responded with an error."""
    if error.code in NOT_AVAILABLE:
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    if error.code in PASSED_ON:
        return error
    if error.code in FENCED:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message)
