"""Batches with a right checksum and records that are none: the cleaner says where, and ends."""

from __future__ import annotations

import pytest

from barnabas.records import varint
from barnabas.records.batch import BatchHeader
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch
from barnabas.storage import Log
from barnabas.storage.compaction.cleaner import UnreadableBatch
from barnabas.storage.compaction.record_bytes import BadRecords, keys_of, starts_of
from poisoned_batches import CODECS, UNCOMPRESSED, batch_around, compressed, good, record

from ..building import NOW_MS, append
from .histories import SETTINGS, all_records, clean, clean_once

# A pass takes what it can tell the keys of.
HARMLESS = {
    "a key of size -2",
    "a value of size -2",
    "a value larger than its record",
    "a value that reaches into the next record",
    "a null header key",
    "a header key of size -2",
    "a header key larger than its record",
    "a header value larger than its record",
    "a header value of size -2",
    "a header key that is not UTF-8",
    "a null header value",
    "minus one headers",
    "a billion headers",
    "one header more declared",
    "one header less declared",
    "attributes in a record",
    "offset deltas that start at one",
    "offset deltas with a gap",
    "offset deltas that do not move",
    "offset deltas backwards",
    "a negative offset delta",
    "a record of size zero",
    "a record with bytes behind its headers",
    "a timestamp delta of ten bytes",
    "a timestamp in the far future",
    "a timestamp before 1970",
}
BASE_OFFSET = 1


def poisoned_log(directory: str, poison: bytes) -> Log:
    log = Log.create(directory, SETTINGS, now_ms=NOW_MS)
    first = build_batch([Record(timestamp=NOW_MS, key=b"k", value=b"1")], partition_leader_epoch=0)
    append(log, first)
    batch = bytearray(poison)
    header = BatchHeader(batch)
    header.assign(batch, BASE_OFFSET, 0)
    append(log, batch)
    last = [Record(timestamp=NOW_MS, key=b"k", value=b"2")]
    append(log, build_batch(last, base_offset=header.next_offset, partition_leader_epoch=0))
    log.roll()
    return log


@pytest.mark.parametrize("name", UNCOMPRESSED)
def test_a_batch_that_cannot_be_read_is_named(directory: str, name: str) -> None:
    log = poisoned_log(directory, UNCOMPRESSED[name])
    if name in HARMLESS:
        clean(log)
        return
    with pytest.raises(UnreadableBatch, match=f"the batch of offsets {BASE_OFFSET} to "):
        clean_once(log, 0)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("name", ["plain records under a codec", "compressed bytes cut off"])
def test_a_batch_that_does_not_unpack_is_named(directory: str, codec: Compression, name: str) -> None:
    log = poisoned_log(directory, compressed(codec)[name])
    with pytest.raises(UnreadableBatch, match=f"the batch of offsets {BASE_OFFSET} to .* cannot be read"):
        clean_once(log, 0)


def test_a_size_that_leads_back_does_not_keep_the_cleaner_busy(directory: str) -> None:
    """Two billion records are declared, and the second leads back to the first."""
    back = record(0) + varint.encode(-len(record(0)) - 2_000_000)
    for read in (keys_of, starts_of):
        with pytest.raises(BadRecords, match="its size is -"):
            read(back, 2**31 - 1)
    with pytest.raises(UnreadableBatch):
        clean_once(poisoned_log(directory, batch_around(back, 2**31 - 1)), 0)


def test_sound_records_of_the_same_making_are_cleaned(directory: str) -> None:
    log = poisoned_log(directory, batch_around(good(3), 3))
    clean(log)
    assert [each.value for each in all_records(log)] == [b"2"]
