"""Validation of plain batches (uncompressed, without a producer id) without a `BatchHeader`.

In: the records of one partition of a Produce request. Out: the four numbers that the log needs, or None. None
says nothing about the batch: the caller uses `validate_produce`. Both accept the same plain batches, which a
test compares. This one takes half the time.
Does not know: what is wrong with a batch, offsets, the log.
"""

import struct
from typing import TypeAlias

from barnabas.records.batch import ATTRIBUTES_AT, LOG_OVERHEAD, MAGIC
from barnabas.records.crc32c import crc32c
from barnabas.records.record_checks import PLAIN_PREFIXES, is_one_plain_record, looks_valid
from barnabas.records.validation import AppendRules

PRODUCER_ID_AT = 43
SIGN = 0x80  # the sign bit in the first byte of a number

PlainBatch: TypeAlias = tuple[int, int, int, int]
"""Size in bytes, last offset delta, largest timestamp, number of records."""

# Base offset, length, magic, checksum, attributes, last offset delta, both timestamps, number of records,
# first bytes of the first record.
_fields = struct.Struct(">qi4xbIhiqq14xi8s")
_unpack = _fields.unpack_from
SIZE_MIN = _fields.size


def plain_batch(records: memoryview, rules: AppendRules, now_ms: int) -> PlainBatch | None:
    """Validate a batch; None if it is not plain or the rules may forbid it."""
    size = len(records)
    if size < SIZE_MIN or not records[PRODUCER_ID_AT] & SIGN or not rules.header_suffices:
        return None
    base_offset, length, magic, crc, attributes, delta, base_timestamp, max_timestamp, count, first = _unpack(
        records
    )
    latest = now_ms + rules.timestamp_after_max_ms
    if (
        attributes
        or base_offset
        or magic != MAGIC
        or length + LOG_OVERHEAD != size
        or size > rules.batch_bytes_max
        or delta + 1 != count
        or count <= 0
        or max_timestamp > latest
        or base_timestamp > latest
        or crc32c(records[ATTRIBUTES_AT:]) != crc
    ):
        return None
    if rules.looks_at_ends:
        if count > 1:
            if not looks_valid(records, size, count, 0):
                return None
        # The most common record, with a value of 64 bytes or more and no key, needs no call.
        elif (PLAIN_PREFIXES.get(size) != first or records[-1]) and not is_one_plain_record(records, size):
            return None
    return size, delta, max_timestamp, count
