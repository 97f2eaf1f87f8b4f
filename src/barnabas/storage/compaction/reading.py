"""Reading segments for the cleaner: all batches, many at a time.

In: a closed segment, a start position, the bytes to read at once. Out: lists of headers with their batches,
with checksums verified if asked for; `CorruptLog` at the first batch that is damaged or of an old format. A
log of small batches has millions of them, so all work for a batch is done in one loop here.
Does not know: what the caller does with the batches.
"""

from collections.abc import Iterator

from barnabas.records.batch import ATTRIBUTES_AT, BATCH_OVERHEAD, LOG_OVERHEAD, MAGIC, BatchHeader
from barnabas.records.crc32c import crc32c
from barnabas.storage.segments.segment import CorruptLog, Segment

Batches = list[tuple[BatchHeader, memoryview]]


def read_batches(segment: Segment, position: int, chunk_bytes: int, *, check: bool) -> Iterator[Batches]:
    """Read from a batch boundary to the end of the segment. A batch larger than a chunk is yielded alone."""
    end = segment.size
    wanted = max(chunk_bytes, BATCH_OVERHEAD)
    while position < end:
        buffer = memoryview(segment.pread(min(wanted, end - position), position))
        found, at = _whole_batches(segment, buffer, position, check)
        if found:
            yield found
            position += at
            wanted = max(chunk_bytes, BATCH_OVERHEAD)
            continue
        size = BatchHeader(buffer).batch_length + LOG_OVERHEAD if len(buffer) >= BATCH_OVERHEAD else end
        if size > end - position or len(buffer) < min(wanted, end - position):
            raise CorruptLog(segment.path, position, f"a batch of {size} bytes, {end - position} are left")
        wanted = size


def _whole_batches(segment: Segment, buffer: memoryview, position: int, check: bool) -> tuple[Batches, int]:
    """The complete batches in a buffer, and the position of the first incomplete one."""
    found: Batches = []
    add = found.append
    at, available = 0, len(buffer)
    while at + BATCH_OVERHEAD <= available:
        header = BatchHeader(buffer, at)
        size = header.batch_length + LOG_OVERHEAD
        if header.magic != MAGIC or size < BATCH_OVERHEAD:
            raise CorruptLog(segment.path, position + at, f"{size} bytes of format {header.magic}")
        if at + size > available:
            break
        if check and crc32c(buffer[at + ATTRIBUTES_AT : at + size]) != header.crc:
            raise CorruptLog(segment.path, position + at, "the checksum of a batch is wrong")
        add((header, buffer[at : at + size]))
        at += size
    return found, at
