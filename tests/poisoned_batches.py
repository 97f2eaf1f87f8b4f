"""Batches whose checksum is right and whose records are not: what a broken or hostile producer sends.

`UNCOMPRESSED` and `COMPRESSED` have a batch for each way to be wrong that a header does not show;
`HEADERS` those that a header does show. Each name says what is wrong.
"""

from __future__ import annotations

from barnabas.records import varint
from barnabas.records.batch import HEADER, seal
from barnabas.records.compression import Compression, compress

TIME_MS = 1_700_000_000_000
COUNT_AT = 57
LAST_OFFSET_DELTA_AT = 23
ATTRIBUTES_AT = 21
CODECS = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)


def batch_around(
    body: bytes, count: int, codec: Compression = Compression.NONE, *, is_packed: bool = False
) -> bytes:
    """A batch with a right header and checksum around any bytes; `is_packed`: they are compressed already."""
    header = HEADER.pack(0, 0, -1, 2, 0, codec, count - 1, TIME_MS, TIME_MS, -1, -1, -1, count)
    return bytes(seal(bytearray(header + (body if is_packed else compress(codec, body)))))


def record(
    offset_delta: int = 0,
    *,
    size_more: int = 0,
    attributes: int = 0,
    timestamp_delta: int = 0,
    key: bytes = varint.encode(1) + b"k",
    value: bytes = varint.encode(5) + b"value",
    headers: bytes = varint.encode(0),
) -> bytes:
    """One encoded record; `key`, `value` and `headers` come with their sizes, which may lie."""
    fields = (
        bytes([attributes])
        + varint.encode(timestamp_delta)
        + varint.encode(offset_delta)
        + key
        + value
        + headers
    )
    return varint.encode(len(fields) + size_more) + fields


def header_of(key: bytes | None, value: bytes | None) -> bytes:
    return sized(key) + sized(value)


def sized(data: bytes | None) -> bytes:
    return varint.encode(-1) if data is None else varint.encode(len(data)) + data


def good(count: int = 3) -> bytes:
    return b"".join(record(delta) for delta in range(count))


PADDED = b"\x80\x80\x80\x80\x80\x00"  # a varint of six bytes
HEADER_PAIR = varint.encode(1) + header_of(b"name", b"content")

BODIES: dict[str, tuple[bytes, int]] = {
    # what is wrong: the (uncompressed) body, and the count that the header declares
    "no bytes at all": (b"", 1),
    "text instead of a record": (b"this is no record at all, it is plain text", 1),
    "zeros instead of a record": (bytes(40), 1),
    "one record more declared": (good(3), 4),
    "one record less declared": (good(3), 2),
    "a million records declared": (good(3), 1_000_000),
    "the last record cut off": (good(3)[:-2], 3),
    "one byte behind the records": (good(3) + b"\0", 3),
    "a record behind the records": (good(4), 3),
    "a record of size zero": (record(0) + b"\0" + record(2), 3),
    "a record of negative size": (record(0) + varint.encode(-5) + record(2), 3),
    "a size of six bytes": (record(0) + PADDED + record(2)[1:], 2),
    "a record larger than the batch": (record(0) + record(1, size_more=5000), 2),
    "a size one too large": (record(0, size_more=1) + record(1), 2),
    "a size one too small": (record(0, size_more=-1) + record(1), 2),
    "the last size one too large": (record(0) + record(1, size_more=1), 2),
    "the last size one too small": (record(0) + record(1, size_more=-1), 2),
    "a record with bytes behind its headers": (record(0, size_more=2) + b"zz" + record(1), 2),
    "a key larger than its record": (record(0, key=varint.encode(500) + b"k") + record(1), 2),
    "a key of size -2": (record(0, key=varint.encode(-2)) + record(1), 2),
    "a value larger than its record": (record(0, value=varint.encode(500) + b"v") + record(1), 2),
    "a value that reaches into the next record": (
        record(0, value=varint.encode(9) + b"value") + record(1),
        2,
    ),
    "a value of size -2": (record(0, value=varint.encode(-2)) + record(1), 2),
    "a null header key": (record(0, headers=varint.encode(1) + header_of(None, b"x")), 1),
    "a header key of size -2": (
        record(0, headers=varint.encode(1) + varint.encode(-2) + sized(b"x")),
        1,
    ),
    "a header key larger than its record": (
        record(0, headers=varint.encode(1) + varint.encode(99) + b"x" + sized(b"x")),
        1,
    ),
    "a header value larger than its record": (
        record(0, headers=varint.encode(1) + sized(b"x") + varint.encode(99) + b"x"),
        1,
    ),
    "a header value of size -2": (
        record(0, headers=varint.encode(1) + sized(b"x") + varint.encode(-2)),
        1,
    ),
    "a header key that is not UTF-8": (
        record(0, headers=varint.encode(1) + header_of(b"\xff\xfe\xc0", b"x")),
        1,
    ),
    "a null header value": (record(0, headers=varint.encode(1) + header_of(b"x", None)), 1),
    "minus one headers": (record(0, headers=varint.encode(-1)), 1),
    "a billion headers": (record(0, headers=varint.encode(1_000_000_000)), 1),
    "one header more declared": (record(0, headers=varint.encode(2) + header_of(b"x", b"y")), 1),
    "one header less declared": (
        record(0, headers=varint.encode(1) + header_of(b"x", b"y") * 2) + record(1),
        2,
    ),
    "attributes in a record": (record(0, attributes=0x7F) + record(1), 2),
    "offset deltas that start at one": (record(1) + record(2), 2),
    "offset deltas with a gap": (record(0) + record(5), 2),
    "offset deltas that do not move": (record(0) + record(0), 2),
    "offset deltas backwards": (record(1) + record(0), 2),
    "a negative offset delta": (record(-1) + record(1), 2),
    "an offset delta of six bytes": (
        varint.encode(16) + b"\0\0" + PADDED + varint.encode(1) + b"k" + varint.encode(5) + b"value\0",
        1,
    ),
    "a timestamp delta of ten bytes": (record(0, timestamp_delta=-(2**63)) + record(1), 2),
    "a timestamp in the far future": (record(0, timestamp_delta=2**50) + record(1), 2),
    "a timestamp before 1970": (record(0, timestamp_delta=-(2**45)) + record(1), 2),
}

UNCOMPRESSED = {name: batch_around(body, count) for name, (body, count) in BODIES.items()}


def compressed(codec: Compression) -> dict[str, bytes]:
    """The same behind a codec, and what can be wrong with the compressed bytes themselves."""
    found = {name: batch_around(body, count, codec) for name, (body, count) in BODIES.items() if body}
    packed = compress(codec, good(300))
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 0xFF
    found |= {
        "plain records under a codec": batch_around(good(3), 3, codec, is_packed=True),
        "no compressed bytes": batch_around(b"", 1, codec, is_packed=True),
        "one compressed byte": batch_around(packed[:1], 1, codec, is_packed=True),
        "compressed bytes cut off": batch_around(packed[: len(packed) // 2], 300, codec, is_packed=True),
        "compressed bytes damaged": batch_around(bytes(damaged), 300, codec, is_packed=True),
        "bytes behind the compressed ones": batch_around(packed + b"zzzz", 300, codec, is_packed=True),
        "two frames": batch_around(
            compress(codec, good(1)) + compress(codec, record(1)), 2, codec, is_packed=True
        ),
        "another codec's bytes": batch_around(
            compress(Compression.ZSTD if codec != Compression.ZSTD else Compression.LZ4, good(3)),
            3,
            codec,
            is_packed=True,
        ),
    }
    return found
