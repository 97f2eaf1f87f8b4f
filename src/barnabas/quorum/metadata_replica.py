"""A copy of `__cluster_metadata-0`: fetched from the leader, truncated where it differs, an image of it.

In: batches, snapshots and the high watermark of a leader. Out: committed images, handed with their deltas to
listeners; the voters in force; what this copy can give to others: batches, snapshots, where epochs ended.
Does not know: leading (see `metadata_log`), elections, requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.quorum import metadata_loading, snapshot_files
from barnabas.quorum.metadata_loading import Loaded, QuorumLog
from barnabas.quorum.metadata_snapshots import MetadataSnapshots, SnapshotPolicy
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

QUORUM_STATE = "quorum-state"
WORTH_A_SNAPSHOT_BYTES = 64 << 10  # a tail of more than this is read slower at start than a snapshot
SHORTAGE_TOLD_EVERY_MS = 60_000
RECORDS_AT_ONCE_MAX = 100  # more are applied in pieces
WATCHING_MAX = 10_000  # fetches that wait for something new

logger = logging.getLogger(__name__)

Listener = Callable[[MetadataDelta, MetadataImage], None]
RunSlow = Callable[[Callable[[], None]], Awaitable[None]]
T = TypeVar("T")


class MetadataReplica:
    """All methods belong to the loop's thread."""

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
        # By offset: those behind a truncation are forgotten. The last is in force, committed or not.
        self._memberships = [(-1, membership), *self.loaded.memberships]
        self.election_state = self._load_election_state()
        self.image = self.loaded.image  # committed, as far as this node knows
        self.uncommitted = self.loaded.uncommitted
        self.error: KafkaError | None = None
        self.on_failure: Callable[[KafkaError], None] | None = (
            None  # a node cannot go on without its metadata
        )
        self._known_high_watermark = -1  # as the leader said
        self._run_sync: RunSlow | None = None
        self._run_slow: RunSlow | None = None
        self._listeners: list[Listener] = []
        self.listener_errors = 0
        self.unexpected = UnexpectedErrors()
        self._watching: list[asyncio.Future[None]] = []
        self._snapshots = MetadataSnapshots(
            disk, log.directory, policy, self.loaded.snapshots, clock.now_ms()
        )
        self._bytes_since_snapshot = self.loaded.bytes_since_snapshot
        self._snapshotting: asyncio.Task[None] | None = None
        self._shortage_told_ms = -SHORTAGE_TOLD_EVERY_MS

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
        """Of the last batch, or of the snapshot that the log goes on from."""
        epoch = self._log.epochs.latest_epoch
        return epoch if epoch >= 0 else self.loaded.last_epoch

    @property
    def membership(self) -> Membership:
        return self._memberships[-1][1]

    @property
    def committed_membership(self) -> Membership:
        """The last that is certain to stay."""
        upto = self.high_watermark
        return next(
            (found for at, found in reversed(self._memberships) if at < upto), self._memberships[0][1]
        )

    def add_listener(self, listener: Listener) -> None:
        """Called in the order of the log with what each commit changed. It should not raise: what it does
        then is only noted and counted, on leaders and followers alike. The image is right all the same, the
        other listeners are told, and the next change of the same object is another chance; a node that
        stopped instead would meet the same record, and the same exception, at its next start."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def run_slow_work_with(self, run_sync: RunSlow, run_slow: RunSlow | None = None) -> None:
        """From now on syncs and snapshots run beside the loop, in threads of their own each: a quorum waits
        for syncs, nobody for snapshots. Before that they are made where they fall: starting up there is
        nobody to keep waiting, and no thread to wait for."""
        self._run_sync = run_sync
        self._run_slow = run_slow or run_sync

    # What must not be forgotten

    @property
    def _state_path(self) -> str:
        return f"{self._log.directory}/{QUORUM_STATE}"

    def _load_election_state(self) -> ElectionState:
        try:
            return election_state.decode(self._disk.read(self._state_path).decode())
        except FileNotFoundError:
            return ElectionState()

    def remember(self, state: ElectionState) -> None:
        """Makes an epoch, a vote or a leader durable, before anybody hears of it."""
        membership = self.membership
        text = election_state.encode(state, membership.kraft_version, membership.voters.ids)
        self._disk.replace_file(self._state_path, text.encode())
        self.election_state = state

    # Following

    async def decode(self, data: bytes) -> dict[int, Batch]:
        """The batches of a fetch by their positions, in pieces: ten thousand partitions take a while."""

        def steps() -> Steps[dict[int, Batch]]:
            found = {}
            for position, header in headers(data):
                if header.base_offset >= self._log.end_offset:
                    validate(data, position)
                    found[position] = yield from read_in_steps(data, position, header)
            return found

        return await self.pieces.run(steps())

    def replicate(self, data: bytes, decoded: Mapping[int, Batch] = MappingProxyType({})) -> int:
        """Appends batches of the leader as they are; where the log ends now. Not durable before `sync`.
        `decoded` is what `decode` made of them."""
        now_ms = self._clock.now_ms()
        self._log.prepare_write()  # or the fetch is made again
        view = memoryview(bytearray(data))
        for position, header in headers(data):
            if header.base_offset < self._log.end_offset:
                continue  # a read gives whole batches: this one is here
            if header.base_offset > self._log.end_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"the leader sent offset {header.base_offset}, wanted is {self._log.end_offset}",
                )
            batch = decoded.get(position)
            if batch is None:
                validate(data, position)
                batch = read_batch(data, position, header)
            self._stage_fetched(view[position : position + header.size], position, data, now_ms)
            self._note_controls(batch.controls)
            self.uncommitted.add(batch)
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
        """Makes all that was appended durable: only then may the leader hear of it."""
        while True:
            try:
                if self._run_sync is None:
                    self._log.sync()
                else:
                    await self._sync_beside(self._run_sync)
                return
            except Exception as error:
                if not is_shortage(error):
                    if isinstance(error, KafkaError):
                        self._fail(error)
                    raise
                self._note_shortage(error)
            await asyncio.sleep(RETRY_S)

    async def _sync_beside(self, run_sync: RunSlow) -> None:
        work = self._log.begin_sync()
        try:
            await run_sync(work.run)
        finally:
            self._log.end_sync(work)

    def truncate(self, offset: int) -> None:
        """The leader does not have what begins here."""
        if offset < self.image.provenance.offset + 1:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"committed metadata would be lost: the leader's log ends at {offset}, "
                f"{self.image.provenance.offset + 1} is committed here",
            )
        logger.info("the metadata log is truncated from %d to %d", self._log.end_offset, offset)
        try:
            self._log.truncate_to(offset)
        except KafkaError as error:
            self._fail_unless_short(error)
            raise
        self.uncommitted.truncate(offset)
        while len(self._memberships) > 1 and self._memberships[-1][0] >= offset:
            self._memberships.pop()

    async def advance_in_pieces(self, high_watermark: int) -> None:
        """The same, with much to apply. Should this node lead meanwhile, or be given a snapshot, the batches
        are no more its to apply."""
        reached = min(high_watermark, self._log.end_offset)
        image, below = self.image, self.uncommitted.below(reached)
        if sum(len(batch.records) for batch in below) <= RECORDS_AT_ONCE_MAX:
            self.advance(high_watermark)
            return
        replayed = await self.pieces.run(self.uncommitted.replay_in_steps(image, below))
        if self.image is image and self.uncommitted.begins_with(below):
            self._known_high_watermark = max(self._known_high_watermark, reached)
            self._tell(*self.uncommitted.committed(below, replayed))
            self._wake()

    def advance(self, high_watermark: int) -> None:
        """The leader says that everything below is committed; what of it is here becomes the image."""
        reached = min(high_watermark, self._log.end_offset)
        if reached <= self._known_high_watermark:
            return
        self._known_high_watermark = reached
        found = self.uncommitted.commit(self.image, reached)
        if found is not None:
            self._tell(*found)
        self._wake()

    def install(self, snapshot: SnapshotId, data: bytes) -> None:
        """A snapshot of the leader in place of all that is here."""
        from barnabas.metadata.difference import difference  # rarely needed

        snapshot_files.store(self._disk, self._log.directory, snapshot, data)
        path = f"{self._log.directory}/{snapshot.file_name}"
        found = snapshot_files.load(self._disk, path, self._memberships[0][1])
        image = found.image(snapshot)
        try:
            self._log.truncate_fully_and_start_at(snapshot.end_offset)
            self._log.assign_epoch(snapshot.epoch, snapshot.end_offset)
            self._log.sync()
        except KafkaError as error:
            self._fail_unless_short(error)
            raise
        self.loaded.last_epoch = snapshot.epoch
        self.uncommitted.batches.clear()
        self.uncommitted.transactions = TransactionFilter()
        self.uncommitted.registered_at.clear()
        self.uncommitted.registered_at.update(dict.fromkeys(image.cluster.brokers, snapshot.end_offset - 1))
        self._memberships = [self._memberships[0], (snapshot.end_offset - 1, found.membership)]
        self._snapshots.add(snapshot, len(data), found.last_timestamp_ms)
        self._bytes_since_snapshot = 0
        self._known_high_watermark = max(self._known_high_watermark, snapshot.end_offset)
        delta = MetadataDelta(self.image)
        delta.replay_all(difference(self.image, image))
        self._tell(delta, image)
        logger.info("the metadata log goes on from the leader's snapshot %s", snapshot.file_name)

    def _note_controls(self, controls: Sequence[tuple[int, Message]]) -> None:
        before = after = self.membership
        for offset, record in controls:
            after = after.replay(record, offset)
        if after is not before:
            self._memberships.append((controls[-1][0], after))

    def _tell(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.image = image
        if not delta.is_empty:
            for listener in list(self._listeners):
                try:
                    listener(delta, image)
                except Exception:
                    self.listener_errors += 1
                    self.unexpected.note("telling of metadata up to offset", image.provenance.offset)

    # Giving

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from here on, committed or not."""
        return self._log.read(offset, max_bytes, self._log.end_offset).read()

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch not above this one, and where it ended in this log."""
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
        """Of the snapshot that the log goes on from there; formatting made the one of the empty log."""
        return next((known.epoch for known in self._snapshots.ids if known.end_offset == start_offset), 0)

    @property
    def snapshot_ids(self) -> list[SnapshotId]:
        """The snapshots that others may fetch, the oldest first; not the one that formatting makes."""
        return [found for found in self._snapshots.ids if found.end_offset > 0]

    async def read_snapshot(self, snapshot: SnapshotId) -> bytes | None:
        """A snapshot whole; None when there is none (any more)."""
        if snapshot not in self._snapshots.ids:
            return None
        path = f"{self._log.directory}/{snapshot.file_name}"
        with contextlib.suppress(FileNotFoundError):
            return await self._slowly(lambda: self._disk.read(path))
        return None

    async def changed(self, timeout_ms: int) -> None:
        """Waits until something is appended or committed, or leadership changes; at most this long."""
        if len(self._watching) >= WATCHING_MAX:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watching.append(future)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await future

    def _wake(self) -> None:
        if self._watching:
            watching, self._watching = self._watching, []
            for future in watching:
                if not future.done():
                    future.set_result(None)

    # Failing

    def give_up(self, error: KafkaError) -> None:
        """Something of the quorum that must be durable is not: this node cannot go on."""
        self._fail(error)

    def _fail_unless_short(self, error: KafkaError) -> None:
        """A shortage passes: what it interrupted is done again, as long as the log is in order."""
        if is_shortage(error) and not self._log.has_failed:
            self._note_shortage(error)
        else:
            self._fail(error)

    def _note_shortage(self, error: BaseException) -> None:
        now_ms = self._clock.now_ms()
        if not 0 <= now_ms - self._shortage_told_ms < SHORTAGE_TOLD_EVERY_MS:
            self._shortage_told_ms = now_ms
            logger.warning("the metadata log has to wait: %s; it is tried again every %.1f s", error, RETRY_S)

    def _fail(self, error: KafkaError) -> None:
        """The disk failed: nothing can be appended any more."""
        if self.error is None:
            self.error = error
            logger.error("the metadata log in %s failed: %s", self._log.directory, error)
        self._wake()
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
        membership = next(
            (found for at, found in reversed(self._memberships) if at < snapshot.end_offset),
            self._memberships[0][1],
        )
        data = await self.pieces.run(snapshot_files.encode_image(image, membership, now_ms))
        last_ms = image.provenance.timestamp_ms
        written = await self._slowly(
            partial(self._snapshots.write, snapshot, data, last_ms, log.size_bytes_from, now_ms)
        )
        if self._snapshots.written(written):
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
