"""Counts of a range of a log, made in a thread from the headers of its batches.

In: a log, a range of offsets below the last stable offset, the aborted transactions in it. Out: counts by
bucket, and how far they go. Only headers are read, a few kilobytes at a time; a batch is opened where its
header does not suffice. Does not know: the loop, messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.audit.core.batch_counts import BatchCounts
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BATCH_OVERHEAD, BatchHeader
from barnabas.storage.segments.log_slice import LogSlice
from barnabas.storage.segments.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log

SLICE_BYTES = 8 * 1024 * 1024
CHUNK_BYTES = 4096
CHUNK_BYTES_MAX = 64 * 1024
BATCHES_MANY = 8  # of one chunk
BATCHES_A_PAUSE = 100  # a fifth of a millisecond; a pause costs as much as some batches


def count_log(
    log: Log,
    counts: BatchCounts,
    upper_offset: int,
    aborted: Sequence[AbortedTransaction],
    bytes_max: int,
    pause: Callable[[], None],
) -> None:
    """Count from `counts.end` on up to `upper_offset`, at most about `bytes_max` bytes of the log."""
    while counts.end < upper_offset and bytes_max > 0 and not counts.is_full:
        found = log.read_cold(counts.end, SLICE_BYTES, upper_offset)
        if not len(found):
            return
        before = counts.end
        count_slice(found, counts, aborted, pause)
        if counts.end <= before:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no whole batch in {found!r} of {log!r}")
        bytes_max -= len(found)


def count_slice(
    found: LogSlice, counts: BatchCounts, aborted: Sequence[AbortedTransaction], pause: Callable[[], None]
) -> None:
    chunk, chunk_at = b"", 0
    position, length = 0, len(found)
    chunk_bytes, batches_before = CHUNK_BYTES, counts.batches
    pause_at, opened_before = counts.batches + BATCHES_A_PAUSE, counts.opened
    while position + BATCH_OVERHEAD <= length and not counts.is_full:
        at = position - chunk_at
        if at + BATCH_OVERHEAD > len(chunk):
            if counts.batches >= pause_at or counts.opened > opened_before:
                pause()
                pause_at, opened_before = counts.batches + BATCHES_A_PAUSE, counts.opened
            # Small batches lie side by side: many headers come with one read. Large ones are skipped.
            if counts.batches - batches_before > BATCHES_MANY:
                chunk_bytes = min(4 * chunk_bytes, CHUNK_BYTES_MAX)
            else:
                chunk_bytes = BATCH_OVERHEAD if at > CHUNK_BYTES else CHUNK_BYTES
            chunk, chunk_at, at = found.read_part(position, chunk_bytes), position, 0
            batches_before = counts.batches
            if len(chunk) < BATCH_OVERHEAD:
                return
        behind = counts.add_plain(chunk, at, length - chunk_at)
        if behind != at:
            position = chunk_at + behind
            continue
        header = BatchHeader(chunk, at)
        size = header.size
        if size < BATCH_OVERHEAD or position + size > length:
            return
        here = position

        def whole(here: int = here, size: int = size) -> bytes:
            return found.read_part(here, size)

        counts.add(header, whole, is_aborted=is_aborted(header, aborted))
        position += size


def is_aborted(header: BatchHeader, aborted: Sequence[AbortedTransaction]) -> bool:
    return (
        bool(aborted)
        and header.is_transactional
        and any(
            each.producer_id == header.producer_id
            and each.first_offset <= header.base_offset <= each.last_offset
            for each in aborted
        )
    )
