"""Offsets by time, and the record with the largest timestamp."""

import tempfile
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.records.batch import BatchHeader, seal
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch
from barnabas.storage import Log, LogSettings
from barnabas.storage.segments.index_cache import IndexCache

from .building import NOW_MS, append, batch_at, fill


def test_the_first_record_at_or_after_a_time_is_found(log: Log) -> None:
    fill(log, 50, records=3)

    assert log.offset_for_timestamp(NOW_MS + 100) == (NOW_MS + 100, 100, 0)
    assert log.offset_for_timestamp(0) == (NOW_MS, 0, 0)
    assert log.offset_for_timestamp(NOW_MS + 10_000) is None


def test_a_lookup_returns_the_leader_epoch_of_the_record(log: Log) -> None:
    fill(log, 10, epoch=1)
    fill(log, 10, epoch=6)

    found = log.offset_for_timestamp(NOW_MS + 15)
    assert found is not None
    assert found.leader_epoch == 6


def test_records_before_the_start_do_not_count(log: Log) -> None:
    fill(log, 50, records=3)
    log.advance_log_start(77)

    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS + 77, 77, 0)


def test_the_record_with_the_largest_timestamp_is_found_in_its_batch(log: Log) -> None:
    append(
        log,
        batch_at(0, timestamp=100),
        build_batch(
            [Record(timestamp=300), Record(timestamp=900), Record(timestamp=900)],
            base_offset=1,
            compression=Compression.GZIP,
            partition_leader_epoch=2,
        ),
        batch_at(4, timestamp=500, epoch=2),
    )

    assert log.max_timestamp_offset() == (900, 2, 2)


def test_a_batch_that_cannot_be_read_is_found_as_a_whole(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    poison = batch_at(2, count=3, timestamp=500)
    poison[61:] = b"?" * len(poison[61:])
    append(log, batch_at(0, count=2, timestamp=100), seal(poison), batch_at(5, timestamp=900))

    assert log.offset_for_timestamp(300) == (502, 2, 0)
    assert "the batch at offset 2" in caplog.text
    assert log.offset_for_timestamp(600) == (900, 5, 0)
    log.advance_log_start(4)
    assert log.offset_for_timestamp(300) == (502, 4, 0)


def test_an_empty_log_has_no_largest_timestamp(log: Log) -> None:
    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0) is None


def test_records_without_time_are_not_found(log: Log) -> None:
    append(log, batch_at(0, timestamp=-1))

    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(1) is None


TIMES = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), min_size=1, max_size=40)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=TIMES, target=st.integers(0, 62), reopened=st.booleans(), start=st.integers(0, 20))
def test_searching_by_time_agrees_with_a_scan(
    batches: list[list[int]], target: int, reopened: bool, start: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        setting = LogSettings(segment_bytes=700, index_interval_bytes=100)
        log = Log.create(f"{folder}/t-0", setting, now_ms=NOW_MS)
        times: list[int] = []
        for batch in batches:
            append(log, build_batch([Record(timestamp=t) for t in batch], base_offset=len(times)))
            times += batch
        if reopened:
            log.close()
            log = Log.open(f"{folder}/t-0", setting, recovery_point=len(times), clean=True, now_ms=NOW_MS)
        start = min(start, len(times))
        log.advance_log_start(start)

        found = log.offset_for_timestamp(target)
        expected = [
            (time, offset, -1) for offset, time in enumerate(times) if time >= target and offset >= start
        ]
        assert found == (expected[0] if expected else None)
        assert log.max_timestamp_offset() == (max(times), times.index(max(times)), -1)


def test_headers_are_enough_to_skip_batches(log: Log) -> None:
    """A batch whose largest timestamp is too small is not decompressed: damage in it goes unnoticed."""
    damaged = batch_at(0, timestamp=5)
    damaged[-1] ^= 0xFF
    damaged[70] ^= 0xFF
    append(log, damaged, batch_at(1, timestamp=50))

    assert BatchHeader(damaged).max_timestamp == 5
    assert log.offset_for_timestamp(10) == (50, 1, 0)


def test_the_largest_timestamps_of_closed_segments_are_kept_in_memory(
    log: Log, reopen: Callable[..., Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        append(log, batch_at(number, timestamp=NOW_MS + (number * 7) % 100))
    found = log.max_timestamp_offset()
    assert found is not None and found.timestamp == NOW_MS + 99
    assert len(log.segments) > 3
    largest = [segment.largest_timestamp() for segment in log.segments]
    log.close()
    log = reopen(clean=True, recovery_point=100)
    assert [segment.largest_timestamp() for segment in log.segments] == largest

    monkeypatch.setattr(IndexCache, "time_index", lambda *_: pytest.fail("it is in memory"))
    assert [segment.largest_timestamp() for segment in log.segments] == largest
