"""A partition on this broker: its log, its high watermark, and the waiters for more records.

In: batches from producers or from the leader, markers from coordinators, fetch offsets of followers. Out:
offsets, slices of the log, calls of waiters. `append` checks and stages a batch; the tick writes staged
batches (`write_staged`), then lets followers and readers see them (`advance`). Does not know: requests,
connections, other partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.decisions.commit_waits import CommitCall, Committed, CommitWaiter, CommitWaits
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import APPEND_TIME_FLAG, TRANSACTIONAL_FLAG, BatchHeader, whole_batches
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.records.validation import validate_produce
from barnabas.replication.fetch_sessions import NOT_SENT_YET
from barnabas.replication.partition_state import PartitionState
from barnabas.storage.logs import producer_snapshots
from barnabas.storage.segments.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from barnabas.broker.metrics import TopicMetrics
    from barnabas.broker.partitions.topic_rules import TopicRules
    from barnabas.broker.produce.tick import Tick
    from barnabas.records.validation import AppendRules
    from barnabas.replication.fetch_sessions import SessionPartition
    from barnabas.replication.verification import Verification
    from barnabas.storage.logs.log import Log
    from barnabas.storage.logs.truncation import Truncation
    from barnabas.transactions.outcome import TransactionEnd

Waiter = Callable[["Partition"], None]
NO_TIMESTAMP = -1
NO_EPOCH = -1
INT64_MAX = 2**63 - 1


class Partition:
    __slots__ = (
        "_committing", "_starts_waiting", "_tails", "_tick", "_waiters", "before_write", "index", "is_dirty",
        "is_internal", "is_leader", "leader_epoch", "leader_high_watermark", "log", "metrics",
        "min_insync_replicas", "on_joining", "on_lost", "replica_count", "rules", "state", "syncs_by_count",
        "topic", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        log: Log,
        replica_id: int,
        tick: Tick,
        metrics: TopicMetrics,
        state: PartitionState | None = None,
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.metrics = metrics
        self.rules: AppendRules
        self.min_insync_replicas = 1
        self.replica_count = 1  # caps `min.insync.replicas` (KIP-966)
        self.is_internal = False
        self.syncs_by_count = False  # `flush.messages` is set
        self.state = state or PartitionState(replica_id, log.end_offset, log.end_offset)
        self.leader_epoch = -1
        self.is_leader = False
        self.is_dirty = False  # has staged batches that are not written
        self.before_write: Callable[[], None] | None = None  # stages records that were collected in this tick
        self.on_lost: Callable[[KafkaError], None] | None = None  # staged batches could not be written
        # Called when a follower that is not in sync has fetched: it may have caught up.
        self.on_joining: Callable[[Partition, int], None] | None = None
        self.leader_high_watermark = -1  # from the leader's last response, while following
        self._tick = tick
        self._waiters: dict[Waiter, None] | None = None
        self._tails: dict[int, SessionPartition] = {}  # by follower: this partition in its fetch session
        self._starts_waiting: dict[Waiter, None] | None = None  # for followers' log start offsets to move
        self._committing: CommitWaits[CommitWaiter] | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def lead(
        self,
        leader_epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...] = (),
        partition_epoch: int = NO_EPOCH,
    ) -> None:
        """Become (or stay) leader: a new epoch starts at the end of the log."""
        state = self.state
        if leader_epoch == self.leader_epoch and self.is_leader and partition_epoch < state.partition_epoch:
            return  # the controller's response came before the metadata record
        if leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.log.assign_epoch(leader_epoch, self.log.end_offset)
            for tail in self._tails.values():
                tail.high_watermark = NOT_SENT_YET  # responses of earlier epochs do not count
        was_leading, self.is_leader = self.is_leader, True
        self.replica_count = max(len(replicas), 1)
        now_ms = self._tick.now_ms()
        state.become_leader(leader_epoch, isr, replicas, partition_epoch, now_ms, was_leading=was_leading)
        if self._committing:
            self._committing.tell_committed(self.state.high_watermark)
        self.wake_all()

    def become_follower(self, leader_epoch: int, partition_epoch: int = NO_EPOCH) -> None:
        """Stop leading: another broker leads, or the partition was removed."""
        self.leader_epoch = leader_epoch
        self.is_leader = False
        self.state.become_follower(leader_epoch, partition_epoch)
        self.leader_high_watermark = -1
        if self._committing:
            elsewhere = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is led elsewhere")
            self._committing.tell_lost(0, elsewhere)
        self.wake_all()

    def configure(self, rules: TopicRules) -> None:
        """Apply the topic's settings."""
        self.rules = rules.append
        self.min_insync_replicas = self.state.min_isr = rules.settings.min_insync_replicas
        self.syncs_by_count = rules.log.flush_messages < INT64_MAX
        self.log.configure(rules.log)

    # -- writing ---------------------------------------------------------------------------------

    def append(
        self,
        records: memoryview | None,
        acks: int,
        version: int,
        now_ms: int,
        verification: Verification | None = None,
        prepared: tuple[memoryview, BatchHeader] | None = None,
    ) -> tuple[int, int]:
        """Stage a producer's batch. Returns its base offset, and the append time or -1. A transactional batch
        needs a `verification`, or is refused. `prepared` has a batch that a thread has validated.
        """
        if acks == -1:
            in_sync = len(self.state.isr)
            if in_sync < self.min_insync_replicas and in_sync < self.replica_count:
                raise self._not_enough_replicas()
        batch, header = prepared or validate_produce(records, self.rules, version, now_ms, self)
        if header.attributes & TRANSACTIONAL_FLAG and verification is None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"{self} was not added to a transaction")
        log = self.log
        if header.producer_id >= 0:
            duplicate = log.producers.check(header, verification)
            if duplicate is not None:
                self.metrics.count_produced(len(batch), header.record_count)  # as Apache Kafka does
                return duplicate.base_offset, duplicate.timestamp
        base_offset = log.end_offset
        header.assign(batch, base_offset, self.leader_epoch)
        try:
            log.stage(batch, header, now_ms)
        except KafkaError:
            header.assign(batch, 0, NO_EPOCH)  # as received: the request may be handled again
            raise
        if header.producer_id >= 0:
            log.producers.apply(header)
        if not self.is_dirty:
            self.is_dirty = True
            self._tick.staged(self)
        size = len(batch if records is None else records)  # as received: the broker may have compressed it
        self.metrics.count_produced(size, header.record_count)
        return base_offset, header.max_timestamp if header.attributes & APPEND_TIME_FLAG else NO_TIMESTAMP

    def prepare_own(self) -> None:
        """Check that a coordinator on this broker may append now, as with acks=all, and join the tick."""
        self._check_leads()
        in_sync = len(self.state.isr)
        if in_sync < self.min_insync_replicas and in_sync < self.replica_count:
            raise self._not_enough_replicas()
        self._join_tick()

    def _check_leads(self) -> None:
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is led elsewhere")

    def _join_tick(self) -> None:
        self._check_leads()
        if not self.is_dirty:
            self.is_dirty = True
            self._tick.staged(self)

    def append_own(
        self, batch: memoryview, header: BatchHeader, now_ms: int, verification: Verification | None = None
    ) -> None:
        """Stage a batch of a coordinator on this broker, after `prepare_own`. A transactional batch needs a
        `verification`."""
        self._stage_own(batch, header, now_ms, verification)
        if header.producer_id >= 0:
            self.log.producers.apply(header)

    def append_marker(self, end: TransactionEnd, now_ms: int) -> int:
        """Stage the marker that ends a producer's transaction here. Out: its offset. It counts when it is
        committed, see `when_committed`."""
        marker = EndMarker(not end.is_commit, end.coordinator_epoch)
        batch = memoryview(build_end_marker(marker, end.producer_id, end.producer_epoch, now_ms))
        header = BatchHeader(batch)
        self.prepare_own()
        log = self.log
        producers = log.producers
        producers.check_marker(header, end.coordinator_epoch, end.transaction_version)
        self._stage_own(batch, header, now_ms)
        producers.advance_high_watermark(self.state.high_watermark)
        completed = producers.apply_marker(header, end.coordinator_epoch, aborted=marker.aborted)
        if completed is not None and marker.aborted:
            stable = producers.last_stable_offset_after(completed)
            log.add_aborted(
                AbortedTransaction(end.producer_id, completed.first_offset, completed.last_offset, stable)
            )
        return header.base_offset

    def _stage_own(
        self, batch: memoryview, header: BatchHeader, now_ms: int, verification: Verification | None = None
    ) -> None:
        self._join_tick()
        if len(batch) > self.rules.batch_bytes_max:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a batch of {len(batch)} bytes for {self}, {self.rules.batch_bytes_max} are allowed",
            )
        if self.rules.append_time:
            header.stamp(batch, header.attributes | APPEND_TIME_FLAG, now_ms)
        if header.producer_id >= 0 and not header.is_control:
            self.log.producers.check_coordinator_batch(header, verification)
        header.assign(batch, self.log.end_offset, self.leader_epoch)
        self.log.stage(batch, header, now_ms)
        self.metrics.count_produced(len(batch), header.record_count)
        self.metrics.own_appends += 1

    def _not_enough_replicas(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{self} has {len(self.state.isr)} replicas in sync, "
            f"min.insync.replicas is {self.min_insync_replicas}",
        )

    def write_staged(self) -> None:
        try:
            if self.before_write is not None:
                self.before_write()
            self.log.write_staged()
        except Exception as error:
            failure = error if isinstance(error, KafkaError) else self._give_up_log()
            if self.on_lost is not None:
                self.on_lost(failure)
            if self._committing:
                self._committing.tell_lost(self.log.written_offset, failure)
            raise failure from error
        finally:
            self.is_dirty = False

    def _give_up_log(self) -> KafkaError:
        """Refuse all further appends until a restart: the content of the file after the last write is
        unknown."""
        self._tick.unexpected.note("writing", self)
        self.log.discard_staged()
        return self.log.fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self} could not be written"))

    @property
    def is_committed_by_writing(self) -> bool:
        """Whether a write alone commits records: there are no followers, and no sync is required."""
        return self.state.has_no_followers and not self.syncs_by_count

    def write_early(self) -> None:
        """Write in the middle of the tick, before something that depends on it is staged. If that fails, the
        tick reports the error to all that staged before."""
        if self.before_write is not None:
            self.before_write()
        self.log.write_early()

    def advance(self, end_offset: int | None = None) -> None:
        """Count written records (below `end_offset`): raise the high watermark and let readers see them."""
        state = self.state
        if end_offset is None:
            end_offset = self.log.written_offset
        elif end_offset < state.log_end_offset:  # a sync of a later tick ended first
            return
        elif end_offset > self.log.written_offset:  # the log was truncated during the sync
            end_offset = self.log.written_offset
        if state.has_no_followers:
            moved = state.advance_log_end(end_offset)
        elif self.is_leader:
            moved = state.advance_log_end(end_offset, self._tick.now_ms())
            self.wake_followers()
        else:
            state.log_end_offset = end_offset
            moved = state.learn_high_watermark(self.leader_high_watermark)
        if moved:
            self._moved()

    def not_synced(self, error: KafkaError) -> None:
        """Fail the waiters for records that could not be synced."""
        if self._committing:
            self._committing.tell_lost(self.state.log_end_offset, error)

    def _moved(self) -> None:
        """Tell waiters that the high watermark has moved. Followers learn it with their next response."""
        if self._tails:
            for tail in self._tails.values():
                tail.mark()
        if self._committing:
            self._committing.tell_committed(self.state.high_watermark)
        if self._waiters:
            self.wake_readers()

    # -- followers -------------------------------------------------------------------------------

    def follower_reached(
        self, replica_id: int, fetch_offset: int, log_start_offset: int = -1, broker_epoch: int = NO_EPOCH
    ) -> None:
        """Record that a follower has every record below the offset. The high watermark may move, and the
        follower may join the ISR."""
        state = self.state
        now_ms = self._tick.now_ms()
        moved = state.advance_follower(replica_id, fetch_offset, now_ms, log_start_offset, broker_epoch)
        if replica_id not in state.isr and self.on_joining is not None:
            self.on_joining(self, replica_id)
        if moved:
            self._moved()
        if self._starts_waiting:
            self._tell_starts()

    def settle_isr(self, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> None:
        """Apply an ISR that the controller has accepted."""
        if self.is_leader and self.state.commit_isr(isr, leader_epoch, partition_epoch, self._tick.now_ms()):
            self._moved()

    def append_followed(self, records: memoryview, high_watermark: int, now_ms: int) -> None:
        """Stage batches from the leader, unchanged. An incomplete batch at the end is fetched again."""
        log = self.log
        self.leader_high_watermark = high_watermark
        for batch, header in whole_batches(records):
            if header.base_offset < log.end_offset:
                if header.next_offset <= log.end_offset:
                    continue  # the log has it already
                if log.end_offset != log.log_start_offset:
                    raise KafkaError(
                        ErrorCode.INVALID_RECORD, f"{self} ends within the batch at {header.base_offset}"
                    )
                # The leader's log begins within this batch.
                log.truncate_fully_and_start_at(header.base_offset, log.log_start_offset)
            self._stage_followed(batch, header, now_ms)

    def _stage_followed(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        log = self.log
        log.stage(batch, header, now_ms)
        if header.producer_id >= 0:
            if header.is_control:
                log.producers.advance_high_watermark(self.state.high_watermark)
            aborted = producer_snapshots.replay(log.producers, log.active, 0, header, batch)
            if aborted is not None:
                log.add_aborted(aborted)
        if not self.is_dirty:
            self.is_dirty = True
            self._tick.staged(self)
        self.metrics.count_followed(len(batch), is_added=self.state.is_being_added)

    def learn_high_watermark(self, high_watermark: int) -> None:
        """Apply the leader's high watermark from a response without records."""
        self.leader_high_watermark = high_watermark
        if not self.is_dirty and self.state.learn_high_watermark(high_watermark):
            self._moved()

    def truncate(self, offset: int) -> Truncation | None:
        """Truncate the log, which diverges from the leader's at the offset. Returns the rest of the work, or
        None."""
        begun = self.log.begin_truncation(offset)
        self.state.truncate(self.log.end_offset)
        return begun

    def start_anew(self, offset: int) -> Truncation:
        """Drop the whole log and continue at the start of the leader's. Returns the rest of the work."""
        begun = self.log.begin_full_truncation(offset)
        self.state.truncate(offset)
        self.state.high_watermark = offset
        return begun

    def when_committed(self, offset: int, done: Committed) -> CommitCall:
        """Call `done` once: without an error when the record at `offset` is committed, or with the error if
        it never will be. Set `is_ready` of the result to cancel the call."""
        waiter = CommitCall(done)
        self.wait_for_commit(offset, waiter)
        return waiter

    def wait_for_commit(self, offset: int, waiter: CommitWaiter) -> None:
        if self._committing is None:
            self._committing = self.new_commit_waits()
        self._committing.append((offset, waiter))

    def new_commit_waits(self) -> CommitWaits[Any]:
        """A queue for an owner that calls `tell_committed` and `tell_lost` itself."""
        return CommitWaits(self, self._tick.unexpected, self._tick.send_committed)

    def forget_ready(self) -> None:
        """Drop waiters for commits that need no call any more."""
        if self._committing:
            self._committing.forget_ready()

    # -- reading ---------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """No transaction is open below this offset."""
        state, log = self.state, self.log
        unstable = log.producers.first_unstable_offset(state.high_watermark)
        if unstable is None:
            return state.high_watermark
        return state.last_stable_offset(max(unstable, log.log_start_offset))

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    def wait(self, waiter: Waiter) -> None:
        """Call `waiter` whenever there is more to read, until `leave`."""
        if self._waiters is None:
            self._waiters = {}
        self._waiters[waiter] = None

    def leave(self, waiter: Waiter) -> None:
        if self._waiters is not None:
            self._waiters.pop(waiter, None)

    def follow_tail(self, replica_id: int, tail: SessionPartition) -> None:
        """From now on, mark the partition in this fetch session whenever it changes. A session that the
        follower has replaced is ignored: its last fetch may still wait here."""
        known = self._tails.get(replica_id)
        if known is None or known.session is None or known.number < tail.number:
            self._tails[replica_id] = tail

    def wake_followers(self) -> None:
        """Wake the fetches of followers: there are new records."""
        for tail in self._tails.values():
            session = tail.mark()
            if session is not None and session.on_change is not None:
                self._tick.wake(session.on_change)

    def wait_for_followers_start(self, waiter: Waiter) -> None:
        """Call `waiter` when followers have fetched, or the set of followers has changed."""
        if self._starts_waiting is None:
            self._starts_waiting = {}
        self._starts_waiting[waiter] = None

    def leave_followers_start(self, waiter: Waiter) -> None:
        if self._starts_waiting is not None:
            self._starts_waiting.pop(waiter, None)

    def _tell_starts(self) -> None:
        if self._starts_waiting:
            self._wake(self._starts_waiting)

    def wake_readers(self) -> None:
        if self._waiters:
            self._wake(self._waiters)

    def _wake(self, waiters: dict[Waiter, None]) -> None:
        # A copy: waiters are added and removed meanwhile.
        self._tick.unexpected.call_all(list(waiters), "waking waiters of", self, self)

    def wake_all(self) -> None:
        """Wake all waiters: the partition was removed, or has another leader."""
        self.wake_readers()
        self.wake_followers()
        self._tell_starts()

    # -- epochs ----------------------------------------------------------------------------------

    def check_epoch(self, epoch: int) -> None:
        """Refuse a client that knows an older or a newer leader epoch than this broker (KIP-320)."""
        if epoch < 0 or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_epoch_strictly(self, epoch: int) -> None:
        """The same for APIs in which only -1 means "no epoch": other negative epochs are fenced."""
        if epoch < -1:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        self.check_epoch(epoch)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and where it ended; (-1, -1) when that is unknown."""
        if epoch == self.leader_epoch:
            return epoch, self.log.end_offset
        return self.log.epochs.end_offset_for(epoch, self.log.end_offset)

    def earliest_epoch(self) -> int:
        return self.log.epochs.epoch_for(self.log.log_start_offset)
