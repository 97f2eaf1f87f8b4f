"""One partition's log: segments in a folder, appended to at the end, read anywhere.

In: batches (see `LogAppender`); offsets to read from. Out: slices of whole batches, and the files that Apache
Kafka would write. All calls are synchronous and belong to the loop's thread, except cold reads, the work that
`begin_sync` plans, and lookups of retention and compaction (docs/threads.md). Retention and compaction change
`segments` only by assigning a new list, so readers in other threads see the old or the new list.
Does not know: replication, high watermarks, who may read what.
"""

from bisect import bisect_right
from collections.abc import Callable

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.storage.logs import (
    lookup,
    opening,
    producer_snapshots,
    reading,
    replacement,
    retention,
    truncation,
)
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log_appender import LogAppender
from barnabas.storage.logs.lookup import TimestampOffset
from barnabas.storage.logs.syncing import SyncWork
from barnabas.storage.logs.truncation import Truncation
from barnabas.storage.segments.log_slice import LogSlice
from barnabas.storage.segments.segment import CorruptLog, Segment
from barnabas.storage.segments.settings import INT64_MAX, LogSettings
from barnabas.storage.segments.transaction_index import AbortedTransaction

# The last bytes of a log count as cached for a while after an append; later the page cache is queried.
CACHED_BYTES = 16 << 20
CACHED_S = 30.0

WARM_BYTES = 1 << 20


