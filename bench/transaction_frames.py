"""Requests of transactional producers as bytes, and readers of their responses.

In: transactional ids, producers, batches. Out: complete frames; errors, ids and epochs from responses. Uses
the versions of transaction version 2, and `struct` only: the code under test must not build the load. Does
not know: sockets, brokers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import crc32c

from bench.frames import CORRELATION_BYTES, PRODUCE_VERSION, Batch, request, unsigned_varint

TRANSACTION = 1  # key type in FindCoordinator
TIMEOUT_MS = 60_000
THROTTLE_BYTES = 4
CRC_AT = 17
COVERED_AT = 21  # from the attributes on
PRODUCER_AT = 43  # id, epoch, base sequence
TRANSACTIONAL = 0x10
READ_COMMITTED = 1
_producer = struct.Struct(">qhi")


@dataclass(slots=True)
class Producer:
    """The current id and epoch of a transactional producer."""

    transactional_id: str
    producer_id: int = -1
    epoch: int = -1


def compact(value: str) -> bytes:
    data = value.encode()
    return unsigned_varint(len(data) + 1) + data


def find_coordinator(transactional_id: str) -> bytes:
    data = transactional_id.encode()
    body = struct.pack(">h", len(data)) + data + struct.pack(">b", TRANSACTION)
    return request(10, 2, body, flexible=False)


def init_producer_id(transactional_id: str) -> bytes:
    data = transactional_id.encode()
    body = struct.pack(">h", len(data)) + data + struct.pack(">i", TIMEOUT_MS)
    return request(22, 1, body, flexible=False)


def initialized(answer: bytes) -> tuple[int, int, int]:
    """Error, producer id and epoch in a response without its size."""
    error, producer_id, epoch = struct.unpack_from(">hqh", answer, CORRELATION_BYTES + THROTTLE_BYTES)
    return error, producer_id, epoch


def transactional(batch: Batch, producer: Producer, sequence: int = 0) -> bytes:
    """The batch with the producer's id, epoch and sequence, as part of its transaction."""
    content = bytearray(batch.content)
    (attributes,) = struct.unpack_from(">h", content, COVERED_AT)
    struct.pack_into(">h", content, COVERED_AT, attributes | TRANSACTIONAL)
    _producer.pack_into(content, PRODUCER_AT, producer.producer_id, producer.epoch, sequence)
    struct.pack_into(">I", content, CRC_AT, crc32c.crc32c(memoryview(content)[COVERED_AT:]))
    return bytes(content)


def produce(producer: Producer, topic: str, partition: int, batch: Batch, sequence: int = 0) -> bytes:
    records = transactional(batch, producer, sequence)
    body = (
        compact(producer.transactional_id)
        + struct.pack(">hi", -1, 30000)
        + unsigned_varint(2)
        + compact(topic)
        + unsigned_varint(2)
        + struct.pack(">i", partition)
        + unsigned_varint(len(records) + 1)
        + records
        + b"\0\0\0"
    )
    return request(0, PRODUCE_VERSION, body, flexible=True)


def produce_error(answer: bytes, topic: str) -> int:
    """The error code in a response without its size, with one topic and one partition."""
    error: int = struct.unpack_from(">h", answer, CORRELATION_BYTES + 1 + 1 + len(compact(topic)) + 1 + 4)[0]
    return error


def end(producer: Producer, *, commit: bool = True) -> bytes:
    body = compact(producer.transactional_id)
    body += struct.pack(">qh?", producer.producer_id, producer.epoch, commit) + b"\0"
    return request(26, 5, body, flexible=True)


def ended(answer: bytes) -> tuple[int, int, int]:
    """Error, and the producer id and epoch of the next transaction."""
    error, producer_id, epoch = struct.unpack_from(">hqh", answer, CORRELATION_BYTES + 1 + THROTTLE_BYTES)
    return error, producer_id, epoch


@dataclass(frozen=True, slots=True)
class Fetched:
    error: int
    aborted: int
    records_at: int
    records_bytes: int


def fetched(answer: memoryview, topic: str) -> Fetched:
    """The content of a fetch response of version 11 (without its size) with one topic and one partition."""
    position = CORRELATION_BYTES + THROTTLE_BYTES + 2 + 4 + 4 + 2 + len(topic) + 4
    _, error, _, _, _ = struct.unpack_from(">ihqqq", answer, position)
    position += 30
    (aborted,) = struct.unpack_from(">i", answer, position)
    position += 4 + 16 * max(aborted, 0) + 4
    (size,) = struct.unpack_from(">i", answer, position)
    return Fetched(error, aborted, position + 4, size)


def next_offset(records: memoryview) -> tuple[int, int]:
    """The offset after the complete batches in `records`, and their size; -1 if there is none."""
    position, offset = 0, -1
    while position + 61 <= len(records):
        base, size = struct.unpack_from(">qi", records, position)
        if position + 12 + size > len(records):
            break
        offset = base + struct.unpack_from(">i", records, position + 23)[0] + 1
        position += 12 + size
    return offset, position
