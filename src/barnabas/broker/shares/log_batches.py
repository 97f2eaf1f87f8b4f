"""Batches of a log as a share fetch needs them: which offsets each has, and the bytes that hold them.

In: a slice of the log, the last offset that can be acquired. Out: spans of offsets, and the bytes or the
slice of the batches with acquired records. Small slices are read once, and sent from memory; of others only
headers are read. Does not know: which records are acquired, or why.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BATCH_OVERHEAD, CONTROL_FLAG, LOG_OVERHEAD, TRANSACTIONAL_FLAG
from barnabas.shares.partition.acquiring import Acquired, Span
from barnabas.shares.partition.transactions import ProducedBatch
from barnabas.storage.segments.log_slice import LogSlice

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log

SMALL_BYTES = 64 * 1024  # slices up to this are read whole
CHUNK_BYTES = 4096
STAGE_BYTES = 1024 * 1024  # looked at first: most members ask for few records
STAGES_FACTOR = 8
_ABORT_KEY = bytes.fromhex("0000 0000")  # of a control record: version, type
ABORT_KEY_AT = BATCH_OVERHEAD + 5  # behind size, attributes, two deltas, size of the key

# Base offset, length, attributes, last offset delta, producer id.
_head = struct.Struct(">qi9xhi16xq").unpack_from


class LogBatches:
    """The batches of a slice, up to the one with the last offset that is wanted."""

    __slots__ = ("_ends", "_heads", "_slice", "_small", "spans")

    def __init__(self, found: LogSlice, last_wanted: int) -> None:
        self._slice = found
        self._small = found.read_part(0, SMALL_BYTES)
        self._ends: list[int] = []  # byte positions behind the batches
        self._heads: list[tuple[int, int]] = []  # attributes and producer id
        self.spans: list[Span] = []
        self._walk(last_wanted)

    def _walk(self, last_wanted: int) -> None:
        chunk, chunk_at = self._small, 0
        position, length = 0, len(self._slice)
        while position + BATCH_OVERHEAD <= length:
            at = position - chunk_at
            if at + BATCH_OVERHEAD > len(chunk):
                chunk, chunk_at, at = self._slice.read_part(position, CHUNK_BYTES), position, 0
                if len(chunk) < BATCH_OVERHEAD:
                    break
            first, size, attributes, delta, producer_id = _head(chunk, at)
            end = position + size + LOG_OVERHEAD
            if end > length or size < BATCH_OVERHEAD - LOG_OVERHEAD or delta < 0:
                break
            self.spans.append(Span(first, first + delta))
            self._ends.append(end)
            self._heads.append((attributes, producer_id))
            if first + delta >= last_wanted:
                return
            position = end
        if not self.spans and length:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no whole batch in {self._slice!r}")

    @property
    def size(self) -> int:
        """Bytes of the batches."""
        return self._ends[-1] if self._ends else 0

    def reaches(self, offset: int) -> bool:
        return bool(self.spans) and self.spans[-1].last >= offset

    def records(self, acquired: list[Acquired]) -> LogSlice | memoryview:
        """The batches from the one with the first acquired record to the one with the last."""
        first, last = acquired[0].first, acquired[-1].last
        spans, ends = self.spans, self._ends
        start = 0
        for number in range(1, len(spans)):
            if spans[number].first > first:
                break
            start = ends[number - 1]
        end = ends[0]
        for number in range(1, len(spans)):
            if spans[number].first > last:
                break
            end = ends[number]
        if end <= len(self._small):
            return memoryview(self._small)[start:end]
        found = self._slice.after(start)
        found.length = end - start
        return found

    def produced(self) -> list[ProducedBatch]:
        """The index that tells which batches belong to aborted transactions."""
        found = []
        start = 0
        for span, end, (attributes, producer_id) in zip(self.spans, self._ends, self._heads, strict=True):
            is_abort = bool(attributes & CONTROL_FLAG) and self._is_abort(start)
            is_transactional = bool(attributes & TRANSACTIONAL_FLAG)
            found.append(ProducedBatch(span.first, span.last, producer_id, is_transactional, is_abort))
            start = end
        return found

    def _is_abort(self, position: int) -> bool:
        key = self._slice.read_part(position + ABORT_KEY_AT, len(_ABORT_KEY))
        return key == _ABORT_KEY


def read_batches(
    log: Log, offset: int, last_wanted: int, bytes_max: int, upper_offset: int, *, at_least_one: bool
) -> LogBatches | None:
    """Read batches from the log, as many as can be acquired. None if there are none. Raises KafkaError."""
    stage = STAGE_BYTES
    while True:
        found = log.read(offset, min(bytes_max, stage), upper_offset, at_least_one=at_least_one)
        if not len(found):
            return None
        batches = LogBatches(found, last_wanted)
        if (
            stage >= bytes_max
            or batches.reaches(min(last_wanted, upper_offset - 1))
            or len(found) < stage // 2
        ):
            return batches
        stage *= STAGES_FACTOR
