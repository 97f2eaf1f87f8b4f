"""Truncating a log, truncating it fully, and advancing its start."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.disk import Disk
from barnabas.storage import Log
from barnabas.storage.logs import replacement
from barnabas.storage.logs.truncation import begin
from barnabas.storage.segments.segment import SCAN_BYTES

from .building import NOW_MS, SMALL, append, append_marker, batch_at, files, fill, read_all


def test_truncation_drops_the_batch_that_holds_the_offset(log: Log) -> None:
    append(log, batch_at(0, 5), batch_at(5, 5), batch_at(10, 5))

    assert log.truncate_to(7)
    assert (log.end_offset, log.written_offset) == (7, 7)
    assert read_all_batches(log) == [batch_at(0, 5)]


def read_all_batches(log: Log) -> list[bytes]:
    found = log.read(log.log_start_offset, 1 << 20)
    return [found.read()]


def test_a_thread_frees_the_producers_of_a_truncated_log_and_reads_them_again(log: Log) -> None:
    append(log, *(batch_at(offset, producer_id=offset, sequence=0) for offset in range(4)))
    former = log.producers

    truncation = begin(log, 2)
    assert truncation is not None and len(former) == 4  # the event loop frees nothing
    truncation.run()
    assert len(former) == 0
    truncation.end()
    assert [state.producer_id for state in log.producers] == [0, 1]


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


def test_the_recovery_point_never_exceeds_the_end_offset(log: Log) -> None:
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


def test_index_files_never_point_to_removed_bytes(log: Log) -> None:
    fill(log, 100)
    log.truncate_to(log.segments[1].base_offset + 3)

    index = Path(log.active.path_of(".index")).read_bytes()
    entries = [int.from_bytes(index[i + 4 : i + 8]) for i in range(0, len(index), 8)]
    assert all(position < log.active.size for position in entries)


def test_a_full_truncation_leaves_one_empty_segment(log: Log) -> None:
    fill(log, 100)
    log.truncate_fully_and_start_at(1000)

    assert (log.log_start_offset, log.end_offset, log.size_bytes) == (1000, 1000, 0)
    assert len(log.epochs) == len(log.producers) == 0
    assert {name[:20] for name in files(log.directory) if name[0] == "0"} == {f"{1000:020d}"}


def test_a_full_truncation_to_the_same_offset_empties_the_segment(log: Log) -> None:
    fill(log, 3)
    log.truncate_fully_and_start_at(0)
    appended = fill(log, 2)

    assert read_all(log) == appended


def test_truncating_below_the_first_segment_is_a_full_truncation(
    log: Log, reopen: Callable[..., Log]
) -> None:
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


# -- in steps ----------------------------------------------------------------------------------------


def test_a_log_is_cut_at_once_and_its_files_follow(log: Log, directory: str, tmp_path: Path) -> None:
    appended = fill(log, 100)
    other = Log.create(str(tmp_path / "other-0"), SMALL, now_ms=NOW_MS)
    fill(other, 100)
    other.truncate_to(30)

    begun = log.begin_truncation(30)
    assert begun is not None
    assert (log.end_offset, log.written_offset) == (30, 30)
    assert log.truncation is begun
    in_thread(begun.run)
    begun.end()

    assert log.truncation is None
    assert files(directory) == files(other.directory)
    assert read_all(log) == appended[:30]
    assert read_all(log) + fill(log, 50, epoch=1) == read_all(log)


def test_a_log_that_is_being_cut_is_neither_read_nor_written(log: Log) -> None:
    for i in range(60):
        append(log, batch_at(i, producer_id=9, sequence=i))
    begun = log.begin_truncation(20)
    assert begun is not None

    for refused in (
        lambda: append(log, batch_at(20)),
        lambda: log.read(3, 1000),
        lambda: log.read_cold(3, 1000),
        lambda: log.producers,
        lambda: log.begin_truncation(10),
        lambda: log.begin_full_truncation(10),
    ):
        with pytest.raises(KafkaError) as caught:
            refused()
        assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not log.producers_loaded
    assert len(log.read(20, 1000)) == 0, "at its end there is nothing to refuse"

    begun.run()
    begun.end()
    assert log.producers.get(9).last_sequence == 19  # type: ignore[union-attr]


def test_segments_are_not_replaced_while_a_log_is_cut(log: Log) -> None:
    fill(log, 100)
    begun = log.begin_truncation(60)
    assert begun is not None

    assert not replacement.exchange(log, log.segments[:1], [])
    begun.finish()
    assert replacement.exchange(log, log.segments[:1], [])


def test_a_log_may_start_later_while_it_is_cut(log: Log) -> None:
    appended = fill(log, 60)
    begun = log.begin_truncation(40)
    assert begun is not None
    assert log.advance_log_start(38)
    begun.run()
    begun.end()

    assert (log.log_start_offset, log.end_offset) == (38, 40)
    assert read_all(log) == appended[38:40]


def test_callbacks_of_a_truncation_run_in_order_even_if_one_fails(log: Log) -> None:
    fill(log, 10)
    begun = log.begin_truncation(5)
    assert begun is not None
    heard = []

    def fails() -> None:
        raise RuntimeError("as a bug would")

    for call in (lambda: heard.append(1), fails, lambda: heard.append(2)):
        begun.when_done(call)
    begun.run()
    assert heard == []
    begun.end()

    assert heard == [1, 2]


def test_a_log_whose_files_cannot_be_cut_takes_no_more_appends(log: Log, monkeypatch: Any) -> None:
    fill(log, 100)
    begun = log.begin_truncation(30)
    assert begun is not None
    monkeypatch.setattr(log.context, "disk", FullDisk())
    begun.run()
    begun.end()

    with pytest.raises(KafkaError, match="No space left"):
        append(log, batch_at(30))


def test_a_full_truncation_forgets_all_producers(log: Log, reopen: Callable[..., Log]) -> None:
    """A snapshot of the last life lies below the new start: it tells of records that are gone."""
    for i in range(10):
        append(log, batch_at(i, producer_id=9, sequence=i))
    log.close()
    log = reopen(clean=True, recovery_point=10)
    log.truncate_fully_and_start_at(500)

    assert len(log.producers) == 0
    assert not [name for name in files(log.directory) if name.endswith(".snapshot")]


def test_warming_ends_when_the_file_was_cut(log: Log) -> None:
    """Bytes that a reader in a thread was about to read are gone."""
    fill(log, 100)
    path = Path(log.segments[0].path)

    class Cutting(Disk):
        """Another thread cuts the file when this one has found out what to read."""

        def pread(self, descriptor: int, length: int, position: int) -> bytes:
            if length > 1000 and length != SCAN_BYTES:
                os.truncate(path, 100)
            return os.pread(descriptor, length, position)

    log.context.disk = Cutting()
    log.warm(0, 10_000, 100)
    assert path.stat().st_size == 100


def test_a_reader_in_a_thread_looks_again_when_the_log_was_cut(log: Log) -> None:
    fill(log, 15)

    class Cutting(Disk):
        """The loop cuts the log when this thread looks for where the next batch begins."""

        def pread(self, descriptor: int, length: int, position: int) -> bytes:
            if length == 8 and log.truncations == 0:
                log.truncate_to(5)
            return os.pread(descriptor, length, position)

    log.context.disk = Cutting()
    assert log.read_cold(0, 1000).next_offset == 5


class FullDisk(Disk):
    def ftruncate(self, descriptor: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def unlink(self, path: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def in_thread(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def test_a_cut_that_lacks_descriptors_is_tried_again(log: Log) -> None:
    """Whatever of it was done before: every open of a file fails once."""
    for i in range(100):
        append(log, batch_at(i, producer_id=9, sequence=i))
    log.close()
    failures = 0
    lacking = Lacking()
    log.context.disk = log.context.files.disk = lacking
    begun = log.begin_truncation(35)
    assert begun is not None
    begun.run()
    while begun.can_retry:
        failures += 1
        lacking.opens_left = failures
        begun.run()
    begun.end()

    assert failures > 3
    assert log.producers.get(9).last_sequence == 34  # type: ignore[union-attr]
    lacking.opens_left = 1000
    append(log, batch_at(35, producer_id=9, sequence=35))
    assert len(read_all(log)) == 36


class Lacking(Disk):
    """Opens so many files and no more."""

    opens_left = 0

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if self.opens_left == 0:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self.opens_left -= 1
        return os.open(path, flags, mode)

    def can_open(self, count: int) -> bool:
        return True
