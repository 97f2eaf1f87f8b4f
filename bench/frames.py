"""Requests and record batches as bytes, built once before the clock starts.

In: topic names, record counts. Out: complete frames, and the position of the error code in the response.
Uses `struct` only: the code under test must not build the load.
Does not know: sockets, brokers.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import crc32c

PRODUCE_VERSION = 12
FLEXIBLE_SINCE = 9
FETCH_VERSION = 11
LIST_OFFSETS_VERSION = 5
METADATA_VERSION = 8
CLIENT_ID = b"bench"
VALUE_BYTES = 100
UNCOMPRESSED = 0  # in the attributes of a batch
SIZE_BYTES = 4
CORRELATION_BYTES = 4
CRC_AT, COVERED_AT, PRODUCER_AT, SEQUENCE_AT = 17, 21, 43, 53  # in a batch


@dataclass(frozen=True, slots=True)
class Batch:
    """One record batch of records without keys."""

    content: bytes
    records: int

    @property
    def size(self) -> int:
        return len(self.content)


@dataclass(frozen=True, slots=True)
class ProduceLoad:
    """A circle of equal produce frames, and the position of the error code in the response."""

    frames: bytes
    error_at: int
    batch: Batch


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def batch_of(records: int, value_bytes: int = VALUE_BYTES) -> Batch:
    return batch_with([bytes(ord("a") + i % 26 for i in range(value_bytes))] * records)


def batch_with(
    values: Sequence[bytes], codec: int = UNCOMPRESSED, compress: Callable[[bytes], bytes] = bytes
) -> Batch:
    """A batch with the current time, because retention depends on it."""
    now_ms = int(time.time() * 1000)
    records = len(values)
    body = bytearray()
    for delta, value in enumerate(values):
        record = b"\0" + varint(0) + varint(delta) + varint(-1) + varint(len(value)) + value + varint(0)
        body += varint(len(record)) + record
    # The part that the CRC covers, from the attributes on: no producer id.
    covered = struct.pack(">hiqqqhii", codec, records - 1, now_ms, now_ms, -1, -1, -1, records)
    covered += compress(bytes(body))
    head = struct.pack(">qiibI", 0, len(covered) + 9, -1, 2, crc32c.crc32c(covered))
    return Batch(head + covered, records)


def request(api_key: int, version: int, body: bytes, *, flexible: bool, correlation_id: int = 1) -> bytes:
    header = struct.pack(">hhih", api_key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    frame = header + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(frame)) + frame


def produce(
    topic: str, batch: Batch, copies: int, partition: int = 0, acks: int = 1, version: int = PRODUCE_VERSION
) -> ProduceLoad:
    frame = produce_frame(topic, [(partition, batch.content)], acks, version)
    return ProduceLoad(frame * copies, error_at(topic, version), batch)


def produce_frame(
    topic: str, batches: Sequence[tuple[int, bytes]], acks: int = 1, version: int = PRODUCE_VERSION
) -> bytes:
    """One request of version 3 to 12 with a batch for each of some partitions."""
    name = topic.encode()
    if version < FLEXIBLE_SINCE:
        body = struct.pack(">hhiih", -1, acks, 30000, 1, len(name)) + name + struct.pack(">i", len(batches))
        for partition, content in batches:
            body += struct.pack(">ii", partition, len(content)) + content
        return request(0, version, body, flexible=False)
    body = b"\0" + struct.pack(">hi", acks, 30000)  # no transactional id
    body += unsigned_varint(2) + unsigned_varint(len(name) + 1) + name + unsigned_varint(len(batches) + 1)
    for partition, content in batches:
        body += struct.pack(">i", partition) + unsigned_varint(len(content) + 1) + content + b"\0"
    return request(0, version, body + b"\0\0", flexible=True)


def error_at(topic: str, version: int = PRODUCE_VERSION) -> int:
    """The position of the first partition's error code in a produce response."""
    name = len(topic.encode())
    if version < FLEXIBLE_SINCE:
        # Before the error code: size, correlation id, topics, a name, partitions, an index.
        return SIZE_BYTES + CORRELATION_BYTES + 4 + 2 + name + 4 + 4
    # The same with the header's tagged fields, and lengths of one byte (that of a name may have two).
    return SIZE_BYTES + CORRELATION_BYTES + 1 + 1 + len(unsigned_varint(name + 1)) + name + 1 + 4


def numbered(batch: Batch, count: int, producer_id: int = 4711) -> Iterator[bytes]:
    """A batch of one record as an idempotent producer sends it, with sequence numbers from 0 on."""
    content = bytearray(batch.content)
    struct.pack_into(">qh", content, PRODUCER_AT, producer_id, 0)
    for sequence in range(count):
        struct.pack_into(">i", content, SEQUENCE_AT, sequence)
        struct.pack_into(">I", content, CRC_AT, crc32c.crc32c(memoryview(content)[COVERED_AT:]))
        yield bytes(content)


def fetch(topic: str, offset: int, max_bytes: int, *, wait_ms: int = 0, partition: int = 0) -> bytes:
    """A fetch without a session, like the first one of a consumer."""
    name = topic.encode()
    body = (
        struct.pack(">iiiibii", -1, wait_ms, 1, max_bytes, 0, 0, -1)
        + struct.pack(">ih", 1, len(name))
        + name
        + struct.pack(">iiiqqi", 1, partition, -1, offset, -1, max_bytes)
        + struct.pack(">ih", 0, 0)
    )
    return request(1, FETCH_VERSION, body, flexible=False)


def fetch_offset_at(topic: str) -> int:
    """The position of the offset in a frame of `fetch`, to patch it in place."""
    return len(fetch(topic, 0, 0)) - 6 - 4 - 8 - 8


FETCH_PARTITION_HEAD = struct.Struct(">ihqqqiii")


def fetch_head_bytes(topic: str) -> int:
    """The size of a fetch response before its records: one topic, one partition, no aborted transactions."""
    return SIZE_BYTES + CORRELATION_BYTES + 4 + 2 + 4 + 4 + 2 + len(topic) + 4 + FETCH_PARTITION_HEAD.size


def list_offsets(topics: dict[str, int]) -> bytes:
    """A ListOffsets request for the end offsets of partitions 0..n-1 of each topic."""
    body = bytearray(struct.pack(">ibi", -1, 0, len(topics)))
    for topic, partitions in topics.items():
        name = topic.encode()
        body += struct.pack(">h", len(name)) + name + struct.pack(">i", partitions)
        for partition in range(partitions):
            body += struct.pack(">iiq", partition, -1, -1)
    return request(2, LIST_OFFSETS_VERSION, bytes(body), flexible=False)


LIST_OFFSETS_PARTITION = struct.Struct(">ihqqi")


def list_offsets_errors(answer: bytes) -> list[int]:
    """The error codes other than 0 in the response (without its size) to `list_offsets`."""
    position = CORRELATION_BYTES + 4
    topics: int = struct.unpack_from(">i", answer, position)[0]
    position += 4
    errors: list[int] = []
    for _ in range(topics):
        position += 2 + struct.unpack_from(">h", answer, position)[0]
        partitions: int = struct.unpack_from(">i", answer, position)[0]
        position += 4
        for _ in range(partitions):
            error = LIST_OFFSETS_PARTITION.unpack_from(answer, position)[1]
            position += LIST_OFFSETS_PARTITION.size
            if error:
                errors.append(error)
    return errors


API_VERSIONS = request(18, 0, b"", flexible=False)
