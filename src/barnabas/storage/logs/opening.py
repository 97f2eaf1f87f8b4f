"""Opening of a log: creates a new one, opens a cleanly closed one, or recovers one after a crash.

In: the folder, settings, offsets of the log dir's checkpoints. Out: a `Log` that can be appended to and read.
After a clean shutdown, listing the folder is enough: files are opened on first use.
Does not know: how recovery works, other partitions.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.replication.leader_epochs import LeaderEpochs
from barnabas.storage.files import checkpoints, names, partition_metadata
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import TopicPartition, parse_folder_name
from barnabas.storage.logs import producer_snapshots
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.recovery import Recovery, clear_leftovers, find_segments
from barnabas.storage.segments.segment import CorruptLog, Segment
from barnabas.storage.segments.segment_writer import SegmentWriter
from barnabas.storage.segments.settings import LogSettings

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log

logger = logging.getLogger(__name__)


def topic_partition_of(directory: str) -> TopicPartition:
    name = directory.rstrip("/").rpartition("/")[2]
    parsed = parse_folder_name(name)
    if parsed is None:
        raise StorageError(f"{directory} is not a partition's folder: its name is not 'topic-partition'")
    return parsed.topic_partition


def create_log(
    log_class: "type[Log]",
    directory: str,
    settings: LogSettings,
    context: LogContext,
    *,
    topic_id: bytes | None,
    start_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> "Log":
    """Create a folder with an empty segment. `Log.sync` or the next checkpoint makes it durable."""
    disk = context.disk
    epochs = LeaderEpochs([(leader_epoch, start_offset)] if leader_epoch >= 0 else ())
    try:
        disk.mkdir(directory)
        if topic_id is not None:
            partition_metadata.store(disk, directory, topic_id, sync=False)
        checkpoints.create_epochs(disk, directory, epochs.entries)
        segment = Segment(context, directory, start_offset)
        SegmentWriter.create(segment, settings.segment_bytes if settings.preallocate else 0)
    except OSError as error:
        raise context.failure("create", directory, error) from error
    log = log_class(
        topic_partition_of(directory),
        directory,
        settings,
        context,
        [segment],
        log_start_offset=start_offset,
        end_offset=start_offset,
        recovery_point=start_offset,
        now_ms=now_ms,
    )
    log.topic_id = topic_id
    log.epochs = epochs
    log.folder_dirty = log.is_new = True
    return log


def open_log(
    log_class: "type[Log]",
    directory: str,
    settings: LogSettings,
    context: LogContext,
    *,
    recovery_point: int,
    log_start_offset: int,
    clean: bool,
    now_ms: int,
) -> "Log":
    files = clear_leftovers(context, directory, context.disk.sizes(directory))
    segments = find_segments(context, directory, files)
    if names.LEADER_EPOCH_CHECKPOINT not in files:  # lost, or not written by an older version
        checkpoints.create_epochs(context.disk, directory, ())
    if segments:
        log_start_offset = max(log_start_offset, segments[0].base_offset)
    recovery = None
    if clean and segments:
        _check_complete(context, segments)
        end_offset = clean_end_offset(files, segments[-1], recovery_point)
        recovery_point = end_offset
    else:
        recovery = Recovery(context, directory, settings, segments, log_start_offset)
        end_offset = recovery.run(recovery_point)
    if segments and end_offset < log_start_offset:
        logger.warning(
            "%s ends at offset %d, before its log start offset %d: starting it as an empty log",
            directory,
            end_offset,
            log_start_offset,
        )
        for segment in segments:
            segment.delete_files()
        segments, recovery = [], None
    if not segments:
        segments = [Segment(context, directory, log_start_offset)]
        SegmentWriter.create(segments[0], settings.segment_bytes if settings.preallocate else 0)
        end_offset = log_start_offset
    _delete_stray_snapshots(context, directory, files, segments, end_offset)
    log = log_class(
        topic_partition_of(directory),
        directory,
        settings,
        context,
        segments,
        log_start_offset=log_start_offset,
        end_offset=end_offset,
        recovery_point=min(recovery_point, end_offset),
        now_ms=now_ms,
    )
    if recovery is not None:
        recovery.epochs.truncate_from_start(log_start_offset)
        log.epochs = recovery.epochs
        log.producers = recovery.producers
        log.epochs_dirty = log.folder_dirty = True
    return log


def clean_end_offset(files: dict[str, int], last: Segment, recovery_point: int) -> int:
    """The end offset of a cleanly closed log.

    Closing writes a producer snapshot at the end offset. If the checkpoint agrees with a snapshot, that is
    the end offset. Otherwise the last segment is read.
    """
    if last.size == 0:
        return last.base_offset
    if recovery_point > last.base_offset and names.offset_name(recovery_point, names.SNAPSHOT) in files:
        return recovery_point
    try:
        return last.next_offset()
    except CorruptLog as error:
        raise StorageError(f"{error}; the file was damaged after the last clean shutdown") from error


def _check_complete(context: LogContext, segments: list[Segment]) -> None:
    """`StorageError` if an encrypted segment was cut off after the last clean shutdown."""
    for segment in segments:
        try:
            if segment.size and not context.disk.is_complete(segment.path):
                raise StorageError(
                    f"{segment.path} was cut off after the last clean shutdown: its end mark is missing; "
                    "restore the file, or remove the partition's folder if other replicas exist"
                )
        except CorruptLog as error:
            raise StorageError(f"{error}; the file was damaged after the last clean shutdown") from error


def _delete_stray_snapshots(
    context: LogContext, directory: str, files: dict[str, int], segments: list[Segment], end_offset: int
) -> None:
    """Delete snapshots whose offset is neither a segment's base offset nor the end offset."""
    wanted = {segment.base_offset for segment in segments} | {end_offset}
    for name in files:
        if (
            name.endswith(names.SNAPSHOT)
            and (offset := names.offset_of(name)) not in wanted
            and offset is not None
        ):
            producer_snapshots.delete(context, directory, offset)
