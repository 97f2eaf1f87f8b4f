"""Reads away from the end of a log: find the segment, find the batch, cut at a batch boundary.

In: an offset, a number of bytes, an upper offset. Out: a `LogSlice` of whole batches. The index gives a start
position, and a few headers are read from there. The end of a slice is remembered as a cursor, so that a
reader that continues there needs no lookup. May run in a thread while the log grows.
Does not know: the batches that were just written (see `Log.read`), who may read what.
"""

import struct
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.storage.segments.log_slice import LogSlice
from barnabas.storage.segments.segment import CorruptLog, Segment
from barnabas.storage.segments.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log

T = TypeVar("T")
CURSORS_MAX = 128  # remembered readers of one log

_base_offset = struct.Struct(">q").unpack_from


def out_of_range(log: "Log", offset: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"{log.topic_partition} has offsets {log.log_start_offset} to {log.end_offset}, not {offset}",
    )


def floor(segments: list[Segment], offset: int) -> int:
    """Index of the last segment that begins at or before `offset`, or -1."""
    return bisect_right(segments, offset, key=_base_offset_of) - 1


def read(log: "Log", offset: int, max_bytes: int, upper_offset: int, at_least_one: bool) -> LogSlice:
    """Read whole batches from the one that holds `offset` on, below `upper_offset`, at most `max_bytes`. With
    `at_least_one`, a larger first batch is returned whole."""
    return retry_on_change(log, lambda: _read(log, offset, max_bytes, upper_offset, at_least_one))


def retry_on_change(log: "Log", look: Callable[[], T]) -> T:
    """Call `look`, which reads files. If a file is missing and the log's segments have changed, retention or
    compaction removed it meanwhile: call `look` again. The same applies when another thread truncates the
    log."""
    while True:
        segments, truncations = log.segments, log.truncations
        try:
            return look()
        except FileNotFoundError as error:
            if segments is log.segments and not was_truncated(log, truncations):
                raise log.context.failure("read", log.directory, error) from error
        except OSError as error:
            raise log.context.failure("read", log.directory, error) from error
        except (CorruptLog, IndexError, struct.error) as error:
            if not was_truncated(log, truncations):
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def was_truncated(log: "Log", truncations: int) -> bool:
    """Whether the log was truncated since `truncations` was read, or is being truncated now."""
    return log.truncations != truncations or log.truncation is not None


def _read(log: "Log", offset: int, max_bytes: int, upper_offset: int, at_least_one: bool) -> LogSlice:
    log.refuse_while_truncating()
    truncations, segments = log.truncations, log.segments
    upper_offset = min(upper_offset, log.written_offset)
    empty = LogSlice(None, 0, 0, offset, offset)
    cursor = log.cursors.get(offset)
    index = floor(segments, offset)
    if offset < log.log_start_offset:
        raise out_of_range(log, offset)  # retention deleted it meanwhile
    if offset >= upper_offset or index < 0:
        return empty
    if cursor is not None and cursor[0] is segments[index] and cursor[2] == truncations:
        segment, start, _ = cursor
        first_size = None
    else:
        found = segments[index].find(offset)
        while found is None and index + 1 < len(segments):
            index += 1
            found = segments[index].find(offset, 0)
        if found is None:
            return empty
        segment, (start, first_size) = segments[index], found
    size = segment.size  # may be ahead of `written_offset`: the log grows while this runs
    next_offset = upper_offset
    if index + 1 < len(segments) and upper_offset >= segments[index + 1].base_offset:
        next_offset = segments[index + 1].base_offset
        end = size
    else:
        end = segment.offset_index().position_before(
            upper_offset
        )  # a batch boundary at or below `upper_offset`
        if end - start <= max_bytes:
            above = segment.find(upper_offset, end, size)
            end = size if above is None else above[0]
        if end <= start:
            return empty
    if end - start > max_bytes:
        cut = segment.offset_index().boundary_before(start + max_bytes)
        if cut <= start or start + max_bytes - cut > max_bytes // 2:
            cut = _cut_by_headers(segment, max(cut, start), start + max_bytes, end)
        if cut <= start:
            if not at_least_one:
                return empty
            cut = start + (first_size or _size_at(segment, start))
        end = min(end, cut)
    if end < size:
        next_offset = _base_offset(segment.pread(8, end))[0]
        if len(log.cursors) >= CURSORS_MAX:
            log.cursors.clear()
        log.cursors[next_offset] = segment, end, truncations
    log.cursors.pop(offset, None)
    next_offset = min(next_offset, upper_offset)
    return LogSlice(
        segment.open(),
        start,
        end - start,
        offset,
        next_offset,
        log.is_likely_cached(offset),
        log.context.disk,
    )


def aborted_transactions(log: "Log", offset: int, upper_offset: int) -> list[AbortedTransaction]:
    return retry_on_change(log, lambda: _aborted_transactions(log, offset, upper_offset))


def _aborted_transactions(log: "Log", offset: int, upper_offset: int) -> list[AbortedTransaction]:
    segments = log.segments
    found: list[AbortedTransaction] = []
    for segment in segments[max(floor(segments, offset), 0) :]:
        entries, complete = segment.transactions().collect(offset, upper_offset)
        found += entries
        if complete:
            break
    return found


def _cut_by_headers(segment: Segment, position: int, limit: int, end: int) -> int:
    """The last batch boundary up to `limit`, found by reading headers from `position` on."""
    boundary = position
    for at, header in segment.headers(position, end):
        if at + header.size > limit:
            return at
        boundary = at + header.size
    return boundary


def _size_at(segment: Segment, position: int) -> int:
    for _, header in segment.headers(position):
        return header.size
    return 0


def _base_offset_of(segment: Segment) -> int:
    return segment.base_offset
