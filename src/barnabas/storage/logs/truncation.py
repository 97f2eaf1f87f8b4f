"""Truncating, renaming and deleting a log.

In: a log and an offset or a path. Out: changed files and changed attributes of the log. A truncation has
three steps, since the work on files is slow: `begin` and `Truncation.end` run on the thread that appends,
`Truncation.run` may run in another thread. A follower truncates to the offset up to which it agrees with a
new leader.
Does not know: why a log is truncated.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.replication.producers import ProducerStates
from barnabas.runtime.shortage import Shortage
from barnabas.storage.files import checkpoints, names
from barnabas.storage.files.graveyard import delete_folder
from barnabas.storage.logs import producer_snapshots
from barnabas.storage.segments.cutting import SegmentCut, cut_segment
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segment_writer import SegmentWriter

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log

logger = logging.getLogger(__name__)


class Truncation:
    """A truncation under way: the log already ends at `offset`, and `run` removes the rest from the files.

    From `begin` to `end` the log refuses appends, reads, changes of its segments and renames. `run` changes
    only files; the log's attributes change in `begin` and `end`.
    """

    __slots__ = (
        "_active", "_cut", "_dropped", "_drops_everything", "_entries", "_failure", "_former_producers",
        "_log", "_producers", "_waiting", "offset",
    )  # fmt: skip

    def __init__(self, log: "Log", offset: int, dropped: list[Segment], *, drops_everything: bool) -> None:
        self.offset = offset
        self._log = log
        self._dropped = dropped
        self._drops_everything = drops_everything  # no record is left
        self._active = log.active
        self._entries = [] if drops_everything else log.epochs.entries
        self._cut: SegmentCut | None = None
        self._former_producers: ProducerStates | None = None
        self._producers: ProducerStates | None = None
        self._failure: KafkaError | None = None
        self._waiting: list[Callable[[], None]] = []

    def when_done(self, call: Callable[[], None]) -> None:
        """Call `call` after `end`. Calls are made in the order in which they were added."""
        self._waiting.append(call)

    def run(self) -> None:
        """Do the work on files; run it in a thread. Does not raise: `end` reports a failure to the log."""
        log, self._failure = self._log, None
        try:
            self._work()
        except OSError as error:
            self._failure = log.context.failure("truncate", log.directory, error)
        except MemoryError as error:
            self._failure = Shortage(f"could not truncate {log.directory}: {error or 'no memory'}")
        except KafkaError as error:
            self._failure = error
        except Exception as error:
            logger.exception("Could not truncate %s", log.directory)
            self._failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    @property
    def can_retry(self) -> bool:
        """Whether a shortage of descriptors or memory stopped `run`; another `run` continues."""
        return isinstance(self._failure, Shortage)

    def _work(self) -> None:
        log, offset = self._log, self.offset
        context, directory = log.context, log.directory
        if self._former_producers is not None:
            self._former_producers.release()
        for segment in reversed(self._dropped):
            segment.delete_files()
            segment.end_writing(None)
            producer_snapshots.delete(context, directory, segment.base_offset)
        if not self._drops_everything and self._cut is None:
            self._cut = cut_segment(self._active, offset)
        checkpoints.store_epochs(context.disk, directory, self._entries)
        for at in producer_snapshots.offsets(context, directory):
            if at > offset or self._drops_everything:
                producer_snapshots.delete(context, directory, at)
        if self._drops_everything:
            self._producers = ProducerStates(offset)
        else:
            self._producers = producer_snapshots.load(
                context, directory, log.segments, log.log_start_offset, offset
            )

    def end(self) -> None:
        """Make the log usable again. If `run` failed, the log refuses all further appends."""
        log = self._log
        if self._cut is not None:
            self._cut.install()
        if self._producers is not None:
            log.producers = self._producers
            log.producers.advance_log_start(log.log_start_offset)
        log.folder_dirty = True
        log.truncation = None
        log.restart_appending()
        if self._failure is not None:
            log.fail(self._failure)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            try:
                call()
            except Exception:
                logger.exception("A callback after the truncation of %s failed", log.directory)

    def drop_producers(self) -> None:
        """Take the producers away from the log. `run` frees them and reads them again from the files."""
        if self._log.producers_loaded:
            self._former_producers = self._log.producers
            del self._log.producers

    def finish(self) -> None:
        """Call `run` and `end`. Waits for the disk."""
        self.run()
        failure = self._failure
        self.end()
        if failure is not None:
            raise failure


def begin(log: "Log", offset: int) -> Truncation | None:
    """Begin to drop all records from `offset` on. None if there is nothing to drop."""
    if offset >= log.end_offset:
        if log.epochs.truncate_from_end(log.end_offset):  # an epoch that began here without records
            log.epochs_dirty = True
            log.restart_appending()
        return None
    if offset < log.segments[0].base_offset:
        return begin_full_truncation(log, offset, None)
    kept = [segment for segment in log.segments if segment.base_offset <= offset]
    dropped = log.segments[len(kept) :]
    try:
        log.context.require_descriptors()
    except OSError as error:
        raise log.context.failure("truncate", log.directory, error) from error
    log.epochs.truncate_from_end(offset)
    log.active = kept[-1]
    truncation = log.truncation = Truncation(log, offset, dropped, drops_everything=False)
    log.segments = kept
    _restart_at(log, offset, min(log.log_start_offset, offset))
    truncation.drop_producers()
    return truncation


def begin_full_truncation(log: "Log", offset: int, log_start_offset: int | None) -> Truncation:
    """Begin to drop all records; the log continues at `offset`."""
    dropped = log.segments
    try:
        log.context.require_descriptors()
    except OSError as error:
        raise log.context.failure("truncate", log.directory, error) from error
    # From here on, readers in threads see the truncation when a file is missing.
    truncation = log.truncation = Truncation(log, offset, dropped, drops_everything=True)
    try:
        for segment in dropped:
            if segment.base_offset == offset:
                segment.rename_files(names.DELETED)
        fresh = Segment(log.context, log.directory, offset)
        SegmentWriter.create(fresh, log.preallocated_bytes())
    except OSError as error:
        log.truncation = None
        raise log.fail(log.context.failure("truncate", log.directory, error)) from error
    log.epochs.clear()
    log.active = fresh
    log.segments = [fresh]
    _restart_at(log, offset, offset if log_start_offset is None else log_start_offset)
    truncation.drop_producers()
    return truncation


def _restart_at(log: "Log", offset: int, log_start_offset: int) -> None:
    log.truncations += 1
    log.recovery_point = min(log.recovery_point, offset)
    log.indexes_synced_to = min(log.indexes_synced_to, log.active.base_offset)
    log.end_offset = log.written_offset = offset
    log.log_start_offset = log_start_offset
    log.cursors.clear()
    log.epochs_dirty = False
    log.restart_appending()


def rename(log: "Log", directory: str) -> None:
    """Rename the log's folder. The next checkpoint makes it durable; a crash before that undoes the
    rename."""
    with log.context.files.lock:
        try:
            log.context.disk.replace(log.directory, directory)
        except OSError as error:
            raise log.context.failure("rename", log.directory, error) from error
        log.directory = directory
        for segment in log.segments:
            segment.directory = directory


def delete(log: "Log") -> None:
    for segment in log.segments:
        log.context.files.close(segment)
        log.context.indexes.forget(segment)
    try:
        delete_folder(log.context.disk, log.directory)
    except OSError as error:
        raise log.context.failure("delete", log.directory, error) from error
