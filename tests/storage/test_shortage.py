"""No descriptors for a moment: a log refuses or waits, and is as good as before when there are some."""

from collections.abc import Callable

import pytest

from barnabas.runtime.shortage import Shortage
from barnabas.storage import Log, LogContext

from .building import NOW_MS, SMALL, append, batch_at, fill, read_all, stage
from .short_disk import ShortDisk


@pytest.fixture
def disk() -> ShortDisk:
    return ShortDisk()


@pytest.fixture
def failures() -> list[str]:
    return []


@pytest.fixture
def log(directory: str, disk: ShortDisk, failures: list[str]) -> Log:
    context = LogContext(disk, on_failure=lambda path, reason, number: failures.append(reason))
    return Log.create(directory, SMALL, now_ms=NOW_MS, context=context)


def test_a_segment_grows_while_it_cannot_be_rolled(
    log: Log, disk: ShortDisk, failures: list[str], reopen: Callable[..., Log]
) -> None:
    append(log, batch_at(0))
    disk.is_short = True
    fill(log, 100)
    assert len(log.segments) == 1
    assert log.active.size > SMALL.segment_bytes

    disk.is_short = False
    fill(log, 100)

    assert len(log.segments) > 1
    assert not failures
    records = read_all(log)
    assert len(records) == log.end_offset
    log.close()
    assert read_all(reopen(clean=True)) == records == read_all(reopen())


def test_a_roll_that_stops_half_way_leaves_the_log_as_it_was(
    log: Log, disk: ShortDisk, reopen: Callable[..., Log]
) -> None:
    fill(log, 10)
    calls: list[str] = []
    create = disk.create

    def fails_once(path: str, data: bytes = b"", *, sync: bool = False) -> None:
        calls.append(path)
        if len(calls) == 2:
            disk.is_short = True
        create(path, data, sync=sync)

    disk.create = fails_once  # type: ignore[method-assign]
    with pytest.raises(Shortage):
        log.roll()
    disk.is_short = False
    fill(log, 10)
    log.roll()

    assert len(calls) > 2
    log.close()
    assert len(read_all(reopen())) == log.end_offset


def test_an_append_without_a_descriptor_is_refused_and_the_next_is_taken(
    log: Log, disk: ShortDisk, failures: list[str]
) -> None:
    append(log, batch_at(0, producer_id=7, sequence=0))
    log.context.files.close(log.active)
    disk.is_short = True
    with pytest.raises(Shortage):
        append(log, batch_at(1, producer_id=7, sequence=1, epoch=1))
    assert log.end_offset == 1

    disk.is_short = False
    append(log, batch_at(1, producer_id=7, sequence=1, epoch=1))

    assert (log.end_offset, log.failure, failures) == (2, None, [])
    assert log.epochs.latest_epoch == 1
    assert len(read_all(log)) == 2


def test_a_new_epoch_needs_a_descriptor_before_anything_is_written(log: Log, disk: ShortDisk) -> None:
    append(log, batch_at(0))
    disk.is_short = True
    with pytest.raises(Shortage):
        append(log, batch_at(1, epoch=1))
    disk.is_short = False
    append(log, batch_at(1, epoch=1))

    assert log.failure is None
    assert [(entry.epoch, entry.start_offset) for entry in log.epochs.entries] == [(0, 0), (1, 1)]


def test_staged_batches_stay_when_a_write_is_postponed(log: Log, disk: ShortDisk) -> None:
    append(log, batch_at(0))
    log.context.files.close(log.active)
    view = batch_at(1)
    stage(log, view)
    disk.is_short = True
    with pytest.raises(Shortage):
        log.prepare_write()
    disk.is_short = False
    log.prepare_write()
    log.write_staged()

    assert len(read_all(log)) == 2


def test_a_sync_without_a_descriptor_is_made_later(log: Log, disk: ShortDisk, failures: list[str]) -> None:
    fill(log, 100)
    disk.is_short = True
    with pytest.raises(Shortage):
        log.sync()
    disk.is_short = False
    log.sync()

    assert (log.recovery_point, failures) == (log.end_offset, [])


def test_reading_without_a_descriptor_is_a_refusal(log: Log, disk: ShortDisk) -> None:
    fill(log, 100)
    for segment in log.segments:
        log.context.files.close(segment)
    disk.is_short = True
    for offset in (0, log.end_offset - 1):
        with pytest.raises(Shortage):
            log.read(offset, 1000)
    disk.is_short = False
    assert len(log.read(log.end_offset - 1, 1000))


def test_a_log_is_not_truncated_half_way(log: Log, disk: ShortDisk, failures: list[str]) -> None:
    fill(log, 100)
    disk.is_short = True
    for truncate in (lambda: log.truncate_to(5), lambda: log.truncate_fully_and_start_at(5)):
        with pytest.raises(Shortage):
            truncate()
    disk.is_short = False
    assert (log.end_offset, len(read_all(log)), log.failure, failures) == (100, 100, None, [])
    log.truncate_to(5)
    assert log.end_offset == 5
