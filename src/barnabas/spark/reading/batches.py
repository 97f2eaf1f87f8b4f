"""Fetched bytes become the records of whole batches, ready for the kernel.

In: what a Fetch answered: batches, the last one perhaps cut off, and the transactions that were aborted. Out:
chunks of uncompressed bytes, with the place of every batch's records in them, of a size that suits caches.
Control batches and aborted records are left out; checksums are checked.
Does not know: connections, columns.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from barnabas.client.core.fetching import Aborted
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import (
    APPEND_TIME_FLAG,
    ATTRIBUTES_AT,
    BATCH_OVERHEAD,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL_FLAG,
)
from barnabas.records.control import read_end_marker
from barnabas.records.crc32c import crc32c
from barnabas.spark.reading.unpacking import Room, RoomFull

log = logging.getLogger("barnabas.spark")
CHUNK_BYTES = 4 * 1024 * 1024
NO_TIME = -1
GUESS_MARGIN = 1.1


class Unreadable:
    """The treatment of a batch that cannot be read: an error that names it, or a warning."""

    def __init__(self, place: object, *, fails: bool = True) -> None:
        self._place = place
        self._fails = fails

    def __call__(self, base_offset: int, error: KafkaError) -> None:
        text = f"the batch at offset {base_offset} of {self._place} cannot be read: {error.message}"
        if self._fails:
            raise KafkaError(
                error.code,
                f"{text}. Set the option failOnCorruptRecords to false to go on without its records.",
            ) from error
        log.warning("%s; the query goes on without its records", text)


FAIL = Unreadable("the partition")


@dataclass(slots=True)
class Chunk:
    """Batches that were fetched together. Their bytes are valid until the next chunk is asked for."""

    data: bytearray | memoryview
    first: int  # records before it were not asked for, though a batch may hold some
    bytes: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    base_offsets: list[int] = field(default_factory=list)
    base_timestamps: list[int] = field(default_factory=list)
    append_times: list[int] = field(default_factory=list)

    @property
    def record_count(self) -> int:
        return sum(self.counts)

    def alone(self, index: int) -> Chunk:
        """One of the batches, without the others."""
        chosen = slice(index, index + 1)
        return Chunk(
            self.data, self.first, self.ends[index] - self.starts[index], self.starts[chosen],
            self.ends[chosen], self.counts[chosen], self.base_offsets[chosen], self.base_timestamps[chosen],
            self.append_times[chosen],
        )  # fmt: skip

    def add(self, start: int, end: int, count: int, base: int, base_timestamp: int, time: int) -> None:
        """The records of one batch, from `start` to `end` in the data."""
        if count < 0 or count > end - start:
            raise broken()
        self.bytes += end - start
        self.starts.append(start)
        self.ends.append(end)
        self.counts.append(count)
        self.base_offsets.append(base)
        self.base_timestamps.append(base_timestamp)
        self.append_times.append(time)


def next_offset_of(records: memoryview, offset: int) -> int:
    """The offset behind the last whole batch; only headers are read."""
    position, end = 0, len(records)
    while end - position >= BATCH_OVERHEAD:
        size = int.from_bytes(records[position + LENGTH_AT : position + LENGTH_AT + 4], "big") + LOG_OVERHEAD
        if size > end - position:
            break
        base = int.from_bytes(records[position : position + 8], "big")
        delta = int.from_bytes(records[position + 23 : position + 27], "big")
        offset = base + delta + 1
        position += size
    return offset


def read_chunks(
    records: memoryview,
    offset: int,
    stop: int,
    aborted: Aborted | None,
    room: Room,
    *,
    checks_crc: bool = True,
    unreadable: Unreadable = FAIL,
) -> Iterator[Chunk]:
    """The batches that have records in [offset, stop), those that are compressed unpacked into the room."""
    chunk = Chunk(records, offset)
    expansion = 1.0  # of batches seen so far: the next one is likely no worse
    position, end = 0, len(records)
    while end - position >= BATCH_OVERHEAD:
        (
            base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp, max_timestamp,
            producer_id, _, _, count,
        ) = HEADER.unpack_from(records, position)  # fmt: skip
        size = length + LOG_OVERHEAD
        if size > end - position:
            break
        start, position = position, position + size
        try:
            check_batch(records, start, size, magic, crc, checks_crc=checks_crc)
        except KafkaError as error:
            if size < BATCH_OVERHEAD:
                raise  # nobody knows where the next one begins
            unreadable(base_offset, error)
            continue
        last_offset = base_offset + last_delta
        if attributes & CONTROL_FLAG:
            if aborted is not None and attributes & TRANSACTIONAL_FLAG:
                marker = read_end_marker(records, position=start)
                if marker is not None and marker.aborted:
                    aborted.ends(producer_id, last_offset)
            continue
        if aborted is not None and attributes & TRANSACTIONAL_FLAG and aborted.has(producer_id, last_offset):
            continue
        if last_offset < offset or base_offset >= stop or not count:
            continue
        codec = attributes & COMPRESSION_MASK
        packed = size - BATCH_OVERHEAD
        likely = int(packed * expansion) if codec else packed
        is_other_data = (chunk.data is records) == bool(codec)
        if chunk.counts and (is_other_data or chunk.bytes + likely > CHUNK_BYTES):
            yield chunk
            chunk = Chunk(records, offset)
        time = max_timestamp if attributes & APPEND_TIME_FLAG else NO_TIME
        if not codec:
            if not chunk.counts:
                chunk = Chunk(records, offset)
            try:
                chunk.add(start + BATCH_OVERHEAD, position, count, base_offset, base_timestamp, time)
            except KafkaError as error:
                unreadable(base_offset, error)
            continue
        body = records[start + BATCH_OVERHEAD : position]
        if not chunk.counts:
            room.clear()
        try:
            try:
                unpacked = room.unpack(codec, body)
            except RoomFull:
                yield chunk
                chunk = Chunk(records, offset)
                room.clear()
                unpacked = room.unpack(codec, body)
            filled = room.filled
            chunk.add(filled - unpacked, filled, count, base_offset, base_timestamp, time)
        except KafkaError as error:
            unreadable(base_offset, error)
            continue
        chunk.data = room.data
        expansion = max(expansion, unpacked / packed * GUESS_MARGIN)
    if chunk.counts:
        yield chunk


def check_batch(
    records: memoryview, position: int, size: int, magic: int, crc: int, *, checks_crc: bool
) -> None:
    if size < BATCH_OVERHEAD or records[position + MAGIC_AT] != MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{size} bytes of the unknown format {magic}")
    if checks_crc and crc32c(records[position + ATTRIBUTES_AT : position + size]) != crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "its checksum is wrong")


def broken() -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, "its records do not fit together")
