"""A log is copied to another dir batch by batch, and the copy takes its place; whatever stops it in
between."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.storage import Log, LogDirs, LogSettings, TopicPartition
from barnabas.storage.dirs import future_logs
from barnabas.storage.dirs.formatting import format_log_dir
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.copying import complete, copy_some, shared_end

from .building import NOW_MS, SMALL, append, append_marker, batch_at, fill, read_all

A0 = TopicPartition("a", 0)


def settings_of(topic: str) -> LogSettings:
    return SMALL


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    found = [str(tmp_path / "one"), str(tmp_path / "two")]
    for path in found:
        format_log_dir(LogContext(), path, "a-cluster", 1)
    return found


@pytest.fixture
def open_dirs(paths: list[str]) -> Iterator[Callable[[], LogDirs]]:
    opened: list[LogDirs] = []

    def open_again() -> LogDirs:
        for each in opened:
            each.abandon()
        opened.append(LogDirs.open(paths, node_id=1))
        opened[-1].load(settings_of, now_ms=NOW_MS)
        return opened[-1]

    yield open_again
    for each in opened:
        each.abandon()


@pytest.fixture
def dirs(open_dirs: Callable[[], LogDirs]) -> LogDirs:
    return open_dirs()


@pytest.fixture
def log(dirs: LogDirs) -> Log:
    return dirs.create(A0, SMALL, topic_id=b"a" * 16, now_ms=NOW_MS, directory_id=dirs.dirs[0].id)


def copy_all(log: Log, copy: Log, step: int = 500) -> None:
    while copy_some(log, copy, step, NOW_MS):
        pass


def test_a_copy_has_every_batch_with_epochs_producers_and_transactions(dirs: LogDirs, log: Log) -> None:
    for number in range(30):
        append(log, batch_at(number, epoch=number // 10, producer_id=5, sequence=number))
    append(log, batch_at(30, producer_id=6, sequence=0, transactional=True, epoch=2))
    append_marker(log, 6, aborted=True, epoch=2)
    log.assign_epoch(3, log.end_offset)
    copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    copy_all(log, copy)
    complete(log, copy)

    assert read_all(copy) == read_all(log)
    assert copy.epochs.entries == log.epochs.entries
    assert copy.aborted_transactions(0, 100) == log.aborted_transactions(0, 100) != []
    state = copy.producers.get(5)
    assert state is not None and state.last_sequence == 29


def test_a_copy_of_a_log_that_started_later_starts_there(dirs: LogDirs, log: Log) -> None:
    fill(log, 40)
    log.advance_log_start(25)
    copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    copy_all(log, copy)
    complete(log, copy)

    assert copy.log_start_offset == 25
    assert read_all(copy) == read_all(log)


def test_a_copy_that_retention_overtakes_begins_again_behind_it(dirs: LogDirs, log: Log) -> None:
    fill(log, 60)
    copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    copy_some(log, copy, 300, NOW_MS)
    log.delete_records_before(log.segments[2].base_offset, NOW_MS)()
    copy_all(log, copy)
    complete(log, copy)

    assert read_all(copy) == read_all(log)


def test_the_copy_takes_the_logs_place_and_readers_do_not_notice(
    dirs: LogDirs, log: Log, paths: list[str]
) -> None:
    appended = fill(log, 40)
    reader = log.read_cold(0, 1000)
    copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    copy_all(log, copy)
    complete(log, copy)
    promoted = future_logs.promote(dirs, A0, NOW_MS)

    assert dirs.logs[A0] is promoted is copy
    assert dirs.dir_of(promoted) is dirs.dirs[1]
    assert not dirs.future_logs and not dirs.dirs[0].logs
    assert promoted.directory == f"{paths[1]}/a-0"
    assert read_all(promoted) == appended
    assert len(reader.read()) == len(reader)
    dirs.context.graveyard.remove_due(NOW_MS + 10 * SMALL.file_delete_delay_ms)
    assert not list(Path(paths[0]).glob("a-0*"))
    assert fill(promoted, 2) == read_all(promoted)[-2:]


def test_a_copy_that_is_given_up_is_removed(dirs: LogDirs, log: Log, paths: list[str]) -> None:
    fill(log, 3)
    future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    future_logs.drop(dirs, A0, NOW_MS)

    assert not dirs.future_logs
    dirs.context.graveyard.remove_due(NOW_MS + 10 * SMALL.file_delete_delay_ms)
    assert not list(Path(paths[1]).glob("a-0*"))
    assert dirs.logs[A0] is log


def test_copying_goes_on_after_a_restart(dirs: LogDirs, log: Log, open_dirs: Callable[[], LogDirs]) -> None:
    appended = fill(log, 40)
    copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    copy_some(log, copy, 1000, NOW_MS)
    half = copy.end_offset
    dirs.close()

    again = open_dirs()
    assert again.future_logs[A0].end_offset == half
    copy_all(again.logs[A0], again.future_logs[A0])
    assert read_all(again.future_logs[A0]) == appended


@pytest.mark.parametrize("assigned", [True, False])
def test_a_copy_without_a_log_is_promoted_if_the_metadata_names_its_dir(
    dirs: LogDirs, log: Log, open_dirs: Callable[[], LogDirs], assigned: bool
) -> None:
    appended = fill(log, 10)
    copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    copy_all(log, copy)
    dirs.delete_later(log, NOW_MS)
    dirs.close()
    again = open_dirs()
    target = again.dirs[1].id if assigned else again.dirs[0].id
    future_logs.resolve_leftovers(again, lambda where: target, NOW_MS)

    assert not again.future_logs
    if assigned:
        assert read_all(again.logs[A0]) == appended
    else:
        assert A0 not in again.logs


def test_a_log_that_was_cut_and_has_grown_again_is_copied_as_it_is_now(dirs: LogDirs, log: Log) -> None:
    """Both are as long as before: only the leader epochs tell that they are not the same."""
    fill(log, 40)
    copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    copy_all(log, copy)
    assert shared_end(log, copy) == 40
    log.truncate_to(25)
    fill(log, 5, epoch=3)
    log.truncate_to(28)
    appended = [*read_all(log), *fill(log, 30, epoch=4)]

    assert shared_end(log, copy) == 25
    copy_some(log, copy, 500, NOW_MS, shared_end(log, copy))
    copy_all(log, copy)
    assert read_all(copy) == appended
    assert copy.epochs.entries == log.epochs.entries


def test_a_log_is_not_copied_while_it_is_cut(dirs: LogDirs, log: Log) -> None:
    fill(log, 40)
    copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
    begun = log.begin_truncation(20)
    assert begun is not None

    assert copy_some(log, copy, 500, NOW_MS) == 0
    begun.finish()
    assert copy_some(log, copy, 500, NOW_MS) > 0
