"""Retention deletes old segments by age, by size and by log start offset, without disturbing readers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.disk import Disk
from barnabas.storage import Log, LogContext, LogSettings
from barnabas.storage.logs import retention

from .building import NOW_MS, SMALL, append, append_marker, batch_at, files, fill, read_all

DAY_MS = 24 * 3600 * 1000
KEPT = replace(SMALL, retention_ms=-1)


def segments_aged(log: Log, *days: float) -> None:
    """A segment of one batch for each age; the last one stays active."""
    for age in days:
        log.roll()
        append(log, batch_at(log.end_offset, 5, timestamp=NOW_MS - int(age * DAY_MS)))


def test_segments_older_than_a_week_go_and_younger_ones_stay(log: Log) -> None:
    segments_aged(log, 12, 10, 6, 5, 2)
    log.roll()
    expected = read_all(log)[2:]

    assert log.delete_old_segments(NOW_MS, log.end_offset) == 2

    assert log.log_start_offset == 10
    assert read_all(log) == expected


def test_a_young_segment_keeps_all_that_follow_it(log: Log) -> None:
    """Only the start of a log can go: a log has no holes."""
    segments_aged(log, 12, 2, 12, 12)

    assert log.delete_old_segments(NOW_MS, log.end_offset) == 1


def test_the_largest_timestamp_of_a_segment_counts(log: Log) -> None:
    log.configure(replace(SMALL, segment_ms=100 * DAY_MS))
    append(log, batch_at(0, timestamp=NOW_MS - 20 * DAY_MS), batch_at(1, timestamp=NOW_MS - 1 * DAY_MS))
    append(log, batch_at(2, timestamp=NOW_MS - 20 * DAY_MS))
    log.roll()

    assert log.delete_old_segments(NOW_MS, log.end_offset) == 0
    assert log.delete_old_segments(NOW_MS + 6 * DAY_MS, log.end_offset) == 0
    assert log.delete_old_segments(NOW_MS + 6 * DAY_MS + 1, log.end_offset) == 1


def test_a_timestamp_in_the_future_keeps_its_segment_until_it_is_past(log: Log) -> None:
    segments_aged(log, 12, -30)
    log.roll()

    assert log.delete_old_segments(NOW_MS + 30 * DAY_MS, log.end_offset) == 1
    assert log.delete_old_segments(NOW_MS + 37 * DAY_MS + 5, log.end_offset) == 1


def test_records_without_timestamps_are_as_old_as_their_file(log: Log, directory: str) -> None:
    append(log, batch_at(0, timestamp=-1))
    log.roll()
    written_ms = Disk().modified_ms(log.segments[0].path)

    assert log.delete_old_segments(written_ms + 7 * DAY_MS, log.end_offset) == 0
    assert log.delete_old_segments(written_ms + 7 * DAY_MS + 1, log.end_offset) == 1


def test_an_active_segment_that_is_over_is_rolled_and_goes_too(log: Log) -> None:
    segments_aged(log, 12, 10)
    fetched = log.read(5, 1000)

    assert log.delete_old_segments(NOW_MS, log.end_offset) == 2

    assert (log.log_start_offset, log.end_offset) == (10, 10)
    assert [segment.base_offset for segment in log.segments] == [10]
    assert len(fetched.read()) == len(fetched)
    assert fill(log, 3) == read_all(log)


def test_an_empty_log_stays_as_it_is(log: Log, directory: str) -> None:
    before = files(directory)

    assert log.delete_old_segments(NOW_MS + 1000 * DAY_MS, 0) == 0
    assert files(directory) == before


@pytest.mark.parametrize(
    ("whole", "more", "gone"), [(0, 0, 5), (0, 1, 4), (1, 0, 4), (1, 1, 3), (2, 0, 3), (4, 1, 0), (5, 1, 0)]
)
def test_the_size_that_is_kept_is_the_least_not_the_most(log: Log, whole: int, more: int, gone: int) -> None:
    segments_aged(log, *([1] * 5))
    [size] = {segment.size for segment in log.segments}
    log.configure(replace(KEPT, retention_bytes=whole * size + more))

    assert log.delete_old_segments(NOW_MS, log.end_offset) == gone


def test_nothing_above_the_offset_that_all_have_goes(log: Log) -> None:
    segments_aged(log, 12, 10, 9, 8)

    assert log.delete_old_segments(NOW_MS, 4) == 0
    assert log.delete_old_segments(NOW_MS, 12) == 2
    assert log.log_start_offset == 10
    assert log.delete_old_segments(NOW_MS, 19) == 1
    assert log.delete_old_segments(NOW_MS, 20) == 1


def test_a_compacted_log_loses_only_segments_before_its_start(log: Log) -> None:
    log.configure(replace(SMALL, delete=False, compact=True, retention_bytes=0))
    segments_aged(log, 12, 10, 9)
    log.advance_log_start(12)

    assert log.delete_old_segments(NOW_MS, log.end_offset) == 2
    assert (log.log_start_offset, log.segments[0].base_offset) == (12, 10)


def test_a_log_that_starts_within_a_segment_keeps_that_segment(log: Log) -> None:
    log.configure(KEPT)
    segments_aged(log, 1, 1, 1)
    log.advance_log_start(7)

    assert log.delete_old_segments(NOW_MS, log.end_offset) == 1
    assert (log.log_start_offset, log.segments[0].base_offset) == (7, 5)


def test_files_are_renamed_at_once_and_removed_after_the_delay(log: Log, directory: str) -> None:
    segments_aged(log, 12, 1)
    log.roll()
    fetched = log.read(0, 1000)
    log.delete_old_segments(NOW_MS, log.end_offset)

    old = sorted(name for name in files(directory) if name.endswith(".deleted"))
    assert old == [f"{0:020d}{kind}.deleted" for kind in (".index", ".log", ".timeindex")]
    due_ms = NOW_MS + SMALL.file_delete_delay_ms
    assert log.context.graveyard.remove_due(due_ms - 1) == due_ms
    assert [name for name in files(directory) if name.endswith(".deleted")] == old
    assert log.context.graveyard.remove_due(due_ms) is None
    assert not [name for name in files(directory) if name.startswith(f"{0:020d}")]
    assert fetched.read() == bytes(batch_at(0, 5, timestamp=NOW_MS - 12 * DAY_MS))


def test_no_descriptor_keeps_the_room_of_removed_files(log: Log) -> None:
    segments_aged(log, 12, 1)
    log.roll()
    read_all(log)
    gone = log.segments[0]
    assert gone.file is not None
    log.delete_old_segments(NOW_MS, log.end_offset)

    assert gone.file is None


def test_snapshots_and_aborted_transactions_leave_with_their_segment(log: Log, directory: str) -> None:
    log.configure(replace(SMALL, segment_ms=100 * DAY_MS))
    append(log, batch_at(0, producer_id=7, sequence=0, transactional=True, timestamp=NOW_MS - 9 * DAY_MS))
    append_marker(log, 7, aborted=True)
    log.roll()
    append(log, batch_at(2, producer_id=7, sequence=1, timestamp=NOW_MS - 9 * DAY_MS))
    log.roll()
    append(log, batch_at(3, producer_id=7, sequence=2))
    names = files(directory)
    assert f"{0:020d}.txnindex" in names and f"{2:020d}.snapshot" in names
    assert log.aborted_transactions(0, 3)

    assert log.delete_old_segments(NOW_MS + 8 * DAY_MS, 3) == 2
    log.context.graveyard.remove_due(NOW_MS + 100 * DAY_MS)

    assert sorted(name for name in files(directory) if name.endswith((".snapshot", ".txnindex"))) == [
        f"{3:020d}.snapshot"
    ]
    assert log.aborted_transactions(3, 4) == []
    state = log.producers.get(7)
    assert state is not None and state.last_sequence == 2


def test_leader_epochs_begin_where_the_log_does(log: Log, reopen: Callable[..., Log]) -> None:
    for epoch, age in ((1, 12), (2, 11), (4, 1)):
        log.roll()
        append(log, batch_at(log.end_offset, 5, epoch=epoch, timestamp=NOW_MS - age * DAY_MS))
    log.delete_old_segments(NOW_MS, log.end_offset)

    assert log.epochs.entries == [(4, 10)]
    assert reopen(log_start_offset=12).epochs.entries == [(4, 12)]
    log.close()
    assert reopen(clean=True, log_start_offset=12).epochs.entries == [(4, 12)]


def test_the_start_moves_with_the_files_over_a_restart(log: Log, reopen: Callable[..., Log]) -> None:
    segments_aged(log, 12, 10, 1)
    expected = read_all(log)[2:]
    log.delete_old_segments(NOW_MS, log.end_offset)

    again = reopen()
    assert again.log_start_offset == 10
    assert read_all(again) == expected


def test_a_log_all_of_which_was_deleted_goes_on_where_it_was(log: Log, reopen: Callable[..., Log]) -> None:
    segments_aged(log, 12, 10)
    log.delete_old_segments(NOW_MS, log.end_offset)
    log.sync()

    again = reopen()
    assert (again.log_start_offset, again.end_offset) == (10, 10)


def test_one_at_a_time_takes_segments_out(log: Log) -> None:
    assert log.claim()
    assert not log.claim()
    log.release()
    assert log.claim()


def test_a_read_that_has_begun_before_segments_went_finds_the_rest_or_says_so(directory: str) -> None:
    """A reader that looks at the list of segments, and comes to the file when it is gone for good."""

    class SlowDisk(Disk):
        before_open: Callable[[], None] | None = None

        def open(self, path: str, flags: int, mode: int = 0o777) -> int:
            then, self.before_open = self.before_open, None
            if then is not None:
                then()
            return super().open(path, flags, mode)

    disk = SlowDisk()
    log = Log.create(directory, SMALL, now_ms=NOW_MS, context=LogContext(disk))
    segments_aged(log, 12, 1)
    log.roll()
    for segment in log.segments:
        log.context.files.close(segment)
    gone: list[int] = []

    def remove() -> None:
        taken = retention.detach_oldest(log, 1)
        for segment in taken:
            for kind in (".log", ".index", ".timeindex"):
                Path(segment.path_of(kind)).unlink()
        gone.extend(segment.base_offset for segment in taken)

    disk.before_open = remove
    with pytest.raises(KafkaError) as refused:
        log.read_cold(0, 1000)

    assert gone == [0]
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_reader_in_a_deleted_segment_needs_the_disk(log: Log) -> None:
    append(log, *[batch_at(offset, timestamp=NOW_MS - 12 * DAY_MS) for offset in range(4)])
    log.roll()
    log.read_cold(0, 100)
    cursors = dict(log.cursors)
    assert cursors
    log.delete_old_segments(NOW_MS, log.end_offset)
    log.context.graveyard.remove_due(NOW_MS + 100 * DAY_MS)
    log.cursors.update(cursors)  # as a thread may leave them that began earlier

    assert not log.can_read_without_disk(next(iter(cursors)), 100)


def test_a_sync_that_meets_segments_on_their_way_out_goes_on(log: Log) -> None:
    segments_aged(log, 12, 10, 1)
    before = log.segments
    log.delete_old_segments(NOW_MS, log.end_offset)
    log.context.graveyard.remove_due(NOW_MS + 100 * DAY_MS)
    log.segments = before  # as a thread sees it that began earlier

    with pytest.raises(KafkaError):
        log.sync()
    log.segments = before[2:]
    log.sync()
    assert log.recovery_point == log.end_offset


def test_settings_of_a_topic_reach_its_log() -> None:
    from barnabas.settings import TopicSettings

    topic = TopicSettings(
        cleanup_policy=("compact", "delete"),
        retention_ms=5,
        retention_bytes=6,
        segment_ms=100,
        max_compaction_lag_ms=9,
    )
    log = LogSettings.of(topic)
    assert (log.retention_ms, log.retention_bytes, log.delete, log.compact, log.segment_ms) == (
        5,
        6,
        True,
        True,
        9,
    )
