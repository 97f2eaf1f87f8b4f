"""The driver of `__cluster_metadata-0`: elects, appends, syncs, commits, tells listeners, takes snapshots.

In: records of the active controller. Out: committed images, handed with their deltas to listeners. Whatever
was appended while a sync was on its way shares the next one. Epochs are durable in `quorum-state` before
anything is written in them.

Life: `open` (load snapshot and log) -> `lead` (elect, write LeaderChange) -> `append`, `committed` ... ->
`close`.
Does not know: what the records decide. Other voters and followers join here: their fetches move the high
watermark through `raft.leader`, and what they fetch is this log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from barnabas.metadata import serde
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.raft import election_state
from barnabas.raft.election import elect_sole_voter
from barnabas.raft.election_state import ElectionState
from barnabas.raft.leader import Leader
from barnabas.raft.voters import Membership, Voter
from barnabas.records.batch import BatchHeader
from barnabas.records.control import build_quorum_batch
from barnabas.records.record import Record, build_batch
from barnabas.runtime import metadata_loading
from barnabas.runtime.clock import Clock
from barnabas.runtime.disk import Disk
from barnabas.runtime.metadata_loading import Loaded, QuorumLog
from barnabas.runtime.metadata_snapshots import MetadataSnapshots, SnapshotPolicy

QUORUM_STATE = "quorum-state"
UNCOMMITTED_MAX = 10_000  # decisions on their way to the disk
WORTH_A_SNAPSHOT_BYTES = 64 << 10  # a tail of more than this is read slower at start than a snapshot
RECORDS_PER_BATCH_MAX = 10_000  # as much as one request may write
BATCH_BYTES_MAX = 8 << 20  # as Kafka's quorum: followers must be able to fetch a batch whole

logger = logging.getLogger(__name__)

Listener = Callable[[MetadataDelta, MetadataImage], None]
RunSlow = Callable[[Callable[[], None]], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Appended:
    end_offset: int
    delta: MetadataDelta
    image: MetadataImage


class MetadataLog:
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
        self._log = log
        self._disk = disk
        self._clock = clock
        self._local = local
        self.loaded: Loaded = metadata_loading.load(disk, log, membership)
        self.membership = self.loaded.membership
        self._remembered = self._load_election_state()
        self.image = self.loaded.image  # committed, as far as this node knows
        self.leader: Leader | None = None
        self.error: KafkaError | None = None
        self.on_failure: Callable[[KafkaError], None] | None = (
            None  # a node cannot go on without its metadata
        )
        self.last_append_ms = clock.now_ms()
        self._run_slow: RunSlow | None = None
        self._listeners: list[Listener] = []
        self._appended: deque[_Appended] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._flushing = False
        self._snapshots = MetadataSnapshots(
            disk, log.directory, policy, self.loaded.snapshots, self.last_append_ms
        )
        self._bytes_since_snapshot = self.loaded.bytes_since_snapshot
        self._snapshotting: asyncio.Task[None] | None = None

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark if self.leader is not None else -1

    def add_listener(self, listener: Listener) -> None:
        """Called in the order of the log with what each committed append changed. It must not raise."""
        self._listeners.append(listener)

    def run_slow_work_with(self, run_slow: RunSlow) -> None:
        """From now on syncs and snapshots run beside the loop. Before that they are made where they fall:
        starting up there is nobody to keep waiting, and no thread to wait for."""
        self._run_slow = run_slow

    # Electing and appending

    def lead(self) -> Leader:
        """Elects this node, the only voter, and opens its epoch in the log."""
        victory = elect_sole_voter(self._remembered, self.loaded.last_epoch, self._local, self.membership)
        kraft_version, voter_ids = victory.membership.kraft_version, victory.membership.voters.ids
        text = election_state.encode(victory.state, kraft_version, voter_ids)
        self._disk.replace_file(self._state_path, text.encode())
        start = self._log.end_offset
        epoch = victory.state.epoch
        self.leader = Leader(self._local.id, epoch, start, victory.membership.voters)
        now_ms = self._clock.now_ms()
        batch = build_quorum_batch(
            victory.control_records, now_ms, base_offset=start, partition_leader_epoch=epoch
        )
        told = len(victory.control_records) > 1
        self.membership = (
            Membership(kraft_version, victory.membership.voters, start) if told else victory.membership
        )
        self._stage(batch, now_ms)
        return self.leader

    @property
    def _state_path(self) -> str:
        return f"{self._log.directory}/{QUORUM_STATE}"

    def _load_election_state(self) -> ElectionState:
        try:
            return election_state.decode(self._disk.read(self._state_path).decode())
        except FileNotFoundError:
            return ElectionState()

    def append(self, records: Sequence[Message]) -> int:
        """Appends records as one batch: they are there together or not at all, after a crash too. Only what
        follows from a broker's coming and going can be more than one batch holds; it is harmless in parts.
        """
        leader = self._leading()
        if len(self._appended) >= UNCOMMITTED_MAX:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too many metadata changes wait for the disk")
        now_ms = self._clock.now_ms()
        level = self._level_for(records)
        packed = [Record(timestamp=now_ms, value=serde.encode(record, level)) for record in records]
        offset = self._log.end_offset
        batches = []
        for first in range(0, len(packed), RECORDS_PER_BATCH_MAX):
            some = packed[first : first + RECORDS_PER_BATCH_MAX]
            batches.append(build_batch(some, base_offset=offset + first, partition_leader_epoch=leader.epoch))
        largest = max(map(len, batches))
        if largest > BATCH_BYTES_MAX:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"a metadata change of {largest} bytes is too large to be atomic"
            )
        for batch in batches:
            self._stage(batch, now_ms)
        self.last_append_ms = now_ms
        return self._log.end_offset

    def _level_for(self, records: Sequence[Message]) -> int:
        """The metadata.version in force behind everything appended; a bootstrap brings its own."""
        image = self._appended[-1].image if self._appended else self.image
        if image.is_empty:
            delta = MetadataDelta(image)
            delta.replay_all(records)
            image = delta.apply()
        return image.features.metadata_level

    def applied(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """What the append before means; listeners hear of it when it is committed."""
        self._appended.append(_Appended(self._log.end_offset, delta, image))

    def provenance(self) -> Provenance:
        """Where an image stands that holds everything appended so far."""
        epoch = self.leader.epoch if self.leader is not None else self.loaded.last_epoch
        return Provenance(self._log.end_offset - 1, epoch, self.last_append_ms)

    def _stage(self, batch: bytearray, now_ms: int) -> None:
        view = memoryview(batch)
        try:
            self._log.stage(view, BatchHeader(view), now_ms)
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

    # Committing

    def committed(self, offset: int) -> Awaitable[None] | None:
        if self.error is not None:
            raise self.error
        if offset <= self.high_watermark:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        return future

    def _flush(self) -> None:
        """Writes and syncs all that was appended up to now."""
        log = self._log
        try:
            log.write_staged()
            end_offset = log.end_offset
            if self._run_slow is None:
                log.sync()
        except KafkaError as error:
            self._fail(error)
            return
        if self._run_slow is None:
            self._synced(end_offset)
        else:
            task = asyncio.ensure_future(self._run_slow(log.sync))
            task.add_done_callback(lambda done: self._sync_done(done, end_offset))

    def _sync_done(self, done: asyncio.Future[None], end_offset: int) -> None:
        if done.cancelled():
            self._fail(KafkaError(ErrorCode.NOT_CONTROLLER, "the controller is stopping"))
            return
        error = done.exception()
        if error is not None:
            failure = error if isinstance(error, KafkaError) else None
            self._fail(failure or KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"metadata log: {error}"))
            return
        self._synced(end_offset)

    def _synced(self, end_offset: int) -> None:
        if self._log.end_offset > end_offset:
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._flushing = False
        if self.leader is not None and self.leader.synced(end_offset, self._clock.now_ms()):
            self._publish(self.leader.high_watermark)

    def _publish(self, high_watermark: int) -> None:
        while self._appended and self._appended[0].end_offset <= high_watermark:
            appended = self._appended.popleft()
            self.image = appended.image
            if not appended.delta.is_empty:
                for listener in self._listeners:
                    listener(appended.delta, appended.image)
        while self._waiting and self._waiting[0][0] <= high_watermark:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def _fail(self, error: KafkaError) -> None:
        """The disk failed: nothing that waits was committed, and nothing can be any more."""
        if self.error is None:
            self.error = error
            logger.error("the metadata log in %s failed: %s", self._log.directory, error)
        waiting, self._waiting = self._waiting, deque()
        self._appended.clear()
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
        if self.on_failure is not None:
            on_failure, self.on_failure = self.on_failure, None
            on_failure(error)

    # Snapshots

    def maybe_snapshot(self) -> None:
        """Begins a snapshot of the committed image when enough was written, or enough time passed."""
        due = self._snapshots.is_due(self._bytes_since_snapshot, self._clock.now_ms())
        if due and self._snapshotting is None and self.error is None:
            self._snapshotting = asyncio.get_running_loop().create_task(self.snapshot())
            self._snapshotting.add_done_callback(self._snapshot_done)

    async def snapshot(self) -> None:
        """Writes a snapshot of the committed image, and deletes those that retention lets go, with the
        segments that are older than all that stay."""
        image, now_ms = self.image, self._clock.now_ms()
        tail_bytes, self._bytes_since_snapshot = self._bytes_since_snapshot, 0
        snapshot = self._snapshots.begin(image, now_ms)
        if snapshot is None:
            return
        if snapshot.end_offset == self._log.end_offset and tail_bytes >= WORTH_A_SNAPSHOT_BYTES:
            # All of it is synced. The next start has to check the log from its last segment on: from here.
            self._log.roll()
        log = self._log
        has_deleted = await self._slowly(
            partial(self._snapshots.write, image, self.membership, log.size_bytes_from, now_ms)
        )
        if has_deleted:
            await self._slowly(log.start_at(self._snapshots.first_end_offset, now_ms))

    async def _slowly(self, work: Callable[[], T]) -> T:
        """Beside the loop, once there is one to keep free."""
        if self._run_slow is None:
            return work()
        done: list[T] = []
        await self._run_slow(lambda: done.append(work()))
        return done[0]

    def _snapshot_done(self, task: asyncio.Task[None]) -> None:
        self._snapshotting = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("no snapshot of the metadata log could be written: %s", error)

    async def close(self) -> None:
        """Waits for what is on its way, then leaves files that open as clean."""
        if self._snapshotting is not None:
            await asyncio.wait([self._snapshotting])
        while self._flushing and self.error is None:
            waiting = self.committed(self._log.end_offset)
            try:
                await (asyncio.sleep(0) if waiting is None else waiting)
            except KafkaError:
                break  # noted by `_fail`
        self.leader = None
        if self.error is None:
            if self._bytes_since_snapshot >= WORTH_A_SNAPSHOT_BYTES:
                await self.snapshot()
            self._log.close()
