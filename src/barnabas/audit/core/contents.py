"""Sums of records' contents: whether two tiers saw the same records, not only as many.

In: the key, the value and the timestamp of a record, as they are in the log. Out: a number of 64 bits. Sums
of these numbers modulo 2^64 do not depend on the order of records, so counters can add them up. A lost record
and a repeated one leave the count as it was, and change the sum. Headers are left out: mirrors add some.
Does not know: where records come from.
"""

from __future__ import annotations

from zlib import crc32

MODULUS_MASK = 0xFFFF_FFFF_FFFF_FFFF
KEY, NO_KEY, NO_VALUE = 0x1F3D_5B79, 0x9E37_79B9, 0x7F4A_7C15
LENGTH = 0x85EB_CA6B  # tells where a key ends
FIRST, SECOND = 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB  # odd numbers that mix all bits


def content_of(key: bytes | memoryview | None, value: bytes | memoryview | None, timestamp_ms: int) -> int:
    """The number of one record. Null and empty are different."""
    seed = NO_KEY if key is None else crc32(key, KEY) ^ len(key) * LENGTH & 0xFFFF_FFFF
    text = crc32(value, seed) if value is not None else seed ^ NO_VALUE
    mixed = ((text << 32 | text) ^ timestamp_ms * SECOND) & MODULUS_MASK
    # Checksums alone are linear: sums of them agree too often where records exchange parts.
    mixed = (mixed ^ mixed >> 30) * FIRST & MODULUS_MASK
    mixed = (mixed ^ mixed >> 27) * SECOND & MODULUS_MASK
    return mixed ^ mixed >> 31


def is_plain(part: object) -> bool:
    """Whether a client has it as the log has it: objects that a deserializer made are something else."""
    return part is None or isinstance(part, (bytes, str))


def plain_bytes(part: object) -> bytes | None:
    """Text is UTF-8, as clients write it without a serializer."""
    return part.encode() if isinstance(part, str) else part  # type: ignore[return-value]
