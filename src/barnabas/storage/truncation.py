"""Taking back: cutting a log short, starting it anew, giving its folder another name, removing it.

In: a log and an offset or a path. Out: files and the log's attributes changed together. Followers truncate
to what they share with a new leader; everything here is rare and may be slow.
Does not know: why, and who decides.
"""

from typing import TYPE_CHECKING

from barnabas.storage import names, producer_snapshots
from barnabas.storage.graveyard import delete_folder
from barnabas.storage.segment import Segment
from barnabas.storage.segment_writer import SegmentWriter

if TYPE_CHECKING:
    from barnabas.storage.log import Log


def truncate_to(log: "Log", offset: int) -> bool:
    if offset >= log.end_offset:
        if log.epochs.truncate_from_end(log.end_offset):  # an epoch that began here and never wrote
            log.epochs_dirty = True
            log.restart_appending()
        return False
    if offset < log.segments[0].base_offset:
        truncate_fully_and_start_at(log, offset, None)
        return True
    kept = [segment for segment in log.segments if segment.base_offset <= offset]
    dropped = log.segments[len(kept) :]
    try:
        log.context.need_descriptors()
    except OSError as error:
        raise log.context.failure("truncate", log.directory, error) from error
    try:
        log.segments = kept
        log.active = kept[-1]
        _drop(log, dropped)
        SegmentWriter.resume(log.active, offset).truncate(offset)
        log.epochs.truncate_from_end(offset)
        _restart_at(log, offset, min(log.log_start_offset, offset))
    except OSError as error:
        raise log.fail(log.context.failure("truncate", log.directory, error)) from error
    return True


def truncate_fully_and_start_at(log: "Log", offset: int, log_start_offset: int | None) -> None:
    dropped = log.segments
    try:
        log.context.need_descriptors()
    except OSError as error:
        raise log.context.failure("truncate", log.directory, error) from error
    try:
        for segment in dropped:
            if segment.base_offset == offset:
                segment.rename_files(names.DELETED)
        fresh = Segment(log.context, log.directory, offset)
        SegmentWriter.create(fresh, log.preallocated_bytes())
        log.active = fresh
        log.segments = [fresh]
        _drop(log, dropped)
        log.epochs.clear()
        _restart_at(log, offset, offset if log_start_offset is None else log_start_offset)
    except OSError as error:
        raise log.fail(log.context.failure("truncate", log.directory, error)) from error


def _restart_at(log: "Log", offset: int, log_start_offset: int) -> None:
    log.truncations += 1
    log.recovery_point = min(log.recovery_point, offset)
    log.indexes_synced_to = min(log.indexes_synced_to, log.active.base_offset)
    log.end_offset = log.written_offset = offset
    log.log_start_offset = log_start_offset
    log.cursors.clear()
    log.names_dirty = True
    log.restart_appending()
    log.store_epochs()
    log.reload_producers()


def _drop(log: "Log", segments: list[Segment]) -> None:
    for segment in reversed(segments):
        segment.delete_files()
        segment.writer = None
        producer_snapshots.delete(log.context, log.directory, segment.base_offset)


def rename(log: "Log", directory: str) -> None:
    """Not synced: the next checkpoint of the log dir is, and until then a crash only undoes the renaming."""
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
