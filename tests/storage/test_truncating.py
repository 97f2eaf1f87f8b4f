"""Cutting a log short, starting it anew, moving its start."""

from collections.abc import Callable
from pathlib import Path

from barnabas.storage import Log

from .building import append, append_marker, batch_at, files, fill, read_all


def test_truncation_drops_the_batch_that_holds_the_offset(log: Log) -> None:
    append(log, batch_at(0, 5), batch_at(5, 5), batch_at(10, 5))

    assert log.truncate_to(7)
    assert (log.end_offset, log.written_offset) == (7, 7)
    assert read_all_batches(log) == [batch_at(0, 5)]


def read_all_batches(log: Log) -> list[bytes]:
    found = log.read(log.log_start_offset, 1 << 20)
    return [found.read()]


def test_truncation_drops_whole_segments_with_their_files(log: Log) -> None:
    appended = fill(log, 100)
    target = log.segments[2].base_offset

    assert log.truncate_to(target)
    assert [segment.base_offset for segment in log.segments] == [
        0,
        *(s.base_offset for s in log.segments[1:2]),
        target,
    ]
    assert log.active.size == 0
    assert read_all(log) == appended[:target]
    assert not [name for name in files(log.directory) if name.startswith(f"{target + 1:020d}"[:20])]


def test_appending_goes_on_where_the_log_was_cut(log: Log) -> None:
    appended = fill(log, 100)
    log.truncate_to(30)
    appended = appended[:30] + fill(log, 50, epoch=1)

    assert read_all(log) == appended
    assert log.epochs.entries == [(0, 0), (1, 30)]


def test_truncating_at_the_end_drops_nothing(log: Log) -> None:
    appended = fill(log, 10)

    assert not log.truncate_to(10)
    assert read_all(log) == appended


def test_an_epoch_that_never_wrote_is_forgotten(log: Log) -> None:
    fill(log, 10)
    log.assign_epoch(5, 10)

    assert not log.truncate_to(10)
    assert log.epochs.entries == [(0, 0)]


def test_the_recovery_point_never_lies_behind_the_end(log: Log) -> None:
    fill(log, 10)
    log.sync()
    log.truncate_to(4)

    assert log.recovery_point == 4


def test_leader_epochs_and_producers_follow_a_truncation(log: Log) -> None:
    for i in range(60):
        append(log, batch_at(i, producer_id=9, sequence=i, epoch=i // 20))
    log.truncate_to(25)

    state = log.producers.get(9)
    assert state is not None
    assert state.last_sequence == 24
    assert log.epochs.entries == [(0, 0), (1, 20)]


def test_aborted_transactions_follow_a_truncation(log: Log) -> None:
    for _ in range(3):
        offset = log.end_offset
        append(log, batch_at(offset, producer_id=9, sequence=offset, transactional=True))
        append_marker(log, 9, aborted=True)
    log.truncate_to(4)

    assert [found.first_offset for found in log.aborted_transactions(0, 100)] == [0, 2]


def test_index_files_never_name_bytes_that_are_gone(log: Log) -> None:
    fill(log, 100)
    log.truncate_to(log.segments[1].base_offset + 3)

    index = Path(log.active.path_of(".index")).read_bytes()
    entries = [int.from_bytes(index[i + 4 : i + 8]) for i in range(0, len(index), 8)]
    assert all(position < log.active.size for position in entries)


def test_starting_anew_leaves_one_empty_segment(log: Log) -> None:
    fill(log, 100)
    log.truncate_fully_and_start_at(1000)

    assert (log.log_start_offset, log.end_offset, log.size_bytes) == (1000, 1000, 0)
    assert len(log.epochs) == len(log.producers) == 0
    assert {name[:20] for name in files(log.directory) if name[0] == "0"} == {f"{1000:020d}"}


def test_starting_anew_at_the_same_offset_empties_the_segment(log: Log) -> None:
    fill(log, 3)
    log.truncate_fully_and_start_at(0)
    appended = fill(log, 2)

    assert read_all(log) == appended


def test_truncating_below_the_first_segment_starts_anew(log: Log, reopen: Callable[..., Log]) -> None:
    log.truncate_fully_and_start_at(100)
    append(log, batch_at(100))

    assert log.truncate_to(50)
    assert (log.log_start_offset, log.end_offset) == (50, 50)


def test_the_start_only_moves_forward(log: Log) -> None:
    fill(log, 10)

    assert log.advance_log_start(4)
    assert not log.advance_log_start(2)
    assert log.log_start_offset == 4


def test_leader_epochs_before_the_start_are_forgotten(log: Log) -> None:
    append(log, batch_at(0, epoch=1), batch_at(1, epoch=2), batch_at(2, epoch=3))
    log.advance_log_start(2)

    assert log.epochs.entries == [(3, 2)]
