"""`__cluster_metadata-0` on the node that leads it: appends records, syncs them, publishes committed images.

In: records of the active controller. Out: committed images, handed with their deltas to listeners. Everything
that is appended during one sync shares the next sync. An epoch is durable in `quorum-state` before any record
is written in it.

Life: open (load snapshot and log) -> `lead` (LeaderChange) -> `append`, `committed` ... -> `renounce`, then
as a follower (see `metadata_replica`), or `close`.
Other voters fetch this log; their fetches move the high watermark through `raft.leader`.
Does not know: what the records decide, elections.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from barnabas.decisions.commit_waits import CommitFuture, CommitWaits, committed_future
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.quorum.metadata_loading import QuorumLog
from barnabas.quorum.metadata_packing import pack
from barnabas.quorum.metadata_replica import WORTH_A_SNAPSHOT_BYTES, MetadataReplica
from barnabas.quorum.metadata_snapshots import SnapshotPolicy
from barnabas.quorum.uncommitted import Batch
from barnabas.raft.election import Victory, elect_sole_voter
from barnabas.raft.leader import Leader
from barnabas.raft.voters import Membership, Voter
from barnabas.records.batch import BatchHeader, assign
from barnabas.records.control import build_quorum_batch
from barnabas.runtime.clock import Clock
from barnabas.runtime.disk import Disk
from barnabas.runtime.shortage import RETRY_S, Shortage, is_shortage

UNCOMMITTED_MAX = 10_000  # decisions that wait for the disk
RECORDS_PER_BATCH_MAX = 10_000  # as many records as one request may write
BATCH_BYTES_MAX = 8 << 20  # as in Kafka: a follower must be able to fetch a whole batch
NO_TRANSACTION = TransactionFilter()


@dataclass(frozen=True, slots=True)
class _Appended:
    end_offset: int
    delta: MetadataDelta
    image: MetadataImage
    batches: Sequence[Batch]
    transactions: TransactionFilter = NO_TRANSACTION  # metadata transactions that are open after it


class MetadataLog(MetadataReplica):
    """A journal (see `decisions.awaited`) of metadata records. Call it from the loop's thread only."""

    def __init__(
        self,
        log: QuorumLog,
        disk: Disk,
        clock: Clock,
        local: Voter,
        membership: Membership,
        policy: SnapshotPolicy,
    ) -> None:
        super().__init__(log, disk, clock, local, membership, policy)
        self.leader: Leader | None = None
        self.last_append_ms = clock.now_ms()
        self._appended: deque[_Appended] = deque()
        self.commit_waits: CommitWaits[CommitFuture] = CommitWaits(self)
        self._flushing = False
        self._committed_transactions = self.uncommitted.transactions

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark if self.leader is not None else self._known_high_watermark

    # Leading and appending

    def lead_alone(self) -> Leader:
        """Elect this node, the only voter, and open its epoch in the log."""
        return self.lead(elect_sole_voter(self.election_state, self.last_epoch, self.local, self.membership))

    def lead(self, victory: Victory) -> Leader:
        """Open the epoch that this node was elected for."""
        self.save_election_state(victory.state)
        start = self._log.end_offset
        self.leader = Leader(self.local.id, victory.state.epoch, start, victory.membership.voters)
        committed = self.uncommitted.transactions
        delta, image, pending = self.uncommitted.pop_all(self.image)
        if pending:
            self._appended.append(_Appended(start, delta, image, pending, self.uncommitted.transactions))
        self._committed_transactions = committed
        self.append_controls(victory.control_records)
        return self.leader

    def append_controls(self, records: Sequence[Message]) -> int:
        """Append control records of the quorum and return the end offset. Voters that they name count at
        once."""
        epoch = self._require_leader().epoch
        now_ms = self._clock.now_ms()
        start = self._log.end_offset
        batch = build_quorum_batch(records, now_ms, base_offset=start, partition_leader_epoch=epoch)
        controls = tuple((start + index, record) for index, record in enumerate(records))
        self._note_controls(controls)
        if self._require_leader().voters != self.membership.voters:
            self._require_leader().change_voters(self.membership.voters)
        self._stage(batch, now_ms)
        end_offset = self._log.end_offset
        noted = Batch(start, end_offset, epoch, now_ms, (), controls)
        before = self.last_image
        image = replace(before, provenance=Provenance(end_offset - 1, epoch, now_ms))
        transactions = self._appended[-1].transactions if self._appended else self.uncommitted.transactions
        self._appended.append(_Appended(end_offset, MetadataDelta(before), image, (noted,), transactions))
        return end_offset

    def append(self, records: Sequence[Message]) -> int:
        """Append records as one batch, so that a crash keeps all of them or none.
        Only the consequences of a broker's fencing or return can exceed one batch; those may be applied in
        parts."""
        return self.append_packed(at_once(self.pack(records)))

    def pack(self, records: Sequence[Message]) -> Steps[Sequence[bytearray]]:
        """Encode in steps what `append` writes. `append_packed` assigns the offsets."""
        self._check_room()
        now_ms, level = self._clock.now_ms(), self._level_for(records)
        batches = []
        for first in range(0, len(records), RECORDS_PER_BATCH_MAX):
            some = records[first : first + RECORDS_PER_BATCH_MAX]
            batches.append((yield from pack(some, level, now_ms)))
        largest = max(map(len, batches))
        if largest > BATCH_BYTES_MAX:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"a metadata change of {largest} bytes exceeds the limit of {BATCH_BYTES_MAX}",
            )
        return batches

    def append_packed(self, batches: Sequence[bytearray]) -> int:
        self._check_room()
        epoch, now_ms = self._require_leader().epoch, self._clock.now_ms()
        for batch in batches:
            assign(batch, 0, self._log.end_offset, epoch)
            self._stage(batch, now_ms)
        self.last_append_ms = now_ms
        return self._log.end_offset

    def _check_room(self) -> None:
        self._require_leader()
        if len(self._appended) >= UNCOMMITTED_MAX:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"{UNCOMMITTED_MAX} metadata changes already wait for the disk"
            )

    @property
    def last_image(self) -> MetadataImage:
        """The image with everything that this leader appended, committed or not."""
        return self._appended[-1].image if self._appended else self.image

    def _level_for(self, records: Sequence[Message]) -> int:
        """The metadata.version in force after everything appended; bootstrap records bring their own."""
        image = self.last_image
        if image.is_empty:
            delta = MetadataDelta(image)
            delta.replay_all(records)
            image = delta.apply()
        return image.features.metadata_level

    def note_applied(
        self,
        delta: MetadataDelta,
        image: MetadataImage,
        records: Sequence[Message] = (),
        transactions: TransactionFilter = NO_TRANSACTION,
    ) -> None:
        """Register the effect of the last append. Listeners get it when it is committed."""
        end_offset, at = self._log.end_offset, image.provenance
        batch = Batch(end_offset - len(records), end_offset, at.epoch, at.timestamp_ms, records)
        self._appended.append(_Appended(end_offset, delta, image, (batch,), transactions))

    def provenance(self) -> Provenance:
        """The position in the log of an image that holds everything appended so far."""
        epoch = self.leader.epoch if self.leader is not None else self.last_epoch
        return Provenance(self._log.end_offset - 1, epoch, self.last_append_ms)

    def _stage(self, batch: bytearray, now_ms: int) -> None:
        view = memoryview(batch)
        start_offset = self._log.end_offset
        try:
            self._log.stage(view, BatchHeader(view), now_ms)
        except Shortage:
            raise  # nothing was staged: only this request is refused
        except KafkaError as error:
            self._fail(error)
            raise
        self._bytes_since_snapshot += len(batch)
        end_offset = self._log.end_offset
        self.stats.appended(end_offset, end_offset - start_offset)
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _require_leader(self) -> Leader:
        if self.error is not None:
            raise self.error
        if self.leader is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
        return self.leader

    def renounce(self, error: KafkaError) -> None:
        """Stop leading. Waiting requests are refused, although their records may still be committed later."""
        if self.leader is None:
            return
        self._known_high_watermark = max(self._known_high_watermark, self.leader.high_watermark)
        self.leader = None
        self.stats.lost()
        appended, self._appended = self._appended, deque()
        for each in appended:
            self.uncommitted.batches.extend(each.batches)
        self.uncommitted.transactions = self._committed_transactions.copy()
        self.commit_waits.tell_lost(-1, error)
        self._wake()

    # Committing

    def committed(self, offset: int) -> asyncio.Future[None] | None:
        if self.error is not None:
            raise self.error
        if self.leader is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller any more")
        if offset <= self.high_watermark:
            return None
        return committed_future(self.commit_waits, offset - 1)

    def _flush(self) -> None:
        """Write and sync everything appended so far."""
        log, leader = self._log, self.leader
        try:
            log.prepare_write()
        except Exception as error:
            self._retry_or_fail(error)
            return
        try:
            log.write_staged()
            end_offset = log.end_offset
            self._wake()  # followers may fetch it before it is durable here
        except KafkaError as error:
            self._fail(error)
            return
        try:
            if self._run_sync is None:
                log.sync()
                self._synced(end_offset, leader)
            else:
                task = asyncio.ensure_future(self._sync_in_thread(self._run_sync))
                task.add_done_callback(lambda done: self._sync_done(done, end_offset, leader))
        except Exception as error:
            self._retry_or_fail(error)

    def _retry_or_fail(self, error: BaseException) -> None:
        """Retry the flush after a shortage; fail the log after any other error. The appended batches are
        staged or written, and not committed."""
        if is_shortage(error) and not self._log.has_failed:
            self._note_shortage(error)
            asyncio.get_running_loop().call_later(RETRY_S, self._flush_again)
            return
        failure = error if isinstance(error, KafkaError) else None
        self._fail(failure or KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"metadata log: {error!r}"))

    def _flush_again(self) -> None:
        if self.error is None:
            self._flush()

    def _sync_done(self, done: asyncio.Future[None], end_offset: int, leader: Leader | None) -> None:
        if done.cancelled():
            self._fail(KafkaError(ErrorCode.NOT_CONTROLLER, "the controller is stopping"))
            return
        error = done.exception()
        if error is not None:
            self._retry_or_fail(error)
            return
        self._synced(end_offset, leader)

    def _synced(self, end_offset: int, leader: Leader | None) -> None:
        if self.leader is None:
            self._flushing = False  # it resigned meanwhile: a follower syncs on its own
            return
        if self.leader is not leader:
            # A later term: the batches synced for the earlier one may have been truncated since.
            asyncio.get_running_loop().call_soon(self._flush)
            return
        if self._log.end_offset > end_offset:
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._flushing = False
        if self.leader.synced(end_offset, self._clock.now_ms()):
            self._publish(self.leader.high_watermark)

    def replicated(self, node_id: int, directory_id: bytes, end_offset: int) -> None:
        """Note that another node has everything below this offset on its disk, as its fetch says."""
        leader = self.leader
        if leader is None:
            return
        if leader.fetched(node_id, directory_id, end_offset, self._clock.now_ms(), self._log.end_offset):
            self._publish(leader.high_watermark)

    def _publish(self, high_watermark: int) -> None:
        self.stats.committed(high_watermark)
        while self._appended and self._appended[0].end_offset <= high_watermark:
            appended = self._appended.popleft()
            self._committed_transactions = appended.transactions
            self._notify_listeners(appended.delta, appended.image)
        self.commit_waits.tell_committed(high_watermark)
        self._wake()

    def _fail(self, error: KafkaError) -> None:
        """Fail after a disk error: what waits was not committed, and nothing can be appended any more."""
        self._appended.clear()
        self.commit_waits.tell_lost(-1, error)
        super()._fail(error)

    async def close(self) -> None:
        """Wait for writes in progress, then leave files that open as clean."""
        if self._snapshotting is not None:
            await asyncio.wait([self._snapshotting])
        while self._flushing and self.error is None and self.leader is not None:
            is_alone = len(self.leader.voters.ids) == 1
            waiting = self.committed(self._log.end_offset) if is_alone else None
            try:
                await (asyncio.sleep(0) if waiting is None else waiting)
            except KafkaError:
                break  # `_fail` recorded it
        self.leader = None
        if self.error is None:
            if self._bytes_since_snapshot >= WORTH_A_SNAPSHOT_BYTES:
                await self.snapshot()
            self._log.close()
