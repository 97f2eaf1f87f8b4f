"""Single facts of cleaning: what the random histories cannot name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.steps import at_once
from barnabas.records.batch import BatchHeader
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch, read_records
from barnabas.storage import Log
from barnabas.storage.compaction.cleanable import CleanerLimits
from barnabas.storage.compaction.filtering import emptied, rebuilt
from barnabas.storage.compaction.grouping import SegmentSizes, group_segments
from barnabas.storage.compaction.job import RECORDS_A_STEP, CleaningJob
from barnabas.storage.compaction.last_offsets import KEY_OVERHEAD_BYTES
from barnabas.storage.compaction.record_bytes import BadRecords, keys_of, starts_of
from barnabas.storage.compaction.throttle import Throttle
from barnabas.storage.segments.segment import CorruptLog

from ..building import NOW_MS, append, append_marker
from .histories import DAY_MS, LIMITS, SETTINGS, all_records, batches_of, clean, clean_once


@pytest.fixture
def compacted(directory: str) -> Log:
    return Log.create(directory, SETTINGS, now_ms=NOW_MS)


def keyed(at: int, *pairs: tuple[bytes, bytes | None], producer_id: int = -1, **fields: Any) -> bytearray:
    records = [Record(timestamp=NOW_MS + at + index, key=k, value=v) for index, (k, v) in enumerate(pairs)]
    return build_batch(records, base_offset=at, producer_id=producer_id, partition_leader_epoch=0, **fields)


def headers_of(log: Log) -> list[BatchHeader]:
    return [header for header, _ in batches_of(log)]


# Tombstones


def test_a_tombstone_gets_its_horizon_with_the_first_pass_and_keeps_it(compacted: Log) -> None:
    append(compacted, keyed(0, (b"a", b"1"), (b"a", None)), keyed(2, (b"b", b"1")))
    compacted.roll()

    clean(compacted)
    first, second = headers_of(compacted)
    assert (first.delete_horizon_ms, second.delete_horizon_ms) == (NOW_MS + DAY_MS, None)
    assert first.max_timestamp == NOW_MS + 1
    assert [record.timestamp for record in all_records(compacted)] == [NOW_MS + 1, NOW_MS + 2]

    clean(compacted, now_ms=NOW_MS + 1000)
    assert headers_of(compacted)[0].delete_horizon_ms == NOW_MS + DAY_MS


def test_the_largest_timestamp_is_that_of_the_remaining_records(compacted: Log) -> None:
    late = Record(timestamp=NOW_MS + 99, key=b"a", value=b"1")
    early = Record(timestamp=NOW_MS, key=b"b", value=b"1")
    append(compacted, build_batch([late, early], partition_leader_epoch=0), keyed(2, (b"a", b"2")))
    compacted.roll()
    clean(compacted)
    assert headers_of(compacted)[0].max_timestamp == NOW_MS
    assert compacted.segments[0].largest_timestamp() == (NOW_MS + 2, 2)


# Producers and the end of the log


def test_the_last_batch_of_a_producer_stays_as_a_header(compacted: Log) -> None:
    append(compacted, keyed(0, (b"a", b"1"), producer_id=7, producer_epoch=3, base_sequence=41))
    append(compacted, keyed(1, (b"a", b"2")))
    compacted.roll()
    clean(compacted)
    empty, _ = headers_of(compacted)
    assert (empty.base_offset, empty.record_count, empty.size) == (0, 0, 61)
    assert (empty.producer_id, empty.producer_epoch, empty.last_sequence) == (7, 3, 41)


def test_the_last_batch_of_a_pass_stays_as_a_header(compacted: Log) -> None:
    append(compacted, keyed(0, (b"a", b"1")), keyed(1, (b"a", None)))
    compacted.roll()
    clean(compacted)
    clean(compacted, now_ms=NOW_MS + DAY_MS)
    assert [(header.base_offset, header.record_count) for header in headers_of(compacted)] == [(1, 0)]


def test_a_pass_ends_where_the_next_segment_begins(compacted: Log) -> None:
    append(compacted, keyed(0, (b"a", b"1")))
    compacted.roll(10)
    append(compacted, keyed(10, (b"b", b"1")))
    assert clean_once(compacted, 0).end_offset == 10


def test_an_emptied_batch_keeps_its_header_fields() -> None:
    batch = build_batch(
        [Record(timestamp=NOW_MS, key=b"k", value=b"v")],
        base_offset=5,
        producer_id=1,
        producer_epoch=2,
        base_sequence=3,
        transactional=True,
        compression=Compression.ZSTD,
        append_time_ms=NOW_MS + 5,
    )
    header, left = BatchHeader(batch), BatchHeader(emptied(BatchHeader(batch)))
    assert left.record_count == 0
    assert (left.compression, left.base_timestamp, left.is_transactional) == (0, -1, True)
    assert (left.timestamp_type, left.max_timestamp) == (header.timestamp_type, header.max_timestamp)
    assert (left.base_offset, left.last_offset, left.last_sequence) == (5, 5, 3)


# Transactions


def test_a_marker_stays_while_its_transaction_has_batches_and_another_while_after(compacted: Log) -> None:
    append(
        compacted,
        keyed(0, (b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
    )
    append_marker(compacted, 7, aborted=True)
    append(compacted, keyed(2, (b"b", b"1")))
    compacted.roll()
    # Nobody needs the producer's last batch.
    at_once(compacted.producers.expire(NOW_MS + 10 * DAY_MS, DAY_MS))

    clean(compacted)
    assert [header.base_offset for header in headers_of(compacted)] == [1, 2]
    assert headers_of(compacted)[0].delete_horizon_ms is None
    assert len(compacted.aborted_transactions(0, 3)) == 1

    clean(compacted)
    assert headers_of(compacted)[0].delete_horizon_ms == NOW_MS + DAY_MS
    assert compacted.aborted_transactions(0, 3) == []

    clean(compacted, now_ms=NOW_MS + DAY_MS)
    assert [header.base_offset for header in headers_of(compacted)] == [2]


def test_a_marker_ends_one_transaction(compacted: Log) -> None:
    append(
        compacted,
        keyed(0, (b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
    )
    append_marker(compacted, 7, aborted=False)
    append_marker(compacted, 7, aborted=False)  # of a transaction without records
    append(compacted, keyed(3, (b"b", b"1")))
    compacted.roll()
    clean(compacted)
    assert [header.delete_horizon_ms for header in headers_of(compacted)] == [
        None,
        None,
        NOW_MS + DAY_MS,
        None,
    ]


def test_the_marker_of_an_active_producer_without_data_stays_as_a_header(compacted: Log) -> None:
    append_marker(compacted, 7, aborted=False)
    append(compacted, keyed(1, (b"b", b"1")))
    compacted.roll()
    clean(compacted)
    clean(compacted, now_ms=NOW_MS + DAY_MS)
    marker, _ = headers_of(compacted)
    assert (marker.is_control, marker.record_count, marker.producer_id) == (True, 0, 7)


# Memory, passes, damage


def test_keys_that_do_not_fit_are_left_to_the_next_pass(compacted: Log) -> None:
    for index in range(10):
        append(compacted, keyed(index, (b"key-%d" % index, b"1")))
    compacted.roll()
    limits = replace(LIMITS, key_bytes_max=4 * KEY_OVERHEAD_BYTES)
    first = clean_once(compacted, 0, limits=limits)
    second = clean_once(compacted, first.end_offset, limits=limits)
    assert (first.end_offset, second.end_offset) == (4, 8)
    assert first.buffer_utilization == 1.0


def test_a_key_that_repeats_takes_no_more_room(compacted: Log) -> None:
    for index in range(100):
        append(compacted, keyed(index, (b"same", b"1")))
    compacted.roll()
    stats = clean_once(compacted, 0, limits=replace(LIMITS, key_bytes_max=2 * KEY_OVERHEAD_BYTES))
    assert stats.end_offset == 100
    assert [record.offset for record in all_records(compacted)] == [99]


def test_records_without_a_key_go(compacted: Log) -> None:
    records = [Record(timestamp=NOW_MS, value=b"1"), Record(timestamp=NOW_MS, key=b"k", value=b"2")]
    append(compacted, build_batch(records, partition_leader_epoch=0))
    compacted.roll()
    stats = clean_once(compacted, 0)
    assert stats.invalid_records == 1
    assert [record.offset for record in all_records(compacted)] == [1]


def test_an_empty_key_is_a_key(compacted: Log) -> None:
    append(compacted, keyed(0, (b"", b"1")), keyed(1, (b"", b"2")))
    compacted.roll()
    clean(compacted)
    assert [record.offset for record in all_records(compacted)] == [1]


def test_a_damaged_batch_is_not_cleaned_over(compacted: Log) -> None:
    append(compacted, keyed(0, (b"a", b"1")), keyed(1, (b"a", b"2")))
    compacted.roll()
    with Path(compacted.segments[0].path).open("r+b") as file:
        file.seek(65)
        file.write(b"\xff\xff")
    with pytest.raises(CorruptLog):
        clean_once(compacted, 0)


@pytest.mark.parametrize("cut", [1, 60, 75])
def test_a_segment_that_ends_within_a_batch_is_not_cleaned(compacted: Log, cut: int) -> None:
    append(compacted, keyed(0, (b"a", b"1")), keyed(1, (b"a", b"2")))
    compacted.roll()
    segment = compacted.segments[0]
    with Path(segment.path).open("r+b") as file:
        file.truncate(segment.size - cut)
    with pytest.raises(CorruptLog):
        clean_once(compacted, 0)


def test_a_batch_of_an_old_format_is_not_cleaned(compacted: Log) -> None:
    append(compacted, keyed(0, (b"a", b"1")), keyed(1, (b"a", b"2")))
    compacted.roll()
    with Path(compacted.segments[0].path).open("r+b") as file:
        file.seek(16)
        file.write(b"\1")
    with pytest.raises(CorruptLog, match="format 1"):
        clean_once(compacted, 0)


def test_the_throttle_pauses_reads_and_writes_to_keep_the_rate() -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    throttle = Throttle(1000, lambda: now[0], sleep)
    throttle.spend(500)
    throttle.spend(1500)
    now[0] += 100  # an hour of doing nothing buys one second
    throttle.spend(2500)
    assert slept == [pytest.approx(0.5), pytest.approx(1.5), pytest.approx(1.5)]


def test_passes_over_the_disk_are_counted_against_the_rate(compacted: Log) -> None:
    append(compacted, keyed(0, (b"a", b"1" * 100)), keyed(200, (b"a", b"2" * 100)))
    compacted.roll()
    limits = CleanerLimits(1 << 20, 512, io_bytes_per_second=1e12)
    stats = clean_once(compacted, 0, limits=limits)
    assert stats.bytes_read == stats.map_bytes_read > stats.bytes_written > 0


# Segments


def test_neighbours_are_merged_as_long_as_they_fit() -> None:
    sizes = [
        SegmentSizes(base, size, 8, 12) for base, size in ((0, 40), (10, 60), (20, 1), (30, 100), (40, 0))
    ]
    groups = group_segments(sizes, 100, 1000, 50)
    assert [[each.base_offset for each in group] for group in groups] == [[0, 10], [20], [30, 40]]


def test_neighbours_whose_offsets_are_too_far_apart_are_not_merged() -> None:
    sizes = [SegmentSizes(base, 1, 0, 0) for base in (0, 2**31 - 10, 2**31 + 5)]
    groups = group_segments(sizes, 100, 1000, 2**31 + 10)
    assert [len(group) for group in groups] == [1, 2]


def test_indexes_bound_a_group_too() -> None:
    sizes = [SegmentSizes(base, 1, 8, 12) for base in (0, 10, 20)]
    assert [len(group) for group in group_segments(sizes, 100, 24, 30)] == [2, 1]


# Bytes


def test_records_of_all_sizes_are_found() -> None:
    records = [
        Record(timestamp=NOW_MS + 2**40 * (n % 2), key=b"k" * n, value=None if n % 3 == 0 else b"v" * n * 50)
        for n in (0, 1, 63, 64, 200, 9000)
    ]
    batch = build_batch(records)
    keys, tombstones = keys_of(bytes(batch[61:]), len(records))
    assert keys == [record.key for record in records]
    assert tombstones == [index for index, record in enumerate(records) if record.value is None]
    starts = starts_of(bytes(batch[61:]), len(records))
    assert starts[0] == 0 and starts[-1] == len(batch) - 61 and len(starts) == len(records) + 1


def test_bytes_that_are_no_records_are_noticed() -> None:
    batch = build_batch([Record(key=b"k", value=b"v"), Record(key=b"k", value=b"v")])
    for look in (keys_of, starts_of):
        for count, data in ((3, batch[61:]), (1, batch[61:]), (2, batch[61:-1])):
            with pytest.raises(BadRecords):
                look(bytes(data), count)


@pytest.mark.parametrize("codec", Compression)
def test_a_batch_is_rebuilt_with_some_of_its_records(codec: Compression) -> None:
    records = [
        Record(timestamp=NOW_MS + n, key=b"%d" % n, value=b"v", headers=(("h", b"x"),)) for n in range(9)
    ]
    batch = build_batch(
        records, base_offset=100, compression=codec, producer_id=1, producer_epoch=0, base_sequence=0
    )
    data = bytes(build_batch(records)[61:])
    header = BatchHeader(batch)
    for horizon_ms in (None, NOW_MS + DAY_MS):
        new = rebuilt(header, data, [2, 5], horizon_ms)
        assert [(r.offset, r.timestamp, r.key, r.headers) for r in read_records(new)] == [
            (102, NOW_MS + 2, b"2", (("h", b"x"),)),
            (105, NOW_MS + 5, b"5", (("h", b"x"),)),
        ]
        found = BatchHeader(new)
        assert (found.base_offset, found.last_offset, found.last_sequence) == (100, 108, 8)
        assert (found.delete_horizon_ms, found.compression) == (horizon_ms, codec)


def test_a_job_says_the_same_on_the_other_side() -> None:
    producers = tuple((producer_id, -1, 0) for producer_id in range(RECORDS_A_STEP + 1))
    for some in ((), producers[:1], producers):
        job = CleaningJob("/data/t-0", ((0, 10), (5, 20)), 3, 5, NOW_MS, last_records=some)
        assert CleaningJob.decode(at_once(job.encode())) == job
