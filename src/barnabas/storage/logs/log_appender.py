"""The end of a partition's log: batches are staged, written together, and rolled into new segments.

In: batches that carry their final offsets (`stage`), then one `write_staged` for all batches of a tick. Out:
the file, index entries, and the offsets `end_offset`, `written_offset` and `recovery_point`. Segments roll by
size, age, index size and offset range, as in Apache Kafka. Staging a batch is fast: it compares a few numbers
with limits that were computed before.
Does not know: reading, recovery, replication.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import LOG_OVERHEAD, BatchHeader, place
from barnabas.records.plain_batch import PlainBatch
from barnabas.replication.leader_epochs import LeaderEpochs
from barnabas.replication.producers import ProducerStates
from barnabas.runtime.disk import IOV_MAX
from barnabas.runtime.shortage import Shortage
from barnabas.storage.files import checkpoints, partition_metadata
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.files.partial_writes import finish_write
from barnabas.storage.logs import lazy_loading, producer_snapshots
from barnabas.storage.logs.context import LogContext
from barnabas.storage.segments.index import RELATIVE_OFFSET_MAX
from barnabas.storage.segments.segment import CorruptLog, Segment
from barnabas.storage.segments.segment_writer import Extent, SegmentWriter
from barnabas.storage.segments.settings import INT64_MAX, LogSettings
from barnabas.storage.segments.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from barnabas.storage.logs.truncation import Truncation

STAGED_BYTES_MAX = 32 << 20
SEGMENT_BYTES_MAX = 2**31 - 1  # positions in an index have 32 bits

logger = logging.getLogger(__name__)


class LogAppender:
    """`end_offset` is the next offset to assign. Records below `written_offset` are in the file. Records
    below `recovery_point` are durable. Invariant: recovery_point <= written_offset <= end_offset."""

    __slots__ = (
        "_aborted", "_epoch", "_fast_position_max", "_position", "_roll_now_ms", "_roll_offset",
        "_roll_timestamp", "_staged", "_staged_extents", "_staging_error", "_writer", "active", "context",
        "created_ms", "cursors", "directory", "end_offset", "epochs", "epochs_dirty", "failure",
        "folder_dirty", "folder_syncs", "indexes_synced_to", "is_claimed", "is_moving", "is_new",
        "last_sync_ms", "log_start_offset", "opened_at_offset", "producers", "recovery_point", "segments",
        "settings", "topic_id", "topic_partition", "truncation", "truncations", "written_offset", "written_s",
    )  # fmt: skip

    epochs: LeaderEpochs  # these three are loaded on first use: see __getattr__
    producers: ProducerStates
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
        self.written_s = float("-inf")  # the time of the last append
        self.recovery_point = recovery_point
        self.indexes_synced_to = self.active.base_offset  # final indexes of segments below it are durable
        self.opened_at_offset = end_offset  # this process wrote the records above
        self.created_ms = now_ms  # of the active segment, or when this process opened the log
        self.last_sync_ms = now_ms
        self.cursors: dict[int, tuple[Segment, int, int]] = {}  # offset: segment, position, `truncations`
        self._writer: SegmentWriter | None = None
        self._staged: list[memoryview] = []
        self._staged_extents: list[Extent] = []
        self._aborted: list[AbortedTransaction] = []
        self._position = self.active.size  # the end of the staged batches in the active segment
        self._fast_position_max = -1  # a batch that ends beyond it needs `_prepare_to_stage`
        self._roll_offset = self._roll_timestamp = self._roll_now_ms = INT64_MAX
        self._epoch = -1
        self.epochs_dirty = False
        self.folder_dirty = False
        self.folder_syncs = 0  # syncs under way that found `folder_dirty` set
        self.is_new = False  # the name of its folder is not durable yet
        self.is_claimed = False  # segments are being replaced or deleted: see `Log.claim`
        self.is_moving = False  # the log is being copied to another dir and must not be compacted
        self.truncation: Truncation | None = None  # under way: see `truncation`
        self.truncations = 0
        self._staging_error: KafkaError | None = None  # `write_early` lost staged batches; see there
        self.failure: KafkaError | None = None  # if set, the files cannot be trusted and appends are refused

    @property
    def has_failed(self) -> bool:
        """Whether all further appends are refused."""
        return self.failure is not None

    @property
    def producers_loaded(self) -> bool:
        """Whether `producers` was loaded."""
        try:
            object.__getattribute__(self, "producers")
        except AttributeError:
            return False
        return True

    # Appending

    def stage(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        """Stage a batch that carries its final offsets and leader epoch. The view must stay unchanged until
        it is written. Update `producers` after this call: if it rolls, the snapshot must not contain this
        batch."""
        end = self._position + header.batch_length + LOG_OVERHEAD
        last_offset = header.base_offset + header.last_offset_delta
        if (
            end > self._fast_position_max
            or header.base_offset < self.end_offset
            or last_offset > self._roll_offset
            or header.max_timestamp > self._roll_timestamp
            or now_ms > self._roll_now_ms
            or header.partition_leader_epoch != self._epoch
        ):
            self._prepare_to_stage(header, now_ms)
            end = self._position + header.batch_length + LOG_OVERHEAD
        self._staged.append(batch)
        self._staged_extents.append((last_offset, header.max_timestamp, header.batch_length + LOG_OVERHEAD))
        self._position = end
        self.end_offset = last_offset + 1

    def stage_plain(self, batch: memoryview, plain: PlainBatch, leader_epoch: int, now_ms: int) -> int:
        """Assign offsets to a plain batch and stage it. Returns its base offset, or -1 if nothing was done
        and the caller has to use `stage`."""
        size, delta, max_timestamp, _ = plain
        end = self._position + size
        base_offset = self.end_offset
        last_offset = base_offset + delta
        if (
            end > self._fast_position_max
            or last_offset > self._roll_offset
            or max_timestamp > self._roll_timestamp
            or now_ms > self._roll_now_ms
            or leader_epoch != self._epoch
        ):
            return -1
        place(batch, 0, base_offset, size - LOG_OVERHEAD, leader_epoch)
        self._staged.append(batch)
        self._staged_extents.append((last_offset, max_timestamp, size))
        self._position = end
        self.end_offset = last_offset + 1
        return base_offset

    def write_staged(self) -> None:
        """Write all staged batches with one system call and index them. Raises KAFKA_STORAGE_ERROR if the
        disk fails; then none of them is in the log."""
        staged = self._staged
        if not staged:
            if self._staging_error is not None:
                lost, self._staging_error = self._staging_error, None
                raise lost
            return
        segment = self.active
        writer = self._writer
        assert writer is not None  # `stage` has loaded it
        file = None
        try:
            if self._aborted or self.epochs_dirty:
                self.context.require_descriptors()  # for `_write_companion_files`
            segment.file_used = True
            file = segment.file or self.context.files.open(segment, is_writer=True)
            disk = self.context.disk
            written = disk.pwritev(file.descriptor, staged, segment.size) if len(staged) <= IOV_MAX else 0
            if written != self._position - segment.size:
                finish_write(disk, file.descriptor, staged, segment.size, written)
        except OSError as error:
            raise self._undo_staged(error, is_opened=file is not None) from error
        writer.add(self._staged_extents, self.settings.index_interval_bytes)
        self._staged = []
        self._staged_extents = []
        self.written_offset = self.end_offset
        self.written_s = self.context.time()
        if self._aborted or self.epochs_dirty:
            self._write_companion_files()

    def prepare_write(self) -> None:
        """Make sure that `write_staged` has the descriptors that it needs. Otherwise raise `Shortage`; the
        staged batches stay staged."""
        try:
            if self._aborted or self.epochs_dirty:
                self.context.require_descriptors()
            self.active.open(is_writer=True)
        except OSError as error:
            raise self.context.failure("append to", self.active.path, error) from error

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Add a transaction to the transaction index when its abort marker, which is staged, is written."""
        self._aborted.append(transaction)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Start a leader epoch at an offset. `stage` calls this for batches with a new epoch."""
        if epoch >= 0 and self.epochs.assign(epoch, start_offset):
            self.epochs_dirty = True
        self._epoch = epoch

    def _prepare_to_stage(self, header: BatchHeader, now_ms: int) -> None:
        """The slow path of `stage`: roll the segment, write a full buffer, start a new leader epoch, or
        refuse the batch."""
        refusal = self.failure or self._staging_error
        if refusal is not None:
            raise refusal
        self.refuse_while_truncating()
        settings = self.settings
        if header.base_offset < self.end_offset:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"{self.topic_partition}: batch at offset {header.base_offset}, {self.end_offset} is next",
            )
        if header.size > settings.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {header.size} bytes exceeds the segment size of {self.topic_partition} "
                f"(segment.bytes is {settings.segment_bytes})",
            )
        writer = self._writer or self._begin_appending()
        must_roll = self._must_roll(writer, header, now_ms)
        if must_roll or self._position + header.size > self._fast_position_max:
            self.write_early()
            must_roll = must_roll or self._must_roll(writer, header, now_ms)
        if must_roll:
            # If there is a gap in front of the batch, it must lie within the new segment: recovery treats a
            # gap between two segments as lost data.
            is_near = header.last_offset - self.end_offset <= RELATIVE_OFFSET_MAX
            try:
                self.roll(self.end_offset if is_near else header.base_offset, now_ms=now_ms)
            except Shortage:
                if not self._may_grow(header):
                    raise
        if self._position == 0:
            self.created_ms = now_ms
            self._set_age_limit(header.max_timestamp)
        self._set_size_limit()
        if header.partition_leader_epoch != self._epoch:
            self.assign_epoch(header.partition_leader_epoch, header.base_offset)

    def refuse_while_truncating(self) -> None:
        """Raise NOT_LEADER_OR_FOLLOWER while the log is being truncated. Only followers truncate, so clients
        retry with the leader."""
        truncation = self.truncation  # read once: another thread may end it meanwhile
        if truncation is not None:
            reason = f"{self.topic_partition} is being truncated to offset {truncation.offset}"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)

    def write_early(self) -> None:
        """Write in the middle of a tick. If that fails, the log refuses further batches until `write_staged`
        has reported the error to the callers that staged before."""
        try:
            self.write_staged()
        except KafkaError as error:
            self._staging_error = error
            raise

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

    def _may_grow(self, header: BatchHeader) -> bool:
        """Whether the segment may grow by one more batch although it should roll, because there are no
        descriptors for a new one. The next batch tries to roll again."""
        return (
            self._staging_error is None
            and self.failure is None
            and self._writer is not None
            and self._position + header.size <= SEGMENT_BYTES_MAX
            and header.last_offset <= self.active.base_offset + RELATIVE_OFFSET_MAX
        )

    def _begin_appending(self) -> SegmentWriter:
        try:
            return self._load_active_segment()
        except OSError as error:
            raise self.context.failure("read", self.active.path, error) from error
        except CorruptLog as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _load_active_segment(self) -> SegmentWriter:
        active = self.active
        found = active.next_offset()
        if active.size and found > self.end_offset:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{active.path} ends at offset {found}, but the log was closed at {self.end_offset}: "
                "the file was changed since",
            )
        writer = self._writer = SegmentWriter.resume(active, self.written_offset)
        self._roll_offset = active.base_offset + RELATIVE_OFFSET_MAX
        self._roll_timestamp = self._roll_now_ms = INT64_MAX
        first_timestamp = active.first_timestamp()
        if first_timestamp is not None:
            self._set_age_limit(first_timestamp)
            if self.context.disk.is_outdated(active.path):
                self._roll_now_ms = (
                    -1
                )  # encryption was switched on or off, or has a new key: begin a new file
        self._epoch = self.epochs.latest_epoch
        self.load_producers()
        return writer

    def _set_age_limit(self, first_timestamp: int) -> None:
        """Set the time at which the segment rolls, by its records' timestamps, or by the clock without
        them."""
        settings = self.settings
        jitter_ms = 0
        if settings.segment_jitter_ms:
            jitter_ms = self.context.rng.randrange(min(settings.segment_jitter_ms, settings.segment_ms))
        age_ms = settings.segment_ms - jitter_ms
        self._roll_timestamp = first_timestamp + age_ms if first_timestamp >= 0 else INT64_MAX
        self._roll_now_ms = self.created_ms + age_ms if first_timestamp < 0 else INT64_MAX

    def _set_size_limit(self) -> None:
        """Compute the position up to which `stage` needs no further checks: segment size, buffer, index
        space."""
        assert self._writer is not None
        settings = self.settings
        room = self._writer.room(settings.segment_index_bytes) - 1
        ahead = min(STAGED_BYTES_MAX, room * settings.index_interval_bytes)
        self._fast_position_max = min(settings.segment_bytes, self.active.size + ahead)

    def _undo_staged(self, error: OSError, *, is_opened: bool) -> KafkaError:
        """Undo all staged batches: reset file, offsets, leader epochs and producers."""
        segment = self.active
        failure = self.context.failure("append to", segment.path, error)
        self.discard_staged()
        if isinstance(failure, Shortage) and not is_opened:  # the file was not changed
            self.epochs.truncate_from_end(self.written_offset)
            if self.producers_loaded:
                del self.producers  # loaded again on next use
            return failure
        try:
            segment.resize(segment.size)
            self.epochs.truncate_from_end(self.written_offset)
            self.producers = lazy_loading.load_producers(self)
        except (OSError, KafkaError, CorruptLog):
            self.fail(failure)  # the file may hold partial writes
        return failure

    def fail(self, failure: KafkaError) -> KafkaError:
        """Refuse all further appends with this error."""
        self.failure = failure
        self._fast_position_max = -1
        return failure

    def discard_staged(self) -> None:
        self._staged = []
        self._staged_extents = []
        self._aborted = []
        self.end_offset = self.written_offset
        self.restart_appending()

    def restart_appending(self) -> None:
        """Reset the append state: the active segment was replaced or changed. The next append examines it
        again."""
        self._position = self.active.size
        self._fast_position_max = -1
        self._writer = None

    def _write_companion_files(self) -> None:
        """Write the transaction index and the leader epochs of the batches that were just written."""
        aborted, self._aborted = self._aborted, []
        try:
            for transaction in aborted:
                self.active.add_transaction(transaction)
            if self.epochs_dirty:
                self.store_epochs()
        except OSError as error:
            raise self.fail(self.context.failure("write", self.directory, error)) from error

    def roll(self, next_offset: int | None = None, *, now_ms: int | None = None) -> None:
        """Complete the active segment and create the next. `LogContext.on_roll` has to sync the old one."""
        self.write_early()
        base_offset = self.end_offset if next_offset is None else max(next_offset, self.end_offset)
        if base_offset == self.active.base_offset:
            return  # the active segment is empty
        writer = self._writer or self._begin_appending()
        producers = self.producers
        segment = Segment(self.context, self.directory, base_offset)
        try:
            self.context.require_descriptors()
            writer.finish()
            producer_snapshots.store(self.context, self.directory, producers, base_offset, sync=False)
            SegmentWriter.create(segment, self.preallocated_bytes())
        except OSError as error:
            failure = self.context.failure("roll", self.directory, error)
            if not isinstance(failure, Shortage):
                raise self.fail(failure) from error
            writer.segment.writer = writer  # appends continue in the old segment
            self._remove_files_of(segment)
            raise failure from error
        self.active = segment
        self.segments = [*self.segments, segment]
        self.folder_dirty = True
        self.restart_appending()
        self._begin_appending()
        if now_ms is not None:
            self.created_ms = now_ms
        self.after_roll(base_offset)

    def _remove_files_of(self, segment: Segment) -> None:
        """Remove the files of a new segment after a failed roll."""
        try:
            segment.delete_files()
        except OSError as error:
            raise self.fail(self.context.failure("roll", self.directory, error)) from error

    def after_roll(self, offset: int) -> None:
        """Called after a roll: the segments below `offset` are complete and should be synced."""

    def store_epochs(self) -> None:
        """Write `leader-epoch-checkpoint`. `sync` makes it durable."""
        checkpoints.store_epochs(self.context.disk, self.directory, self.epochs.entries)
        self.epochs_dirty = False
        self.folder_dirty = True

    def preallocated_bytes(self) -> int:
        return self.settings.segment_bytes if self.settings.preallocate else 0

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Store the topic id if a crash or an older version left none."""
        try:
            partition_metadata.store(self.context.disk, self.directory, topic_id, sync=False)
        except OSError as error:
            raise self.context.failure("write", self.directory, error) from error
        self.topic_id = topic_id
        self.folder_dirty = True

    def load_producers(self) -> None:
        """Load the producers before the first append: a later roll would have to read all batches since."""
        if not self.producers_loaded and self.written_offset == self.segments[0].base_offset:
            self.producers = ProducerStates(self.log_start_offset)
        _ = self.producers

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Load a slot that is still empty. Most logs of a node are idle and never need it."""
            try:
                if name == "epochs":
                    loaded = lazy_loading.load_epochs(self)
                elif name == "producers":
                    self.refuse_while_truncating()
                    loaded = lazy_loading.load_producers(self)
                elif name == "topic_id":
                    loaded = partition_metadata.load(self.context.disk, self.directory)
                else:
                    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            except OSError as error:
                raise self.context.failure("read", self.directory, error) from error
            except CorruptLog as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            with self.context.load_lock:
                # If two threads loaded it, keep the first object: the loop may have changed it since.
                try:
                    return object.__getattribute__(self, name)
                except AttributeError:
                    setattr(self, name, loaded)
                    return loaded
