"""`__cluster_metadata-0` on this node, led: records appended, synced, committed, told to listeners.

In: records of the active controller. Out: committed images, handed with their deltas to listeners. Whatever
was appended while a sync was on its way shares the next one. Epochs are durable in `quorum-state` before
anything is written in them.

Life: open (load snapshot and log) -> `lead` (LeaderChange) -> `append`, `committed` ... -> `renounce`, and
what a follower does (see `metadata_replica`), or `close`.
Does not know: what the records decide, elections. Other voters join here: their fetches move the high
watermark through `raft.leader`, and what they fetch is this log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

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

UNCOMMITTED_MAX = 10_000  # decisions on their way to the disk
RECORDS_PER_BATCH_MAX = 10_000  # as much as one request may write
BATCH_BYTES_MAX = 8 << 20  # as Kafka's quorum: followers must be able to fetch a batch whole
NO_TRANSACTION = TransactionFilter()


@dataclass(frozen=True, slots=True)
class _Appended:
    end_offset: int
    delta: MetadataDelta
    image: MetadataImage
    batches: Sequence[Batch]
    transactions: TransactionFilter = NO_TRANSACTION  # what is open behind it


class MetadataLog(MetadataReplica):
    """A journal (see `shard`) whose records are metadata records. All methods belong to the loop's thread."""

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
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._flushing = False
        self._committed_transactions = self.uncommitted.transactions

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark if self.leader is not None else self._known_high_watermark

    # Leading and appending

    def lead_alone(self) -> Leader:
        """Elects this node, the only voter, and opens its epoch in the log."""
        return self.lead(elect_sole_voter(self.election_state, self.last_epoch, self.local, self.membership))

    def lead(self, victory: Victory) -> Leader:
        """This node was elected: it opens its epoch in the log."""
        self.remember(victory.state)
        start = self._log.end_offset
        self.leader = Leader(self.local.id, victory.state.epoch, start, victory.membership.voters)
        committed = self.uncommitted.transactions
        delta, image, taken = self.uncommitted.take_all(self.image)
        if taken:
            self._appended.append(_Appended(start, delta, image, taken, self.uncommitted.transactions))
        self._committed_transactions = committed
        self.append_controls(victory.control_records)
        return self.leader

    def append_controls(self, records: Sequence[Message]) -> int:
        """Control records of the quorum; voters that they name are in force from here on."""
        epoch = self._leading().epoch
        now_ms = self._clock.now_ms()
        start = self._log.end_offset
        batch = build_quorum_batch(records, now_ms, base_offset=start, partition_leader_epoch=epoch)
        controls = tuple((start + index, record) for index, record in enumerate(records))
        self._note_controls(controls)
        if self._leading().voters != self.membership.voters:
            self._leading().change_voters(self.membership.voters)
        self._stage(batch, now_ms)
        end_offset = self._log.end_offset
        told = Batch(start, end_offset, epoch, now_ms, (), controls)
        before = self.last_image
        image = replace(before, provenance=Provenance(end_offset - 1, epoch, now_ms))
        behind = self._appended[-1].transactions if self._appended else self.uncommitted.transactions
        self._appended.append(_Appended(end_offset, MetadataDelta(before), image, (told,), behind))
        return end_offset

    def append(self, records: Sequence[Message]) -> int:
        """Appends records as one batch: they are there together or not at all, after a crash too. Only what
        follows from a broker's coming and going can be more than one batch holds; it is harmless in parts.
        """
        return self.append_packed(at_once(self.pack(records)))

    def pack(self, records: Sequence[Message]) -> Steps[Sequence[bytearray]]:
        """What `append` writes, made in steps; the batches get their place in the log from
        `append_packed`."""
        self._check_room()
        now_ms, level = self._clock.now_ms(), self._level_for(records)
        batches = []
        for first in range(0, len(records), RECORDS_PER_BATCH_MAX):
            some = records[first : first + RECORDS_PER_BATCH_MAX]
            batches.append((yield from pack(some, level, now_ms)))
        largest = max(map(len, batches))
        if largest > BATCH_BYTES_MAX:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"a metadata change of {largest} bytes is too large to be atomic"
            )
        return batches

    def append_packed(self, batches: Sequence[bytearray]) -> int:
        self._check_room()
        epoch, now_ms = self._leading().epoch, self._clock.now_ms()
        for batch in batches:
            assign(batch, 0, self._log.end_offset, epoch)
            self._stage(batch, now_ms)
        self.last_append_ms = now_ms
        return self._log.end_offset

    def _check_room(self) -> None:
        self._leading()
        if len(self._appended) >= UNCOMMITTED_MAX:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too many metadata changes wait for the disk")

    @property
    def last_image(self) -> MetadataImage:
        """With all that is appended, committed or not; of a leader."""
        return self._appended[-1].image if self._appended else self.image

    def _level_for(self, records: Sequence[Message]) -> int:
        """The metadata.version in force behind everything appended; a bootstrap brings its own."""
        image = self.last_image
        if image.is_empty:
            delta = MetadataDelta(image)
            delta.replay_all(records)
            image = delta.apply()
        return image.features.metadata_level

    def applied(
        self,
        delta: MetadataDelta,
        image: MetadataImage,
        records: Sequence[Message] = (),
        transactions: TransactionFilter = NO_TRANSACTION,
    ) -> None:
        """What the append before means; listeners hear of it when it is committed."""
        end_offset, at = self._log.end_offset, image.provenance
        batch = Batch(end_offset - len(records), end_offset, at.epoch, at.timestamp_ms, records)
        self._appended.append(_Appended(end_offset, delta, image, (batch,), transactions))

    def provenance(self) -> Provenance:
        """Where an image stands that holds everything appended so far."""
        epoch = self.leader.epoch if self.leader is not None else self.last_epoch
        return Provenance(self._log.end_offset - 1, epoch, self.last_append_ms)

    def _stage(self, batch: bytearray, now_ms: int) -> None:
        view = memoryview(batch)
        try:
            self._log.stage(view, BatchHeader(view), now_ms)
        except Shortage:
            raise  # nothing was staged: the request is refused, the next may be taken
        except KafkaError as error:
            self._fail(error)
            raise
        self._bytes_since_snapshot += len(batch)
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _leading(self) -> Leader:
        if self.error is not None:
            raise self.error
        if self.leader is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
        return self.leader

    def renounce(self, error: KafkaError) -> None:
        """Another leads, or nobody: whoever waits is refused; what they waited for may be committed yet."""
        if self.leader is None:
            return
        self._known_high_watermark = max(self._known_high_watermark, self.leader.high_watermark)
        self.leader = None
        appended, self._appended = self._appended, deque()
        for each in appended:
            self.uncommitted.batches.extend(each.batches)
        self.uncommitted.transactions = self._committed_transactions.copy()
        self._refuse_waiting(error)
        self._wake()

    # Committing

    def committed(self, offset: int) -> asyncio.Future[None] | None:
        if self.error is not None:
            raise self.error
        if self.leader is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller any more")
        if offset <= self.high_watermark:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        return future

    def _flush(self) -> None:
        """Writes and syncs all that was appended up to now."""
        log, leader = self._log, self.leader
        try:
            log.prepare_write()
        except Exception as error:
            self._try_again(error)
            return
        try:
            log.write_staged()
            end_offset = log.end_offset
            self._wake()  # followers may have it before it is durable here
        except KafkaError as error:
            self._fail(error)
            return
        try:
            if self._run_sync is None:
                log.sync()
                self._synced(end_offset, leader)
            else:
                task = asyncio.ensure_future(self._sync_beside(self._run_sync))
                task.add_done_callback(lambda done: self._sync_done(done, end_offset, leader))
        except Exception as error:
            self._try_again(error)

    def _try_again(self, error: BaseException) -> None:
        """What was appended is staged or written, and not committed. After a shortage the flush is made
        again; a disk that fails ends it."""
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
            self._try_again(error)
            return
        self._synced(end_offset, leader)

    def _synced(self, end_offset: int, leader: Leader | None) -> None:
        if self.leader is None:
            self._flushing = False  # it was renounced meanwhile: a follower syncs by itself
            return
        if self.leader is not leader:
            # Another term: what was synced for the one before may have been truncated since.
            asyncio.get_running_loop().call_soon(self._flush)
            return
        if self._log.end_offset > end_offset:
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._flushing = False
        if self.leader.synced(end_offset, self._clock.now_ms()):
            self._publish(self.leader.high_watermark)

    def replicated(self, node_id: int, directory_id: bytes, end_offset: int) -> None:
        """A fetch says that another node has everything below this offset on its disk."""
        leader = self.leader
        if leader is None:
            return
        if leader.fetched(node_id, directory_id, end_offset, self._clock.now_ms(), self._log.end_offset):
            self._publish(leader.high_watermark)

    def _publish(self, high_watermark: int) -> None:
        while self._appended and self._appended[0].end_offset <= high_watermark:
            appended = self._appended.popleft()
            self._committed_transactions = appended.transactions
            self._tell(appended.delta, appended.image)
        while self._waiting and self._waiting[0][0] <= high_watermark:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
        self._wake()

    def _fail(self, error: KafkaError) -> None:
        """The disk failed: nothing that waits was committed, and nothing can be any more."""
        self._appended.clear()
        self._refuse_waiting(error)
        super()._fail(error)

    def _refuse_waiting(self, error: KafkaError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # who waited may be gone: nobody else need hear of it

    async def close(self) -> None:
        """Waits for what is on its way, then leaves files that open as clean."""
        if self._snapshotting is not None:
            await asyncio.wait([self._snapshotting])
        while self._flushing and self.error is None and self.leader is not None:
            is_alone = len(self.leader.voters.ids) == 1
            waiting = self.committed(self._log.end_offset) if is_alone else None
            try:
                await (asyncio.sleep(0) if waiting is None else waiting)
            except KafkaError:
                break  # noted by `_fail`
        self.leader = None
        if self.error is None:
            if self._bytes_since_snapshot >= WORTH_A_SNAPSHOT_BYTES:
                await self.snapshot()
            self._log.close()
