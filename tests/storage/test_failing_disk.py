"""A disk that fails: an error code, and a log that is what it was before."""

import errno
import os
from collections.abc import Callable, Sequence

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.disk import Disk
from barnabas.storage import Log, LogContext

from .building import NOW_MS, SMALL, append, batch_at, fill, read_all, stage


class FailingDisk(Disk):
    """Writes only as many bytes to log files as it is told; syncs until told not to."""

    def __init__(self) -> None:
        self.room: int | None = None
        self.step: int | None = None  # bytes taken by one call at most
        self.may_truncate = True
        self.may_sync = True

    def pwritev(self, descriptor: int, buffers: Sequence[bytes], position: int, /) -> int:
        data = b"".join(buffers)
        if self.step is not None:
            data = data[: self.step]
        if self.room is not None:
            if self.room == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[: self.room]
            self.room -= len(data)
        return os.pwrite(descriptor, data, position)

    def ftruncate(self, descriptor: int, length: int, /) -> None:
        if not self.may_truncate:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.ftruncate(descriptor, length)

    def fsync(self, descriptor: int, /) -> None:
        if not self.may_sync:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(descriptor)


@pytest.fixture
def disk() -> FailingDisk:
    return FailingDisk()


@pytest.fixture
def log(directory: str, disk: FailingDisk) -> Log:
    return Log.create(directory, SMALL, now_ms=NOW_MS, context=LogContext(disk))


@pytest.mark.parametrize("room", [0, 1, 60, 82, 100, 200])
def test_a_full_disk_is_an_error_and_the_log_stays_as_it_was(
    log: Log, disk: FailingDisk, reopen: Callable[..., Log], room: int
) -> None:
    appended = fill(log, 3)
    disk.room = room
    for offset in (3, 4, 5):
        stage(log, batch_at(offset, producer_id=1, sequence=offset, epoch=2))

    with pytest.raises(KafkaError) as failed:
        log.write_staged()

    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "No space left" in failed.value.message
    assert (log.end_offset, log.written_offset) == (3, 3)
    assert log.epochs.entries == [(0, 0)]
    assert len(log.producers) == 0
    assert read_all(log) == appended
    assert read_all(reopen()) == appended


def test_appending_goes_on_when_there_is_room_again(log: Log, disk: FailingDisk) -> None:
    appended = fill(log, 3)
    disk.room = 10
    stage(log, batch_at(3))
    with pytest.raises(KafkaError):
        log.write_staged()
    disk.room = None
    appended += fill(log, 40)

    assert read_all(log) == appended


@pytest.mark.parametrize("step", [1, 7, 61, 90])
def test_a_write_that_is_taken_in_pieces_is_finished(log: Log, disk: FailingDisk, step: int) -> None:
    disk.step = step
    batches = [batch_at(i) for i in range(8)]
    append(log, *batches)

    assert read_all(log) == batches


def test_a_log_whose_file_cannot_be_repaired_takes_nothing_more(log: Log, disk: FailingDisk) -> None:
    fill(log, 3)
    disk.room, disk.may_truncate = 10, False
    stage(log, batch_at(3))
    with pytest.raises(KafkaError):
        log.write_staged()
    disk.room, disk.may_truncate = None, True

    with pytest.raises(KafkaError) as refused:
        stage(log, batch_at(3))
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failed_sync_does_not_move_the_recovery_point(log: Log, disk: FailingDisk) -> None:
    fill(log, 3)
    disk.may_sync = False

    with pytest.raises(KafkaError) as failed:
        log.sync()
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0


def test_write_staged_reports_a_failure_of_an_early_write(log: Log, disk: FailingDisk) -> None:
    """A full segment is written while more is being staged; if that fails, nobody is told of success."""
    appended = fill(log, 3)
    stage(log, batch_at(3))
    disk.room = 0
    with pytest.raises(KafkaError):
        for offset in range(4, 40):
            stage(log, batch_at(offset))
    with pytest.raises(KafkaError):
        stage(log, batch_at(3))
    with pytest.raises(KafkaError) as failed:
        log.write_staged()
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    disk.room = None
    log.write_staged()
    appended += fill(log, 2)
    assert read_all(log) == appended


def test_a_roll_that_fails_ends_appending(log: Log, disk: FailingDisk) -> None:
    appended = fill(log, 20)
    before = len(log.segments)
    stage(log, batch_at(20))
    log.context.disk.create = lambda *args, **options: raise_no_space()  # type: ignore[method-assign]
    with pytest.raises(KafkaError) as failed:
        for offset in range(21, 60):
            stage(log, batch_at(offset))
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        stage(log, batch_at(log.end_offset))

    assert len(log.segments) == before
    assert read_all(log)[:20] == appended
    assert log.written_offset == log.end_offset


def raise_no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
