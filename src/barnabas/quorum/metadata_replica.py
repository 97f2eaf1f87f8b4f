"""A replica of `__cluster_metadata-0`: appends what it fetches, truncates where it diverges, keeps the image.

In: batches, snapshots and the high watermark of the leader. Out: committed images, handed with their deltas
to listeners; the voters in force; what other nodes fetch: batches, snapshots, the ends of epochs.
Does not know: leading (see `metadata_log`), elections, requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.quorum import metadata_loading, snapshot_files
from barnabas.quorum.metadata_loading import Loaded, QuorumLog
from barnabas.quorum.metadata_snapshots import MetadataSnapshots, SnapshotPolicy
from barnabas.quorum.quorum_stats import QuorumStats
from barnabas.quorum.uncommitted import Batch, read_batch, read_in_steps
from barnabas.raft import election_state
from barnabas.raft.election_state import ElectionState
from barnabas.raft.log_ends import EpochEnd
from barnabas.raft.snapshot_ids import SnapshotId
from barnabas.raft.voters import Membership, Voter
from barnabas.records.batch import headers, validate
from barnabas.runtime.clock import Clock
from barnabas.runtime.disk import Disk
from barnabas.runtime.pieces import Pieces
from barnabas.runtime.shortage import RETRY_S, is_shortage
from barnabas.runtime.unexpected import UnexpectedErrors

if TYPE_CHECKING:
    from barnabas.quorum.snapshot_installing import Prepared

QUORUM_STATE = "quorum-state"
WORTH_A_SNAPSHOT_BYTES = 64 << 10  # at start, a longer tail is slower to read than a snapshot
SHORTAGE_LOG_INTERVAL_MS = 60_000
RECORDS_AT_ONCE_MAX = 100  # more are applied in pieces
CHANGE_WAITERS_MAX = 10_000  # fetches that wait for a change

logger = logging.getLogger(__name__)

Listener = Callable[[MetadataDelta, MetadataImage], None]
RunSlow = Callable[[Callable[[], None]], Awaitable[None]]
T = TypeVar("T")


class MetadataReplica:
    """Call it from the loop's thread only."""

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
        self.pieces = Pieces(clock.work_s)
        self.local = local
        self.loaded: Loaded = metadata_loading.load(disk, log, membership, local)
        # By offset; a truncation drops those after it. The last one is in force, committed or not.
        self._memberships = [(-1, membership), *self.loaded.memberships]
        self.election_state = self._load_election_state()
        self.image = self.loaded.image  # committed, as far as this node knows
        self.uncommitted = self.loaded.uncommitted
        self.error: KafkaError | None = None
        self.on_failure: Callable[[KafkaError], None] | None = (
            None  # called once: a node cannot run without its metadata
        )
        self._known_high_watermark = -1  # the leader's, as last fetched
        self._run_sync: RunSlow | None = None
        self._run_slow: RunSlow | None = None
        self._listeners: list[Listener] = []
        self.listener_errors = 0
        self.stats = QuorumStats()
        self.unexpected = UnexpectedErrors()
        self._change_waiters: list[asyncio.Future[None]] = []
        self._snapshots = MetadataSnapshots(
            disk, log.directory, policy, self.loaded.snapshots, clock.now_ms()
        )
        self._bytes_since_snapshot = self.loaded.bytes_since_snapshot
        self._snapshotting: asyncio.Task[None] | None = None
        self._shortage_logged_ms = -SHORTAGE_LOG_INTERVAL_MS

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def high_watermark(self) -> int:
        return self._known_high_watermark

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, or of the snapshot before the log's start."""
        epoch = self._log.epochs.latest_epoch
        return epoch if epoch >= 0 else self.loaded.last_epoch

    @property
    def membership(self) -> Membership:
        return self._memberships[-1][1]

    @property
    def committed_membership(self) -> Membership:
        """The last membership that is below the high watermark."""
        upto = self.high_watermark
        return next(
            (found for at, found in reversed(self._memberships) if at < upto), self._memberships[0][1]
        )

    def add_listener(self, listener: Listener) -> None:
        """Call `listener` with what each commit changed, in the order of the log. It should not raise.
        If it does, the error is logged and counted. The image is right all the same, other listeners are
        called, and the next change of the same object is another chance. Stopping the node would not help: it
        would read the same record, and raise the same exception, at its next start."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def run_slow_work_with(self, run_sync: RunSlow, run_slow: RunSlow | None = None) -> None:
        """Run syncs and snapshots in threads from now on: one for syncs, which requests wait for, and one for
        snapshots. Before this call they run on the loop: at start nobody waits, and no threads exist."""
        self._run_sync = run_sync
        self._run_slow = run_slow or run_sync

    # Election state

    @property
    def _state_path(self) -> str:
        return f"{self._log.directory}/{QUORUM_STATE}"

    def _load_election_state(self) -> ElectionState:
        try:
            return election_state.decode(self._disk.read(self._state_path).decode())
        except FileNotFoundError:
            return ElectionState()

    def save_election_state(self, state: ElectionState) -> None:
        """Make an epoch, a vote or a leader durable, before any other node learns of it."""
        membership = self.membership
        text = election_state.encode(state, membership.kraft_version, membership.voters.ids)
        self._disk.replace_file(self._state_path, text.encode())
        self.election_state = state

    # Following

    async def decode(self, data: bytes) -> dict[int, Batch]:
        """Decode the batches of a fetch by position, in pieces: ten thousand partitions take long."""

        def steps() -> Steps[dict[int, Batch]]:
            found = {}
            for position, header in headers(data):
                if header.base_offset >= self._log.end_offset:
                    validate(data, position)
                    found[position] = yield from read_in_steps(data, position, header)
            return found

        return await self.pieces.run(steps())

    def replicate(self, data: bytes, decoded: Mapping[int, Batch] = MappingProxyType({})) -> int:
        """Append the leader's batches unchanged and return the end offset. They are not durable before
        `sync`. `decoded` is the result of `decode`."""
        now_ms = self._clock.now_ms()
        self._log.prepare_write()  # if it raises, the fetch is repeated
        view = memoryview(bytearray(data))
        for position, header in headers(data):
            if header.base_offset < self._log.end_offset:
                continue  # a fetch returns whole batches: this one is already here
            if header.base_offset > self._log.end_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"the leader sent offset {header.base_offset}, expected offset {self._log.end_offset}",
                )
            batch = decoded.get(position)
            if batch is None:
                validate(data, position)
                batch = read_batch(data, position, header)
            self._stage_fetched(view[position : position + header.size], position, data, now_ms)
            self._note_controls(batch.controls)
            self.uncommitted.add(batch)
            self.stats.fetched_records += batch.end_offset - batch.base_offset
            self._bytes_since_snapshot += header.size
        try:
            self._log.write_staged()
        except KafkaError as error:
            self._fail(error)
            raise
        self._wake()
        return self._log.end_offset

    def _stage_fetched(self, view: memoryview, position: int, data: bytes, now_ms: int) -> None:
        _, header = next(headers(view))
        try:
            self._log.stage(view, header, now_ms)
        except KafkaError as error:
            self._fail(error)
            raise

    async def sync(self) -> None:
        """Make everything appended durable. Only then may the next fetch report it to the leader."""
        while True:
            try:
                if self._run_sync is None:
                    self._log.sync()
                else:
                    await self._sync_in_thread(self._run_sync)
                return
            except Exception as error:
                if not is_shortage(error):
                    if isinstance(error, KafkaError):
                        self._fail(error)
                    raise
                self._note_shortage(error)
            await asyncio.sleep(RETRY_S)

    async def _sync_in_thread(self, run_sync: RunSlow) -> None:
        work = self._log.begin_sync()
        try:
            await run_sync(work.run)
        finally:
            self._log.end_sync(work)

    def truncate(self, offset: int) -> None:
        """Remove everything from this offset on, because the leader does not have it."""
        if offset < self.image.provenance.offset + 1:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"refused to truncate committed metadata: the leader's log ends at {offset}, "
                f"{self.image.provenance.offset + 1} is committed on this node",
            )
        logger.info("truncating the metadata log from %d to %d", self._log.end_offset, offset)
        try:
            self._log.truncate_to(offset)
        except KafkaError as error:
            self._fail_unless_shortage(error)
            raise
        self.uncommitted.truncate(offset)
        while len(self._memberships) > 1 and self._memberships[-1][0] >= offset:
            self._memberships.pop()

    async def advance_in_pieces(self, high_watermark: int) -> None:
        """Like `advance`, in pieces when there is much to apply.
        If this node becomes leader or installs a snapshot meanwhile, the result is discarded."""
        reached = min(high_watermark, self._log.end_offset)
        image, below = self.image, self.uncommitted.below(reached)
        if sum(len(batch.records) for batch in below) <= RECORDS_AT_ONCE_MAX:
            self.advance(high_watermark)
            return
        replayed = await self.pieces.run(self.uncommitted.replay_in_steps(image, below))
        if self.image is image and self.uncommitted.begins_with(below):
            self._known_high_watermark = max(self._known_high_watermark, reached)
            self._notify_listeners(*self.uncommitted.committed(below, replayed))
            self._wake()

    def advance(self, high_watermark: int) -> None:
        """Move the high watermark to the leader's, and apply to the image what it now commits."""
        reached = min(high_watermark, self._log.end_offset)
        if reached <= self._known_high_watermark:
            return
        self._known_high_watermark = reached
        found = self.uncommitted.commit(self.image, reached)
        if found is not None:
            self._notify_listeners(*found)
        self._wake()

    async def install(self, snapshot: SnapshotId, data: bytes, is_current: Callable[[], bool]) -> bool:
        """Replace the log and the image by a snapshot of the leader, all at once after long work in pieces
        and in the thread for syncs. Nothing changes, and the result is False, if this node no longer follows
        that leader by then, as `is_current` says."""
        from barnabas.quorum import snapshot_installing  # imported here because it is rarely needed

        before, membership = self.image, self._memberships[0][1]
        try:
            prepared = await self.pieces.run(snapshot_installing.prepare(snapshot, data, membership, before))
        except snapshot_files.CorruptSnapshot as error:  # the next fetch may get an undamaged one
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        if not is_current():
            return False
        await self._store(snapshot, data)
        if not is_current() or self.image is not before:
            return False
        self._put_in_place(prepared)
        await self.sync()
        return True

    async def _store(self, snapshot: SnapshotId, data: bytes) -> None:
        store = partial(snapshot_files.store, self._disk, self._log.directory, snapshot, data)
        if self._run_sync is None:
            store()
        else:
            await self._run_sync(store)

    def _put_in_place(self, prepared: Prepared) -> None:
        """Begin the log anew after a snapshot that is stored, and publish its image. In one step, so that no
        vote and no request sees the one without the other."""
        snapshot, image, content = prepared.snapshot, prepared.image, prepared.content
        try:
            self._log.truncate_fully_and_start_at(snapshot.end_offset)
            self._log.assign_epoch(snapshot.epoch, snapshot.end_offset)
        except KafkaError as error:
            self._fail_unless_shortage(error)
            raise
        self.loaded.last_epoch = snapshot.epoch
        self.uncommitted.batches.clear()
        self.uncommitted.transactions = TransactionFilter()
        self.uncommitted.registered_at.clear()
        self.uncommitted.registered_at.update(dict.fromkeys(image.cluster.brokers, snapshot.end_offset - 1))
        self._memberships = [self._memberships[0], (snapshot.end_offset - 1, content.membership)]
        self._snapshots.add(snapshot, prepared.size_bytes, content.last_timestamp_ms)
        self._bytes_since_snapshot = 0
        self._known_high_watermark = max(self._known_high_watermark, snapshot.end_offset)
        self.stats.snapshots_loaded += 1
        self._notify_listeners(prepared.delta, image)
        logger.info("installed the leader's snapshot %s into the metadata log", snapshot.file_name)

    def _note_controls(self, controls: Sequence[tuple[int, Message]]) -> None:
        before = after = self.membership
        for offset, record in controls:
            after = after.replay(record, offset)
        if after is not before:
            self._memberships.append((controls[-1][0], after))

    def _notify_listeners(self, delta: MetadataDelta, image: MetadataImage) -> None:
        before, self.image = self.image.provenance.offset, image
        if not delta.is_empty:
            started_ns = perf_counter_ns()
            for listener in list(self._listeners):
                try:
                    listener(delta, image)
                except Exception:
                    self.listener_errors += 1
                    self.unexpected.note("applying metadata up to offset", image.provenance.offset)
            self.stats.batch_us.observe((perf_counter_ns() - started_ns) // 1000)
            self.stats.batch_records.observe(max(image.provenance.offset - before, 0))

    # Serving other nodes

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Read whole batches from this offset on, committed or not."""
        return self._log.read(offset, max_bytes, self._log.end_offset).read()

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch that is not above this one, and its end offset in this log."""
        latest = self.last_epoch
        if epoch >= latest:
            return EpochEnd(latest, self._log.end_offset)
        found, end_offset = self._log.epochs.end_offset_for(epoch, self._log.end_offset)
        if found < 0:
            return EpochEnd(latest, self._log.end_offset)
        if found == epoch and epoch not in {entry.epoch for entry in self._log.epochs.entries}:
            return EpochEnd(self._epoch_before(end_offset), end_offset)
        return EpochEnd(found, end_offset)

    def _epoch_before(self, start_offset: int) -> int:
        """The epoch of the snapshot that ends at this offset; 0 for the empty log of a formatted folder."""
        return next((known.epoch for known in self._snapshots.ids if known.end_offset == start_offset), 0)

    @property
    def snapshot_ids(self) -> list[SnapshotId]:
        """The snapshots that others may fetch, oldest first. The one that formatting writes is not among
        them."""
        return [found for found in self._snapshots.ids if found.end_offset > 0]

    async def read_snapshot(self, snapshot: SnapshotId) -> bytes | None:
        """Read a whole snapshot; None if it does not exist or was deleted."""
        if snapshot not in self._snapshots.ids:
            return None
        path = f"{self._log.directory}/{snapshot.file_name}"
        with contextlib.suppress(FileNotFoundError):
            return await self._run_in_thread(lambda: self._disk.read(path))
        return None

    async def wait_for_change(self, timeout_ms: int) -> None:
        """Wait until something is appended or committed, or leadership changes, at most `timeout_ms`."""
        if len(self._change_waiters) >= CHANGE_WAITERS_MAX:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._change_waiters.append(future)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await future

    def _wake(self) -> None:
        if self._change_waiters:
            waiters, self._change_waiters = self._change_waiters, []
            for future in waiters:
                if not future.done():
                    future.set_result(None)

    # Failing

    def fail(self, error: KafkaError) -> None:
        """Stop the node, because state of the quorum that must be durable is not."""
        self._fail(error)

    def _fail_unless_shortage(self, error: KafkaError) -> None:
        """Retry after a shortage, which passes, as long as the log is intact. Fail after any other error."""
        if is_shortage(error) and not self._log.has_failed:
            self._note_shortage(error)
        else:
            self._fail(error)

    def _note_shortage(self, error: BaseException) -> None:
        now_ms = self._clock.now_ms()
        if not 0 <= now_ms - self._shortage_logged_ms < SHORTAGE_LOG_INTERVAL_MS:
            self._shortage_logged_ms = now_ms
            logger.warning("metadata log is short of a resource: %s; retrying every %.1f s", error, RETRY_S)

    def _fail(self, error: KafkaError) -> None:
        """Fail after a disk error: nothing can be appended any more."""
        if self.error is None:
            self.error = error
            logger.error("the metadata log in %s failed: %s", self._log.directory, error)
        self._wake()
        if self.on_failure is not None:
            on_failure, self.on_failure = self.on_failure, None
            on_failure(error)

    # Snapshots

    @property
    def latest_snapshot_bytes(self) -> int:
        return self._snapshots.latest_bytes

    @property
    def latest_snapshot_ms(self) -> int:
        return self._snapshots.latest_ms

    def maybe_snapshot(self) -> None:
        """Begin a snapshot of the committed image when enough bytes were written or enough time has
        passed."""
        due = self._snapshots.is_due(self._bytes_since_snapshot, self._clock.now_ms())
        if due and self._snapshotting is None and self.error is None:
            self._snapshotting = asyncio.get_running_loop().create_task(self.snapshot())
            self._snapshotting.add_done_callback(self._snapshot_done)

    async def snapshot(self) -> None:
        """Write a snapshot of the committed image. Delete snapshots past retention, and the segments that all
        remaining snapshots cover."""
        image, now_ms = self.image, self._clock.now_ms()
        tail_bytes, self._bytes_since_snapshot = self._bytes_since_snapshot, 0
        snapshot = self._snapshots.begin(image, now_ms)
        if snapshot is None:
            return
        if snapshot.end_offset == self._log.end_offset and tail_bytes >= WORTH_A_SNAPSHOT_BYTES:
            # All of it is synced. The next start has to check the log only from its last segment on: from
            # here.
            self._log.roll()
        log = self._log
        membership = next(
            (found for at, found in reversed(self._memberships) if at < snapshot.end_offset),
            self._memberships[0][1],
        )
        data = await self.pieces.run(snapshot_files.encode_image(image, membership, now_ms))
        last_ms = image.provenance.timestamp_ms
        written = await self._run_in_thread(
            partial(self._snapshots.write, snapshot, data, last_ms, log.size_bytes_from, now_ms)
        )
        if self._snapshots.written(written):
            await self._run_in_thread(log.delete_records_before(self._snapshots.first_end_offset, now_ms))

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread, once threads were given."""
        if self._run_slow is None:
            return work()
        done: list[T] = []
        await self._run_slow(lambda: done.append(work()))
        return done[0]

    def _snapshot_done(self, task: asyncio.Task[None]) -> None:
        self._snapshotting = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("could not write a snapshot of the metadata log: %s", error)
