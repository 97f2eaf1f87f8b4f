"""Open files and cached indexes are bounded, and closed when they are not used."""

import gc
import os
import resource
from pathlib import Path

import pytest

from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.storage import Log, LogContext
from barnabas.storage.files.open_files import OpenFile, OpenFiles
from barnabas.storage.segments.index_cache import IndexCache

from .building import fill


class Owner:
    def __init__(self, path: Path) -> None:
        path.touch()
        self._path = str(path)
        self.file: OpenFile | None = None
        self.file_used = False

    @property
    def path(self) -> str:
        return self._path


def test_a_file_that_was_not_used_lately_is_taken_away_first(tmp_path: Path) -> None:
    files = OpenFiles(REAL_DISK, limit=2)
    owners = [Owner(tmp_path / str(number)) for number in range(3)]
    files.open(owners[0])
    files.open(owners[1])
    owners[0].file_used, owners[1].file_used = True, False
    files.open(owners[2])

    assert [owner.file is not None for owner in owners] == [True, False, True]


class Counting(Disk):
    """Remembers what was closed: a descriptor's number may be somebody else's a moment later."""

    def __init__(self) -> None:
        self.closed: list[int] = []

    def close(self, descriptor: int) -> None:  # type: ignore[override]
        self.closed.append(descriptor)
        os.close(descriptor)


def test_a_file_in_use_outlives_its_eviction(tmp_path: Path) -> None:
    disk = Counting()
    files = OpenFiles(disk, limit=1)
    owners = [Owner(tmp_path / str(number)) for number in range(2)]
    held = files.open(owners[0])
    owners[0].file_used = False
    files.open(owners[1])
    assert owners[0].file is None
    assert os.fstat(held.descriptor).st_size == 0

    assert disk.closed == []
    descriptor = held.descriptor
    del held
    gc.collect()
    assert disk.closed == [descriptor]


def test_a_file_is_opened_once(tmp_path: Path) -> None:
    files = OpenFiles(REAL_DISK, limit=2)
    owner = Owner(tmp_path / "0")

    assert files.open(owner) is files.open(owner)


def test_a_missing_file_is_an_error_every_time(tmp_path: Path) -> None:
    files = OpenFiles(REAL_DISK, limit=2)
    owner = Owner(tmp_path / "0")
    (tmp_path / "0").unlink()

    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            files.open(owner)


def test_the_default_leaves_room_for_sockets() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert 32 <= OpenFiles(REAL_DISK).limit <= soft / 2


def test_cached_indexes_are_bounded(log: Log) -> None:
    log.context = LogContext()
    log.context.indexes = IndexCache(bytes_max=2000)
    fill(log, 300)
    for segment in log.segments:
        segment.context = log.context
    found = [segment.offset_index().position_before(segment.base_offset + 5) for segment in log.segments[:-1]]

    assert len(found) > 10
    assert all(position > 0 for position in found)
    assert len(log.context.indexes) <= 4


def test_readers_cannot_hold_all_files_open(tmp_path: Path) -> None:
    files = OpenFiles(REAL_DISK, limit=2)
    owners = [Owner(tmp_path / str(number)) for number in range(files.held_max + 2)]
    held = [files.open(owner) for owner in owners[: files.held_max]]

    with pytest.raises(OSError, match="readers hold too many"):
        files.open(owners[-1])
    assert files.open(owners[-2], is_writer=True)
    del held
    gc.collect()
    assert files.open(owners[-1])


def test_files_are_given_back_when_the_process_has_no_descriptor_left(tmp_path: Path) -> None:
    files = OpenFiles(REAL_DISK, limit=1000)
    owners = [Owner(tmp_path / str(number)) for number in range(50)]
    for owner in owners[:-1]:
        files.open(owner)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(owner.file.descriptor for owner in owners[:-1] if owner.file is not None)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
    fillers = []
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                fillers.append(os.open(os.devnull, os.O_RDONLY))
        assert files.open(owners[-1])
        assert REAL_DISK.can_open(4)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for each in fillers:
            os.close(each)
