"""Rebuilding of a batch: with another codec (`compression.type`), or with fewer records (compaction).

In: a batch and the changes. Out: a new sealed batch with the same offsets, timestamps and producer fields.
Does not know: which codec a topic has, which records survive compaction.
"""

from collections.abc import Iterable

from barnabas.records.batch import BATCH_OVERHEAD, COMPRESSION_MASK, HEADER, BatchHeader, seal
from barnabas.records.compression import DECOMPRESSED_BYTES_MAX, compress
from barnabas.records.crc32c import Buffer
from barnabas.records.record import RawRecord, payload


def reframe(
    header: BatchHeader,
    data: Buffer,
    *,
    attributes: int | None = None,
    record_count: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
) -> bytearray:
    """Build a batch from a header with changes and `data`, the (compressed) records."""
    batch = bytearray(
        HEADER.pack(
            header.base_offset,
            0,
            header.partition_leader_epoch,
            header.magic,
            0,
            header.attributes if attributes is None else attributes,
            header.last_offset_delta,
            header.base_timestamp if base_timestamp is None else base_timestamp,
            header.max_timestamp if max_timestamp is None else max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count if record_count is None else record_count,
        )
    )
    batch += data
    return seal(batch)


def recompress(
    batch: Buffer, compression: int, level: int | None = None, *, limit: int = DECOMPRESSED_BYTES_MAX
) -> bytearray:
    """The same records with another codec."""
    header = BatchHeader(batch)
    if header.size < BATCH_OVERHEAD:
        raise ValueError(f"not a record batch: {header}")
    return recompress_payload(header, payload(batch, header, limit), compression, level)


def recompress_payload(header: BatchHeader, data: bytes, compression: int, level: int | None) -> bytearray:
    return reframe(
        header,
        compress(compression, data, level),
        attributes=header.attributes & ~COMPRESSION_MASK | compression,
    )


def retain(
    header: BatchHeader,
    data: bytes,
    kept: Iterable[RawRecord],
    *,
    level: int | None = None,
    max_timestamp: int | None = None,
) -> bytearray:
    """The batch with only some of its records. `data` is its payload, `kept` are records found by `scan`.

    Record bytes are copied unchanged. The batch keeps its first and last offset, as compaction requires.
    """
    pieces = [data[raw.start : raw.end] for raw in kept]
    return reframe(
        header,
        compress(header.compression, b"".join(pieces), level) if pieces else b"",
        attributes=header.attributes if pieces else header.attributes & ~COMPRESSION_MASK,
        record_count=len(pieces),
        max_timestamp=max_timestamp,
    )
