"""How dirty a log is, and how much of it may be cleaned now.

In: a log, the offset up to which it is clean, its last stable offset, the time. Out: `Cleanable`.
Three things are never cleaned: the active segment, records above the last stable offset, and segments with
records younger than `min.compaction.lag.ms`. A segment older than `max.compaction.lag.ms` makes the log due,
however little of it is dirty. This may read indexes and first headers, so it runs in a thread.
Does not know: who cleans, checkpoints, other logs.
"""

import logging
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.replication.producers import PRODUCERS_A_STEP
from barnabas.storage.compaction.job import NO_DATA, CleaningJob
from barnabas.storage.logs.reading import floor
from barnabas.storage.segments.settings import INT64_MAX

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log
    from barnabas.storage.segments.segment import Segment

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cleanable:
    """The result of `assess`. Bytes are those of whole segments: a segment that is partly clean counts as
    clean and as dirty, as in Kafka."""

    first_dirty_offset: int
    first_uncleanable_offset: int  # the base offset of a segment
    clean_bytes: int
    dirty_bytes: int
    delay_ms: int  # how long ago `max.compaction.lag.ms` was exceeded
    is_reset: bool  # the checkpoint did not fit the log and was ignored

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, min_dirty_ratio: float) -> bool:
        return self.dirty_bytes > 0 and (self.delay_ms > 0 or self.dirty_ratio > min_dirty_ratio)


@dataclass(frozen=True, slots=True)
class CleanerLimits:
    """Limits of one cleaner."""

    key_bytes_max: int
    io_buffer_bytes: int
    io_bytes_per_second: float


def assess(log: "Log", checkpoint: int | None, last_stable_offset: int, now_ms: int) -> Cleanable:
    """Measure a log. `checkpoint` is the offset up to which it is clean, None if it was never cleaned."""
    segments = log.segments
    first_dirty, is_reset = _first_dirty_offset(log, checkpoint)
    uncleanable = min(
        last_stable_offset, segments[-1].base_offset, _first_young_offset(log, segments, first_dirty, now_ms)
    )
    # Only whole segments are cleaned. The one that holds the first uncleanable offset is left out.
    end = segments[max(floor(segments, max(first_dirty, uncleanable)), 0)].base_offset
    clean = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    first = max(floor(segments, first_dirty), 0)
    dirty = sum(segment.size for segment in segments[first:] if segment.base_offset < end)
    delay_ms = _delay_ms(log, segments[first:-1], now_ms)
    return Cleanable(first_dirty, end, clean, dirty, delay_ms, is_reset)


def job_for(
    log: "Log",
    found: Cleanable,
    limits: CleanerLimits,
    now_ms: int,
    producer_expiration_ms: int = INT64_MAX,
) -> Generator[None, None, CleaningJob]:
    """Build the job for a cleaner, in steps. Producers that wrote nothing for `producer_expiration_ms` count
    as inactive, even if the log still holds their state. Batches that arrive between the steps lie above
    the segments to clean."""
    settings = log.settings
    last_records = []
    for count, state in enumerate(list(log.producers), 1):
        if now_ms - state.last_timestamp < producer_expiration_ms or state.txn_first_offset >= 0:
            last_offset = state.last_offset if state.batches else NO_DATA
            last_records.append((state.producer_id, last_offset, state.producer_epoch))
        if not count % PRODUCERS_A_STEP:
            yield
    return CleaningJob(
        directory=log.directory,
        segments=tuple((segment.base_offset, segment.size) for segment in log.segments),
        first_dirty_offset=found.first_dirty_offset,
        first_uncleanable_offset=found.first_uncleanable_offset,
        now_ms=now_ms,
        delete_retention_ms=settings.delete_retention_ms,
        segment_bytes=settings.segment_bytes,
        segment_index_bytes=settings.segment_index_bytes,
        index_interval_bytes=settings.index_interval_bytes,
        last_records=tuple(last_records),
        key_bytes_max=limits.key_bytes_max,
        io_buffer_bytes=limits.io_buffer_bytes,
        io_bytes_per_second=limits.io_bytes_per_second,
    )


def _first_dirty_offset(log: "Log", checkpoint: int | None) -> tuple[int, bool]:
    start = log.log_start_offset
    if checkpoint is None:
        return start, False
    if checkpoint < start:
        if not log.settings.delete:
            logger.warning(
                "%s starts at offset %d, after the cleaner checkpoint %d: cleaning all of it again",
                log.topic_partition,
                start,
                checkpoint,
            )
        return start, True
    if checkpoint > log.end_offset:
        logger.warning(
            "%s ends at offset %d, before the cleaner checkpoint %d: cleaning all of it again",
            log.topic_partition,
            log.end_offset,
            checkpoint,
        )
        return start, True
    return checkpoint, False


def _first_young_offset(log: "Log", segments: "list[Segment]", first_dirty: int, now_ms: int) -> int:
    """The base offset of the first segment with a record younger than `min.compaction.lag.ms`."""
    lag_ms = log.settings.min_compaction_lag_ms
    if lag_ms <= 0:
        return INT64_MAX
    for segment in segments[max(floor(segments, first_dirty), 0) : -1]:
        if segment.largest_timestamp()[0] > now_ms - lag_ms:
            return segment.base_offset
    return INT64_MAX


def _delay_ms(log: "Log", dirty: "list[Segment]", now_ms: int) -> int:
    lag_ms = log.settings.max_compaction_lag_ms
    if lag_ms >= now_ms:
        return 0
    timestamps = [segment.first_timestamp() for segment in dirty]
    earliest = min(
        (timestamp for timestamp in timestamps if timestamp is not None and timestamp > 0), default=INT64_MAX
    )
    return max(now_ms - lag_ms - earliest, 0)
