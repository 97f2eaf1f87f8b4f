"""One partition's log: segments in a folder, appended to at the end, read anywhere.

In: batches that carry their final offsets (`stage`, then one `write_staged` for all of a tick); offsets to read
from. Out: slices of whole batches. Rolls by size, age, index size and offset range as Apache Kafka does, and
leaves the files that Apache Kafka would leave. All calls are synchronous; `sync`, cold reads and recovery are slow
and may run in a thread beside the others, everything else belongs to one thread.
Does not know: replication, high watermarks, who may read what. Retention and compaction change `segments` only by
assigning a new list, which readers in other threads see whole or not at all.
"""

from bisect import bisect_right
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BatchHeader
from barnabas.runtime.disk import IOV_MAX
from barnabas.storage import (
    checkpoints,
    lookup,
    opening,
    partition_metadata,
    producer_snapshots,
    reading,
    truncation,
)
from barnabas.storage.context import LogContext
from barnabas.storage.errors import disk_failure
from barnabas.storage.index import RELATIVE_OFFSET_MAX
from barnabas.storage.log_slice import LogSlice
from barnabas.storage.lookup import TimestampOffset
from barnabas.storage.names import TopicPartition
from barnabas.storage.segment import Segment
from barnabas.storage.segment_writer import SegmentWriter
from barnabas.storage.settings import INT64_MAX, LogSettings
from barnabas.storage.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from barnabas.replication.leader_epochs import LeaderEpochs
    from barnabas.replication.producers import ProducerStates

STAGED_BYTES_MAX = 32 << 20
HOT_BYTES = 16 << 20  # how far behind its end a log is taken to be in the page cache


