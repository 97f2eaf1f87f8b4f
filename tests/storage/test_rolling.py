"""When a new segment begins, and what the old one leaves behind."""

from dataclasses import replace

import pytest

from barnabas.storage import Log, LogContext, LogSettings
from barnabas.storage.logs import producer_snapshots

from .building import NOW_MS, append, batch_at, files, fill, read_all


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_never_exceeds_its_size(log: Log) -> None:
    fill(log, 200)

    assert all(0 < segment.size <= 2000 for segment in log.segments[:-1])
    assert len(log.segments) > 5


def test_a_segment_that_is_exactly_full_is_not_rolled_early(directory: str) -> None:
    size = len(batch_at(0))
    log = Log.create(directory, LogSettings(segment_bytes=2 * size), now_ms=NOW_MS)
    fill(log, 3)

    assert bases(log) == [0, 2]


def test_age_counts_in_the_records_time(directory: str) -> None:
    log = Log.create(directory, LogSettings(segment_ms=1000), now_ms=NOW_MS)
    append(log, batch_at(0, timestamp=5_000), batch_at(1, timestamp=6_000))
    assert bases(log) == [0]

    append(log, batch_at(2, timestamp=6_001))
    assert bases(log) == [0, 2]


def test_age_counts_by_the_clock_when_records_have_no_time(directory: str) -> None:
    log = Log.create(directory, LogSettings(segment_ms=1000), now_ms=NOW_MS)
    append(log, batch_at(0, timestamp=-1))
    append(log, batch_at(1, timestamp=-1), now_ms=NOW_MS + 1000)
    assert bases(log) == [0]

    append(log, batch_at(2, timestamp=-1), now_ms=NOW_MS + 1001)
    assert bases(log) == [0, 2]


def test_age_survives_a_restart(directory: str) -> None:
    settings = LogSettings(segment_ms=1000)
    log = Log.create(directory, settings, now_ms=NOW_MS)
    append(log, batch_at(0, timestamp=5_000))
    log.close()
    log = Log.open(directory, settings, recovery_point=1, clean=True, now_ms=NOW_MS)
    append(log, batch_at(1, timestamp=6_001))

    assert bases(log) == [0, 1]


def test_jitter_makes_segments_younger(directory: str) -> None:
    settings = LogSettings(segment_ms=1000, segment_jitter_ms=1000)
    log = Log.create(directory, settings, now_ms=NOW_MS)
    for i in range(50):
        append(log, batch_at(i, timestamp=i * 500))

    lengths = {b - a for a, b in zip(bases(log), bases(log)[1:], strict=False)}
    assert lengths <= {1, 2, 3}
    assert len(lengths) > 1


def test_a_full_offset_index_ends_the_segment(directory: str) -> None:
    settings = LogSettings(index_interval_bytes=0, segment_index_bytes=10 * 8)
    log = Log.create(directory, settings, now_ms=NOW_MS)
    append(log, *(batch_at(i, timestamp=NOW_MS) for i in range(30)))
    log.close()

    found = files(directory)
    assert [len(found[name]) for name in found if name.endswith(".index")][:-1] == [80, 80]


def test_a_full_time_index_ends_the_segment_with_room_for_the_last_entry(directory: str) -> None:
    settings = LogSettings(index_interval_bytes=0, segment_index_bytes=10 * 12)
    log = Log.create(directory, settings, now_ms=NOW_MS)
    append(log, *(batch_at(i) for i in range(30)))
    log.close()

    found = files(directory)
    sizes = [len(found[name]) for name in found if name.endswith(".timeindex")]
    assert max(sizes) <= 120
    assert len(sizes) == 3


def test_offsets_that_do_not_fit_an_index_begin_a_segment(log: Log) -> None:
    far = 2**31
    batches = [batch_at(offset, timestamp=NOW_MS) for offset in (0, far - 1, far)]
    append(log, *batches)

    assert bases(log) == [0, far]
    assert read_all(log) == batches


def test_a_roll_takes_a_snapshot_and_says_so(directory: str) -> None:
    rolled = []
    context = LogContext(on_roll=lambda log, offset: rolled.append(offset))
    log = Log.create(directory, LogSettings(segment_bytes=500), now_ms=NOW_MS, context=context)
    fill(log, 20)

    assert rolled == bases(log)[1:]
    assert [name for name in files(directory) if name.endswith(".snapshot")] == [
        f"{offset:020d}.snapshot" for offset in rolled
    ]


def test_rolling_an_empty_segment_changes_nothing(log: Log) -> None:
    log.roll()
    assert bases(log) == [0]


def test_rolled_segments_have_complete_indexes(log: Log) -> None:
    fill(log, 100)
    found = files(log.directory)

    for segment in log.segments[:-1]:
        assert len(found[f"{segment.base_offset:020d}.index"]) > 0
        assert found[f"{segment.base_offset:020d}.index"] == segment.offset_index().data
        last_timestamp, _ = segment.time_index().last_entry()
        assert last_timestamp == max(header.max_timestamp for _, header in segment.headers())


def test_a_preallocated_segment_takes_its_room_at_once_and_gives_it_back(directory: str) -> None:
    settings = LogSettings(segment_bytes=5000, preallocate=True)
    log = Log.create(directory, settings, now_ms=NOW_MS)
    appended = fill(log, 10)
    assert len(files(directory)[f"{0:020d}.log"]) == 5000
    assert read_all(log) == appended

    log.roll()
    assert len(files(directory)[f"{0:020d}.log"]) == log.segments[0].size
    log.close()
    assert len(files(directory)[f"{10:020d}.log"]) == 0


def test_a_smaller_segment_size_takes_effect_at_once(log: Log) -> None:
    fill(log, 5)
    log.configure(replace(log.settings, segment_bytes=300))
    fill(log, 1)

    assert bases(log) == [0, 5]


def test_a_roll_does_not_read_appended_batches(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asked for the producers of a follower whose batches have none; the snapshot needs them."""
    monkeypatch.setattr(producer_snapshots, "load", lambda *_: pytest.fail("all batches would be read"))
    fill(log, 100)

    assert len(log.segments) > 3
    assert log.producers_loaded
