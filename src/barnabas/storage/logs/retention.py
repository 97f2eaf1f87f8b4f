"""Retention: deletes the oldest segments of a log, by age, by log size, or because the log starts later.

In: a log, the time, and the offset below which consumers can read (high watermark or last stable offset).
Three steps. `count_expired` counts the segments to delete; it reads indexes, so it runs in a thread.
`detach_oldest` removes them from the log; it runs on the loop and touches no file, unless it has to roll the
active segment. `delete_detached` renames their files and adds them to the graveyard, in a thread again. Reads
in progress keep the files that they hold open.
Does not know: when retention is due, who reads.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.storage.files import names
from barnabas.storage.logs import producer_snapshots, reading
from barnabas.storage.segments.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log

logger = logging.getLogger(__name__)


def count_expired(log: "Log", now_ms: int, upper_offset: int) -> int:
    """Count the oldest segments that Kafka's rules delete: those below the log start offset, then those
    beyond `retention.bytes`, then those whose largest timestamp is older than `retention.ms`. Segments with
    records above `upper_offset` stay. The active segment counts if it has records and all of them are
    expired."""
    return reading.retry_on_change(log, lambda: _count_expired(log, now_ms, upper_offset))


def _count_expired(log: "Log", now_ms: int, upper_offset: int) -> int:
    segments, settings = log.segments, log.settings
    limit = count_below(log, upper_offset)
    count = min(limit, count_before_start(log))
    if not settings.delete:
        return count
    if settings.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - settings.retention_bytes
        while count < limit and excess >= segments[count].size:
            excess -= segments[count].size
            count += 1
    if settings.retention_ms >= 0:
        while count < limit and now_ms - largest_timestamp(segments[count]) > settings.retention_ms:
            count += 1
    return count


def count_before_start(log: "Log") -> int:
    """Count the segments that lie completely below the log start offset."""
    return max(reading.floor(log.segments, log.log_start_offset), 0)


def count_below(log: "Log", upper_offset: int) -> int:
    """Count the oldest segments without records at or above `upper_offset`. An empty active segment does not
    count."""
    segments = log.segments
    for index, following in enumerate(segments[1:]):
        if following.base_offset > upper_offset:
            return index
    active_may_go = segments[-1].size > 0 and log.end_offset <= upper_offset
    return len(segments) if active_may_go else len(segments) - 1


def largest_timestamp(segment: Segment) -> int:
    """The largest timestamp of its records; without timestamps, the modification time of the file."""
    timestamp, _ = segment.largest_timestamp()
    return timestamp if timestamp >= 0 else segment.context.disk.modified_ms(segment.path)


def detach_oldest(log: "Log", count: int) -> list[Segment]:
    """Remove the oldest `count` segments from the log and advance its start. Rolls first if all segments have
    to go. Their files stay: call `delete_detached`."""
    if count >= len(log.segments):
        log.roll()
    gone = log.segments[: min(count, len(log.segments) - 1)]
    if gone:
        kept = log.segments[len(gone) :]
        log.advance_log_start(kept[0].base_offset)
        log.segments = kept
        log.cursors.clear()
        logger.info(
            "Deleting %d expired segments of %s; it starts at offset %d now",
            len(gone),
            log.directory,
            kept[0].base_offset,
        )
    return gone


def delete_detached(log: "Log", segments: list[Segment], now_ms: int, *, with_snapshots: bool = True) -> None:
    """Rename the files of detached segments, the oldest first, so that a crash in between leaves no gap in
    the log. The graveyard removes them after `file.delete.delay.ms`."""
    due_ms = now_ms + log.settings.file_delete_delay_ms
    context = log.context
    try:
        for segment in segments:
            segment.rename_files(names.DELETED)
            context.files.close(segment)
            context.indexes.forget(segment)
            context.graveyard.add_files((segment.path_of(kind) for kind in names.SEGMENT_SUFFIXES), due_ms)
            if with_snapshots:
                buried = producer_snapshots.rename_to_deleted(context, segment.directory, segment.base_offset)
                context.graveyard.add_files(buried, due_ms)
    except OSError as error:
        raise log.context.failure("delete segments of", log.directory, error) from error
