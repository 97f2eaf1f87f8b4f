"""What is made durable, in which order, and when that is due."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.runtime.disk import Disk
from barnabas.storage import Log, LogContext

from .building import NOW_MS, SMALL, fill


class RecordingDisk(Disk):
    """Notes which files were synced, by the name they were opened with."""

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.names: dict[int, str] = {}

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        self.names[descriptor] = Path(path).name
        return descriptor

    def fsync(self, descriptor: int, /) -> None:
        self.synced.append(self.names[descriptor])
        os.fsync(descriptor)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


@pytest.fixture
def log(directory: str, disk: RecordingDisk) -> Log:
    return Log.create(directory, SMALL, now_ms=NOW_MS, context=LogContext(disk))


def test_a_sync_moves_the_recovery_point_to_the_end(log: Log) -> None:
    fill(log, 100)
    log.sync()

    assert log.recovery_point == 100


def test_a_sync_after_a_roll_covers_the_old_segments_only(log: Log, disk: RecordingDisk) -> None:
    fill(log, 30)
    disk.synced.clear()
    log.sync(log.active.base_offset)

    assert log.recovery_point == log.active.base_offset
    name = f"{log.segments[0].base_offset:020d}"
    assert {f"{name}.log", f"{name}.index", f"{name}.timeindex", "topic-0"} <= set(disk.synced)
    assert f"{log.active.base_offset:020d}.log" not in disk.synced


def test_durable_segments_are_not_synced_again(log: Log, disk: RecordingDisk) -> None:
    fill(log, 60)
    log.sync()
    disk.synced.clear()
    log.sync()
    assert disk.synced == []

    fill(log, 1)
    log.sync()
    assert disk.synced == [f"{log.active.base_offset:020d}.log"]


def test_closing_makes_the_end_durable(log: Log, disk: RecordingDisk) -> None:
    fill(log, 3)
    disk.synced.clear()
    log.close()

    assert {f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex", f"{3:020d}.snapshot"} <= set(
        disk.synced
    )


def test_closing_an_idle_log_writes_and_syncs_nothing(log: Log, disk: RecordingDisk) -> None:
    fill(log, 3)
    log.close()
    disk.synced.clear()
    again = Log.open(log.directory, SMALL, recovery_point=3, clean=True, now_ms=NOW_MS, context=log.context)
    again.close()

    assert disk.synced == []


def test_leader_epochs_are_durable_before_the_recovery_point_passes_them(
    log: Log, disk: RecordingDisk
) -> None:
    fill(log, 3)
    disk.synced.clear()
    log.sync()

    assert "leader-epoch-checkpoint" in disk.synced


def test_flush_messages_asks_for_a_sync(log: Log) -> None:
    log.configure(replace(SMALL, flush_messages=10))
    fill(log, 9)
    assert not log.is_sync_due(NOW_MS)

    fill(log, 1)
    assert log.is_sync_due(NOW_MS)
    log.sync(now_ms=NOW_MS)
    assert not log.is_sync_due(NOW_MS)


def test_flush_ms_asks_for_a_sync(log: Log) -> None:
    log.configure(replace(SMALL, flush_ms=100))
    assert not log.is_sync_due(NOW_MS + 1000)

    fill(log, 1)
    assert not log.is_sync_due(NOW_MS + 99)
    assert log.is_sync_due(NOW_MS + 100)


def test_indexes_of_a_segment_are_synced_even_if_its_batches_were_before(
    log: Log, disk: RecordingDisk
) -> None:
    fill(log, 10)
    log.sync()
    disk.synced.clear()
    log.roll()
    log.sync(log.active.base_offset)

    assert {f"{0:020d}.index", f"{0:020d}.timeindex"} <= set(disk.synced)
