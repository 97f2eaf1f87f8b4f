"""Workers of the cleaner: the process and the thread do the same work and raise the same errors."""

from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path

import pytest

from barnabas.broker.upkeep.cleaner_worker import (
    IDLE_MS_MAX,
    Abandoned,
    ProcessWorker,
    ThreadWorker,
    Uncleanable,
    Worker,
)
from barnabas.records.record import Record, build_batch
from barnabas.runtime.disk import REAL_DISK
from barnabas.runtime.pieces import Pieces
from barnabas.runtime.threads import Threads
from barnabas.storage.compaction.job import CleanedGroup, CleaningJob, CleaningStats

NOW_MS = 1_700_000_000_000
KINDS = ["process", "thread"]


def job(folder: Path) -> CleaningJob:
    """Two closed segments that do not fit into one, each with a key that comes again."""
    directory = folder / "topic-0"
    directory.mkdir()
    sizes = []
    for base in (0, 2):
        content = b"".join(
            build_batch([Record(timestamp=NOW_MS, key=b"key", value=b"v" * 400)], base_offset=base + n)
            for n in range(2)
        )
        (directory / f"{base:020d}.log").write_bytes(content)
        sizes.append((base, len(content)))
    (directory / f"{4:020d}.log").touch()
    for base in (0, 2, 4):
        for kind in ("index", "timeindex"):
            (directory / f"{base:020d}.{kind}").touch()
    return CleaningJob(str(directory), (*sizes, (4, 0)), 0, 4, NOW_MS, segment_bytes=1000)


async def with_worker(kind: str, work) -> object:  # type: ignore[no-untyped-def]
    threads = Threads(asyncio.get_running_loop(), 1)
    pieces = Pieces(time.monotonic)
    worker: Worker = ProcessWorker(pieces) if kind == "process" else ThreadWorker(threads, REAL_DISK)
    try:
        return await work(worker)
    finally:
        await worker.stop()
        threads.close()


@pytest.mark.parametrize("kind", KINDS)
def test_segments_come_one_after_the_other(kind: str, tmp_path: Path) -> None:
    wanted = job(tmp_path)
    placed: list[CleanedGroup] = []

    async def place(group: CleanedGroup) -> bool:
        assert (
            Path(f"{wanted.directory}/{group.base_offsets[0]:020d}.log.cleaned").stat().st_size == group.size
        )
        placed.append(group)
        return True

    async def work(worker: Worker) -> CleaningStats:
        return await worker.clean(wanted, place)

    stats = asyncio.run(with_worker(kind, work))
    assert isinstance(stats, CleaningStats)
    assert [group.base_offsets for group in placed] == [(0,), (2,)]
    assert (stats.end_offset, stats.records_read, stats.records_written) == (4, 4, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_segment_ends_the_pass_and_not_the_worker(kind: str, tmp_path: Path) -> None:
    wanted = job(tmp_path)

    async def refuse(group: CleanedGroup) -> bool:
        return False

    async def accept(group: CleanedGroup) -> bool:
        return True

    async def work(worker: Worker) -> CleaningStats:
        with pytest.raises(Abandoned):
            await worker.clean(wanted, refuse)
        return await worker.clean(wanted, accept)

    assert isinstance(asyncio.run(with_worker(kind, work)), CleaningStats)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_worker_abandons_its_pass(kind: str, tmp_path: Path) -> None:
    wanted = job(tmp_path)

    async def work(worker: Worker) -> None:
        async def stop(group: CleanedGroup) -> bool:
            await worker.stop()
            return True

        with pytest.raises(Abandoned):
            await worker.clean(wanted, stop)

    asyncio.run(with_worker(kind, work))


@pytest.mark.parametrize("kind", KINDS)
def test_damage_and_a_failing_disk_raise_different_errors(kind: str, tmp_path: Path) -> None:
    wanted = job(tmp_path)
    first = Path(f"{wanted.directory}/{0:020d}.log")

    async def place(group: CleanedGroup) -> bool:
        return True

    async def work(worker: Worker) -> None:
        sound = first.read_bytes()
        first.write_bytes(sound[:100] + b"damage" + sound[106:])
        with pytest.raises(Uncleanable, match="CorruptLog"):
            await worker.clean(wanted, place)
        first.unlink()
        with pytest.raises(OSError) as failed:
            await worker.clean(wanted, place)
        assert failed.value.errno == errno.ENOENT

    asyncio.run(with_worker(kind, work))


def test_an_idle_process_is_stopped(tmp_path: Path) -> None:
    wanted = job(tmp_path)

    async def place(group: CleanedGroup) -> bool:
        return True

    async def work(worker: ProcessWorker) -> None:
        assert worker.pid is None
        await worker.clean(wanted, place)
        first = worker.pid
        await worker.idle(0)
        await worker.idle(IDLE_MS_MAX - 1)
        assert worker.pid == first is not None
        await worker.idle(IDLE_MS_MAX)
        assert worker.pid is None

    asyncio.run(with_worker("process", work))