class Log(LogAppender):
    """See `LogAppender` for the offsets and for appending."""

    __slots__ = ()

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
        """Open the log in a folder. With `clean` the files are trusted (see `opening`). Otherwise all batches
        from the recovery point on are checked; the log is cut at the first invalid one."""
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
        leader_epoch: int = -1,
        now_ms: int,
        context: LogContext | None = None,
    ) -> "Log":
        """Create an empty log in a new folder. `leader_epoch` is -1 unless this node leads the partition."""
        return opening.create_log(
            cls,
            directory,
            settings,
            context or LogContext(),
            topic_id=topic_id,
            start_offset=start_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
        )

    def __repr__(self) -> str:
        return f"Log({self.directory}, {self.log_start_offset}..{self.end_offset})"

    def configure(self, settings: LogSettings) -> None:
        """Adopt new topic settings."""
        try:
            self.write_early()
        except KafkaError:
            pass  # `write_staged` reports it to the callers that staged batches
        self.settings = settings
        self.restart_appending()

    # Durability

    def after_roll(self, offset: int) -> None:
        self.context.on_roll(self, offset)

    def is_sync_due(self, now_ms: int) -> bool:
        """Whether `flush.messages` or `flush.ms` require a `sync` now."""
        unsynced = self.written_offset - self.recovery_point
        return unsynced > 0 and (
            unsynced >= self.settings.flush_messages or now_ms - self.last_sync_ms >= self.settings.flush_ms
        )

    def is_count_due(self) -> bool:
        """Whether `flush.messages` requires a `sync` now."""
        return self.written_offset - self.recovery_point >= self.settings.flush_messages

    def sync(self, offset: int | None = None, now_ms: int | None = None) -> None:
        """Make all records below `offset` durable (default: all that are written) and advance the recovery
        point.

        Call it on the thread that owns the log; it waits for the disk. To wait in another thread, call
        `begin_sync`, run `SyncWork.run` in that thread, then call `end_sync`.
        """
        work = self.begin_sync(offset, now_ms)
        work.run()
        self.end_sync(work)

    def begin_sync(self, offset: int | None = None, now_ms: int | None = None) -> SyncWork:
        """Plan a sync. Several may be under way. Each one must be ended with `end_sync`, even if it fails."""
        target = self.written_offset if offset is None else min(offset, self.written_offset)
        is_needed = target > self.recovery_point or self.folder_dirty or self.folder_syncs > 0
        return self._planned(SyncWork(self, target, self._unsynced() if is_needed else [], now_ms=now_ms))

    def begin_folder_sync(self) -> SyncWork:
        """Plan a sync of the folder and its small files only. For new logs."""
        return self._planned(SyncWork(self, 0, self._unsynced(), only_folder=True))

    def _planned(self, work: SyncWork) -> SyncWork:
        self.folder_syncs += work.cleared_folder_dirty
        self.folder_dirty = False
        return work

    def _unsynced(self) -> list[Segment]:
        """Segments whose batches or final indexes may not be durable yet."""
        first = reading.floor(self.segments, min(self.recovery_point, self.indexes_synced_to))
        return self.segments[max(first, 0) :]

    def end_sync(self, work: SyncWork) -> None:
        """Record what the sync made durable. Raises KAFKA_STORAGE_ERROR if the disk failed."""
        self.folder_syncs -= work.cleared_folder_dirty
        failed = work.error is not None or not work.is_done
        if failed or work.directory != self.directory:  # the folder was renamed after the plan
            self.folder_dirty |= work.includes_folder
        elif work.includes_folder:
            self.is_new &= not work.is_new
        if work.truncations != self.truncations:
            return  # the log was truncated meanwhile: the plan does not apply any more
        if work.error is not None:
            raise self.context.failure("sync", self.directory, work.error) from work.error
        if failed:
            return
        self.context.syncs.observe(work.took_ns)
        self.recovery_point = max(self.recovery_point, work.target)
        self.indexes_synced_to = max(self.indexes_synced_to, work.indexes_to)
        if work.now_ms is not None:
            self.last_sync_ms = work.now_ms

    def close(self) -> None:
        """Close the log so that it can be opened with `clean`: sync all files, finish the indexes, write a
        producer snapshot."""
        self.write_staged()
        try:
            if self._writer is not None:
                producers = self.producers
                if self.end_offset > self.segments[0].base_offset:
                    producer_snapshots.store(
                        self.context, self.directory, producers, self.end_offset, sync=True
                    )
                self._writer.finish()
                self._writer = None
                self._fast_position_max = -1
                self.folder_dirty = True
            elif self.active.size:
                self.context.disk.mark_complete(self.active.path)
            if self.epochs_dirty:
                self.store_epochs()
        except OSError as error:
            raise self.context.failure("close", self.directory, error) from error
        except CorruptLog as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self.sync()
        for segment in self.segments:
            self.context.files.close(segment)

    # Truncating and deleting

    def truncate_to(self, offset: int) -> bool:
        """Drop all batches from the one that holds `offset` on. False if there was nothing to drop."""
        begun = self.begin_truncation(offset)
        if begun is None:
            return False
        begun.finish()
        return True

    def begin_truncation(self, offset: int) -> Truncation | None:
        """Begin `truncate_to` in steps; the slow step may run in a thread. None if there is nothing to
        drop."""
        self.refuse_while_truncating()
        self.write_staged()
        return truncation.begin(self, offset)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop all records; the log continues at `offset`."""
        self.begin_full_truncation(offset, log_start_offset).finish()

    def begin_full_truncation(self, offset: int, log_start_offset: int | None = None) -> Truncation:
        """Begin `truncate_fully_and_start_at` in steps."""
        self.refuse_while_truncating()
        self.discard_staged()
        return truncation.begin_full_truncation(self, offset, log_start_offset)

    def advance_log_start(self, offset: int) -> bool:
        """Advance the log start offset (DeleteRecords, retention). Segments below it may be deleted."""
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        if self.epochs.truncate_from_start(offset):
            self.epochs_dirty = True
        if self.truncation is None:  # otherwise `Truncation.end` does this
            self.producers.advance_log_start(offset)
        return True

    # Deleting and replacing segments

    def claim(self) -> bool:
        """Claim the exclusive right to delete or replace segments (retention, compaction, a move to another
        dir). False while it is claimed. Call it on the loop; call `release` afterwards."""
        if self.is_claimed:
            return False
        self.is_claimed = True
        return True

    def claim_for_cleaning(self) -> bool:
        """Claim it for compaction. False also while the log is copied to another dir: the copy could hold an
        old record but not the tombstone that compaction has just removed, and the record would come back."""
        return not self.is_moving and self.claim()

    def release(self) -> None:
        self.is_claimed = False

    def delete_old_segments(self, now_ms: int, upper_offset: int) -> int:
        """Run all steps of `retention`. Waits for the disk. Returns the number of deleted segments."""
        gone = retention.detach_oldest(self, retention.count_expired(self, now_ms, upper_offset))
        retention.delete_detached(self, gone, now_ms)
        return len(gone)

    def delete_records_before(self, offset: int, now_ms: int) -> Callable[[], None]:
        """Advance the log start offset and detach the segments below it. Returns the work on files that is
        left, to run in a thread."""
        self.advance_log_start(offset)
        gone = retention.detach_oldest(self, retention.count_before_start(self))
        return lambda: retention.delete_detached(self, gone, now_ms)

    def replace_segments(self, old: list[Segment], new: list[Segment], now_ms: int) -> bool:
        """Run all steps of `replacement`: replace `old` by `new` (complete, `.cleaned`). Waits for the disk.
        False if `old` is not part of the log any more; then `new` is discarded."""
        replacement.prepare(self, new)
        if not replacement.exchange(self, old, new):
            replacement.discard(new)
            return False
        replacement.finish(self, old, new, now_ms)
        return True

    def rename(self, directory: str) -> None:
        """Rename the folder (`-delete`, `-stray`, or without `-future`). Readers are not disturbed."""
        truncation.rename(self, directory)

    def delete(self) -> None:
        """Delete the folder with all its files. Slices that are in use stay readable."""
        self.discard_staged()
        truncation.delete(self)

    # Reading

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def size_bytes_from(self, offset: int) -> int:
        """The size of the segments that would remain if the log started at `offset`."""
        segments = self.segments
        return sum(segment.size for segment in segments[max(reading.floor(segments, offset), 0) :])

    def is_likely_cached(self, offset: int) -> bool:
        """Whether records from here on are very likely in the page cache: near the log's end, written a short
        while ago. A guess without a system call."""
        writer = self._writer
        if writer is None or offset < max(self.opened_at_offset, self.active.base_offset):
            return offset >= self.written_offset
        return self.was_written_recently and (
            offset >= writer.recent_start
            or writer.offset_index.position_before(offset) >= self.active.size - CACHED_BYTES
        )

    @property
    def was_written_recently(self) -> bool:
        """Whether the end of the log is still in the page cache. After a long idle time it may not be."""
        return self.context.time() - self.written_s < CACHED_S

    def can_read_without_disk(self, offset: int, max_bytes: int) -> bool:
        """Whether `read` may run on the event loop: the records are likely cached, or the operating system
        says so."""
        if self.is_likely_cached(offset):
            return True
        found = self._place_in_memory(offset)
        if found is None:
            return False
        segment, start = found
        end = min(start + max_bytes, segment.size)
        try:
            file = segment.open()
        except OSError:
            return False  # the segment may be deleted: the read will report it
        disk = self.context.disk
        return disk.is_cached(file.descriptor, start) and disk.is_cached(file.descriptor, end - 1)

    def _place_in_memory(self, offset: int) -> tuple[Segment, int] | None:
        """The segment and a position at or shortly before `offset`; None if finding it needs a file."""
        cursor = self.cursors.get(offset)
        if cursor is not None:
            return cursor[0], cursor[1]
        writer, active = self._writer, self.active
        if writer is None or offset < active.base_offset:
            return None
        if offset < writer.recent_start:
            return active, writer.offset_index.position_before(offset)
        number = bisect_right(writer.recent_next_offsets, offset)
        return (active, writer.recent_positions[number]) if number < len(writer.recent_positions) else None

    def has_loaded_aborted(self, offset: int) -> bool:
        """Whether `aborted_transactions` from `offset` on reads no file, except that of the last segment."""
        segments = self.segments
        first = max(reading.floor(segments, offset), 0)
        return all(segment.has_loaded_transactions for segment in segments[first:-1])

    def load_aborted(self, offset: int) -> None:
        """Load the transaction indexes that `has_loaded_aborted` asks for. Slow: run it in a thread. The last
        segment is left out, because it belongs to the thread that appends."""
        segments = self.segments
        for segment in segments[max(reading.floor(segments, offset), 0) : -1]:
            reading.retry_on_change(self, segment.transactions)

    def warm(self, offset: int, max_bytes: int, upper_offset: int) -> None:
        """Load the pages and indexes that `read` needs. Slow: run it in a thread."""
        found = self.read_cold(offset, max_bytes, upper_offset)
        position, part = 0, b" "
        while part and position < len(found):  # the file may have been truncated meanwhile
            part = found.read_part(position, WARM_BYTES)
            position += len(part)

    def read(
        self, offset: int, max_bytes: int, upper_offset: int = INT64_MAX, at_least_one: bool = True
    ) -> LogSlice:
        """Read whole batches from the one that holds `offset` on, below `upper_offset` (high watermark or
        last stable offset), at most `max_bytes`. With `at_least_one`, a larger first batch is returned
        whole."""
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
        try:
            file = self.active.open()
        except OSError as error:
            raise self.context.failure("read", self.active.path, error) from error
        return LogSlice(
            file,
            start,
            end - start,
            offset,
            next_offsets[stop - 1],
            self.was_written_recently,
            self.context.disk,
        )

    def read_cold(
        self, offset: int, max_bytes: int, upper_offset: int = INT64_MAX, at_least_one: bool = True
    ) -> LogSlice:
        """As `read`, for threads that do not append, and for offsets that are likely not cached."""
        if not self.log_start_offset <= offset <= self.end_offset:
            raise reading.out_of_range(self, offset)
        return reading.read(self, offset, max_bytes, upper_offset, at_least_one)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record whose timestamp is `timestamp` or later."""
        return lookup.offset_for_timestamp(self, timestamp)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp."""
        return lookup.max_timestamp_offset(self)

    def aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records in [offset, upper_offset). Read-committed consumers skip
        them."""
        return reading.aborted_transactions(self, offset, upper_offset)