class Log:
    """`end_offset` is the next offset to assign; below `written_offset` everything is in the file, below
    `recovery_point` everything is durable. Invariant: recovery_point <= written_offset <= end_offset."""

    __slots__ = (
        "_aborted",
        "_epoch",
        "_position",
        "_roll_now_ms",
        "_roll_offset",
        "_roll_timestamp",
        "_slow_position",
        "_staged",
        "_staged_headers",
        "_writer",
        "active",
        "context",
        "created_ms",
        "cursors",
        "directory",
        "end_offset",
        "epochs",
        "epochs_dirty",
        "failure",
        "last_sync_ms",
        "log_start_offset",
        "names_dirty",
        "producers",
        "recovery_point",
        "segments",
        "settings",
        "topic_id",
        "topic_partition",
        "truncations",
        "written_offset",
    )

    epochs: "LeaderEpochs"  # these three are loaded when first asked for: see __getattr__
    producers: "ProducerStates"
    topic_id: bytes | None

    def __init__(
        self,
        where: TopicPartition,
        directory: str,
        settings: LogSettings,
        context: LogContext,
        segments: list[Segment],
        *,
        log_start_offset: int,
        end_offset: int,
        recovery_point: int,
        now_ms: int,
    ) -> None:
        """See `Log.open` and `Log.create`; `segments` has at least one."""
        self.topic_partition = where
        self.directory = directory
        self.settings = settings
        self.context = context
        self.segments = segments
        self.active = segments[-1]
        self.log_start_offset = log_start_offset
        self.end_offset = end_offset
        self.written_offset = end_offset
        self.recovery_point = recovery_point
        self.created_ms = now_ms  # of the active segment, as far as this process knows
        self.last_sync_ms = now_ms
        self.cursors: dict[int, tuple[Segment, int]] = {}
        self._writer: SegmentWriter | None = None
        self._staged: list[memoryview] = []
        self._staged_headers: list[BatchHeader] = []
        self._aborted: list[AbortedTransaction] = []
        self._position = self.active.size  # in the active segment, behind what is staged
        self._slow_position = -1  # beyond it, staging takes the long way
        self._roll_offset = self._roll_timestamp = self._roll_now_ms = INT64_MAX
        self._epoch = -1
        self.epochs_dirty = False
        self.names_dirty = False
        self.truncations = 0
        self.failure: KafkaError | None = None  # set: the files are not to be trusted, appends are refused

    @classmethod
    def open(
        cls,
        directory: str,
        settings: LogSettings,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean: bool = False,
        now_ms: int,
        context: LogContext | None = None,
    ) -> "Log":
        """The log in a folder. `clean` trusts the files (see `opening`); otherwise everything from the recovery point
        on is checked, and rebuilt or cut off."""
        return opening.open_log(
            cls,
            directory,
            settings,
            context or LogContext(),
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean=clean,
            now_ms=now_ms,
        )

    @classmethod
    def create(
        cls,
        directory: str,
        settings: LogSettings,
        *,
        topic_id: bytes | None = None,
        start_offset: int = 0,
        now_ms: int,
        context: LogContext | None = None,
    ) -> "Log":
        """A new, empty log in a folder that does not exist yet."""
        return opening.create_log(
            cls,
            directory,
            settings,
            context or LogContext(),
            topic_id=topic_id,
            start_offset=start_offset,
            now_ms=now_ms,
        )

    def __repr__(self) -> str:
        return f"Log({self.directory}, {self.log_start_offset}..{self.end_offset})"

    # Appending

    def stage(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        """Take a batch that carries its final offsets and leader epoch; the view must stay unchanged until it is
        written. Update `producers` after this, not before: a roll takes their snapshot without this batch."""
        end = self._position + header.batch_length + 12
        last_offset = header.base_offset + header.last_offset_delta
        if (
            end > self._slow_position
            or header.base_offset < self.end_offset
            or last_offset > self._roll_offset
            or header.max_timestamp > self._roll_timestamp
            or now_ms > self._roll_now_ms
            or header.partition_leader_epoch != self._epoch
        ):
            self._make_room(header, now_ms)
            end = self._position + header.batch_length + 12
        self._staged.append(batch)
        self._staged_headers.append(header)
        self._position = end
        self.end_offset = last_offset + 1

    def write_staged(self) -> None:
        """Write what is staged with one call to the system, and index it. A failing disk is KAFKA_STORAGE_ERROR; then
        nothing that was staged is in the log."""
        staged = self._staged
        if not staged:
            return
        segment = self.active
        writer = self._writer
        assert writer is not None  # staging has loaded it
        try:
            segment.file_used = True
            file = segment.file or self.context.files.open(segment)
            if len(staged) <= IOV_MAX:
                written = self.context.disk.pwritev(file.descriptor, staged, segment.size)
            else:
                written = 0
            if written != self._position - segment.size:
                self._write_rest(file.descriptor, segment.size, written)
        except OSError as error:
            raise self._undo_staged(error) from error
        writer.add(self._staged_headers, self.settings.index_interval_bytes)
        self._staged = []
        self._staged_headers = []
        self.written_offset = self.end_offset
        if self._aborted:
            self._store_aborted()
        if self.epochs_dirty:
            self.store_epochs(sync=False)

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """An abort marker was staged: its transaction goes to the index once the marker is written."""
        self._aborted.append(transaction)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """A leader epoch begins here (batches say so themselves when they are staged)."""
        if epoch >= 0 and self.epochs.assign(epoch, start_offset):
            self.epochs_dirty = True
        self._epoch = epoch

    def _make_room(self, header: BatchHeader, now_ms: int) -> None:
        """The long way of `stage`: a new segment, a full buffer, a new leader epoch, or an append that is wrong."""
        if self.failure is not None:
            raise self.failure
        settings = self.settings
        if header.base_offset < self.end_offset:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"{self.topic_partition}: batch at offset {header.base_offset} after offset {self.end_offset - 1}",
            )
        if header.size > settings.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {header.size} bytes exceeds the segment size of {self.topic_partition} "
                f"(segment.bytes is {settings.segment_bytes})",
            )
        writer = self._writer or self._begin_appending()
        if self._position + header.size > self._slow_position:
            self.write_staged()
        if self._must_roll(writer, header, now_ms):
            self.roll(header.base_offset, now_ms=now_ms)
        if self._position == 0:
            self.created_ms = now_ms
            self._set_age_limit(header.max_timestamp)
        self._set_size_limit()
        if header.partition_leader_epoch != self._epoch:
            self.assign_epoch(header.partition_leader_epoch, header.base_offset)

    def _must_roll(self, writer: SegmentWriter, header: BatchHeader, now_ms: int) -> bool:
        settings = self.settings
        if self._position == 0:
            return header.last_offset - self.active.base_offset > RELATIVE_OFFSET_MAX
        return (
            self._position + header.size > settings.segment_bytes
            or header.last_offset > self._roll_offset
            or header.max_timestamp > self._roll_timestamp
            or now_ms > self._roll_now_ms
            or writer.room(settings.segment_index_bytes) <= 0
        )

    def _begin_appending(self) -> SegmentWriter:
        active = self.active
        writer = self._writer = SegmentWriter.resume(active, self.written_offset)
        self._roll_offset = active.base_offset + RELATIVE_OFFSET_MAX
        self._roll_timestamp = self._roll_now_ms = INT64_MAX
        first_timestamp = active.first_timestamp()
        if first_timestamp is not None:
            self._set_age_limit(first_timestamp)
        self._epoch = self.epochs.latest_epoch
        return writer

    def _set_age_limit(self, first_timestamp: int) -> None:
        """A segment's age counts in its records' time, or by the clock if they have none."""
        settings = self.settings
        jitter_ms = 0
        if settings.segment_jitter_ms:
            jitter_ms = self.context.rng.randrange(min(settings.segment_jitter_ms, settings.segment_ms))
        age_ms = settings.segment_ms - jitter_ms
        self._roll_timestamp = first_timestamp + age_ms if first_timestamp >= 0 else INT64_MAX
        self._roll_now_ms = self.created_ms + age_ms if first_timestamp < 0 else INT64_MAX

    def _set_size_limit(self) -> None:
        """How far staging may go before anyone has to look: segment size, buffer, room in the indexes."""
        assert self._writer is not None
        settings = self.settings
        room = self._writer.room(settings.segment_index_bytes) - 1
        ahead = min(STAGED_BYTES_MAX, room * settings.index_interval_bytes)
        self._slow_position = min(settings.segment_bytes, self.active.size + ahead)

    def _write_rest(self, descriptor: int, position: int, written: int) -> None:
        """Finish a write that the system took only in part, or that has more views than it takes at once."""
        views, skip = self._staged, written
        position += written
        first = 0
        while skip >= len(views[first]):
            skip -= len(views[first])
            first += 1
            if first == len(views):
                return
        pending = [memoryview(views[first])[skip:], *views[first + 1 :]]
        while pending:
            count = self.context.disk.pwritev(descriptor, pending[:IOV_MAX], position)
            if count <= 0:
                raise OSError(f"nothing written at byte {position}")
            position += count
            done = 0
            while done < len(pending) and count >= len(pending[done]):
                count -= len(pending[done])
                done += 1
            pending = pending[done:]
            if count:
                pending[0] = memoryview(pending[0])[count:]

    def _undo_staged(self, error: OSError) -> KafkaError:
        """Back to what is written: file, offsets, leader epochs, producers."""
        segment = self.active
        failure = disk_failure("append to", segment.path, error)
        self.discard_staged()
        try:
            self.context.disk.ftruncate(segment.open().descriptor, segment.size)
            self.epochs.truncate_from_end(self.written_offset)
            truncation.reload_producers(self)
        except (OSError, KafkaError):
            self.failure = failure  # the file may hold what nobody wrote: no more appends in this life
        return failure

    def discard_staged(self) -> None:
        self._staged = []
        self._staged_headers = []
        self._aborted = []
        self.end_offset = self.written_offset
        self.restart_appending()

    def restart_appending(self) -> None:
        """The active segment is another one, or has changed behind our back: look at it again before appending."""
        self._position = self.active.size
        self._slow_position = -1
        self._writer = None

    def _store_aborted(self) -> None:
        active = self.active
        for transaction in self._aborted:
            active.add_transaction(transaction)
        self._aborted = []

    # Rolling, syncing, closing

    def roll(self, next_offset: int | None = None, *, now_ms: int | None = None) -> None:
        """Complete the active segment and begin another; the old one wants `sync` (see `LogContext.on_roll`)."""
        self.write_staged()
        base_offset = self.end_offset if next_offset is None else max(next_offset, self.end_offset)
        if base_offset == self.active.base_offset:
            return  # nothing in it yet
        writer = self._writer or self._begin_appending()
        producers = self.producers
        segment = Segment(self.context, self.directory, base_offset)
        try:
            writer.finish()
            producer_snapshots.take(self.context, self.directory, producers, base_offset, sync=False)
            SegmentWriter.create(segment, self.preallocated_bytes())
        except OSError as error:
            self.failure = disk_failure("roll", self.directory, error)
            raise self.failure from error
        self.active = segment
        self.segments = [*self.segments, segment]
        self.names_dirty = True
        self.restart_appending()
        self._begin_appending()
        if now_ms is not None:
            self.created_ms = now_ms
        self.context.on_roll(self, base_offset)

    def is_sync_due(self, now_ms: int) -> bool:
        """Whether `flush.messages` or `flush.ms` ask for a `sync` now."""
        unsynced = self.written_offset - self.recovery_point
        return unsynced > 0 and (
            unsynced >= self.settings.flush_messages or now_ms - self.last_sync_ms >= self.settings.flush_ms
        )

    def sync(self, offset: int | None = None, now_ms: int | None = None) -> None:
        """Make everything below `offset` durable (default: all that is written) and move the recovery point.

        Waits for the disk: call it from a thread. Segments, their names, their indexes and snapshots go first.
        """
        target = self.written_offset if offset is None else min(offset, self.written_offset)
        truncations, recovery_point = self.truncations, self.recovery_point
        if target > recovery_point or self.names_dirty:
            segments = self.segments
            try:
                if self.epochs_dirty:
                    self.store_epochs(sync=True)
                for position, segment in enumerate(segments):
                    ends_before = (
                        position + 1 < len(segments) and segments[position + 1].base_offset <= recovery_point
                    )
                    if not ends_before and segment.base_offset < max(target, 1):
                        segment.sync()
                        self.context.disk.sync_file(
                            producer_snapshots.path_of(self.directory, segment.base_offset)
                        )
                if self.names_dirty:
                    self.names_dirty = False
                    self.context.disk.sync_directory(self.directory)
            except OSError as error:
                raise disk_failure("sync", self.directory, error) from error
            if truncations == self.truncations:
                self.recovery_point = max(self.recovery_point, target)
        if now_ms is not None:
            self.last_sync_ms = now_ms

    def store_epochs(self, *, sync: bool) -> None:
        """Write `leader-epoch-checkpoint` as it is in memory."""
        self.epochs_dirty = False
        checkpoints.store_epochs(self.context.disk, self.directory, self.epochs, sync=sync)

    def preallocated_bytes(self) -> int:
        return self.settings.segment_bytes if self.settings.preallocate else 0

    def close(self) -> None:
        """Leave files that can be opened as clean: everything durable, indexes final, producers in a snapshot."""
        self.write_staged()
        try:
            if self._writer is not None:
                producers = self.producers
                if self.end_offset > self.segments[0].base_offset:
                    producer_snapshots.take(
                        self.context, self.directory, producers, self.end_offset, sync=True
                    )
                self._writer.finish()
                self._writer = None
                self._slow_position = -1
                self.names_dirty = True
        except OSError as error:
            raise disk_failure("close", self.directory, error) from error
        self.sync()
        for segment in self.segments:
            self.context.files.close(segment)

    # Truncating and deleting

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on, with the batch that holds it; False when there was nothing to drop."""
        self.write_staged()
        return truncation.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything; the log goes on at `offset`."""
        self.discard_staged()
        truncation.truncate_fully_and_start_at(self, offset, log_start_offset)

    def advance_log_start(self, offset: int) -> bool:
        """Records below `offset` are no more (DeleteRecords, retention); their segments may be dropped."""
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        if self.epochs.truncate_from_start(offset):
            self.epochs_dirty = True
        self.producers.advance_log_start(offset)
        return True

    def rename(self, directory: str) -> None:
        """The folder gets another name (`-delete`, `-stray`, or loses `-future`); readers do not notice."""
        truncation.rename(self, directory)

    def delete(self) -> None:
        """Remove the folder and everything in it; slices that are being read stay readable."""
        self.discard_staged()
        truncation.delete(self)

    # Reading

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def is_hot(self, offset: int) -> bool:
        """Whether a read from here very likely touches no disk, so that it may run on the event loop."""
        writer = self._writer
        if writer is None:
            return offset >= self.written_offset
        return offset >= writer.recent_start or (
            offset >= self.active.base_offset
            and writer.offset_index.position_before(offset) >= self.active.size - HOT_BYTES
        )

    def read(
        self, offset: int, max_bytes: int, upper_offset: int = INT64_MAX, at_least_one: bool = True
    ) -> LogSlice:
        """Whole batches from the one that holds `offset` on, all below `upper_offset` (high watermark or last stable
        offset), at most `max_bytes`; a first batch that is larger comes whole if `at_least_one`."""
        written_offset = self.written_offset
        if not self.log_start_offset <= offset <= self.end_offset:
            raise reading.out_of_range(self, offset)
        if offset >= written_offset or offset >= upper_offset:
            return LogSlice(None, 0, 0, offset, offset)
        writer = self._writer
        if writer is None or offset < writer.recent_start:
            return reading.read(self, offset, max_bytes, upper_offset, at_least_one)
        next_offsets, positions = writer.recent_next_offsets, writer.recent_positions
        first = bisect_right(next_offsets, offset)
        start = positions[first]
        stop = len(positions)  # batches first..stop-1
        if upper_offset < written_offset:
            stop = bisect_right(next_offsets, upper_offset)
        end = positions[stop] if stop < len(positions) else self.active.size
        if end - start > max_bytes:
            stop = bisect_right(positions, start + max_bytes) - 1
            if stop <= first:
                if not at_least_one or end <= start:
                    return LogSlice(None, 0, 0, offset, offset)
                stop = first + 1
            end = positions[stop] if stop < len(positions) else self.active.size
        if end <= start:
            return LogSlice(None, 0, 0, offset, offset)
        return LogSlice(
            self.active.open(), start, end - start, offset, next_offsets[stop - 1], True, self.context.disk
        )

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record whose timestamp is `timestamp` or later."""
        return lookup.offset_for_timestamp(self, timestamp)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp."""
        return lookup.max_timestamp_offset(self)

    def aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records in [offset, upper_offset): what read-committed readers skip."""
        return reading.aborted_transactions(self, offset, upper_offset)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Only for slots that are still empty: most logs of a node are idle and never need these."""
            if name == "epochs":
                self.epochs = checkpoints.load_epochs(self.context.disk, self.directory)
            elif name == "producers":
                truncation.reload_producers(self)
            elif name == "topic_id":
                self.topic_id = partition_metadata.load(self.context.disk, self.directory)
            else:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return object.__getattribute__(self, name)
