"""A log under everything at once, with real threads: its owner appends, rolls, truncates and lets segments
go, others sync, read, and look for what may be removed. The disk tells what was really made durable."""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BATCH_OVERHEAD, headers
from barnabas.runtime.disk import Disk
from barnabas.storage import Log, LogContext, LogSettings
from barnabas.storage.logs import retention
from barnabas.storage.logs.reading import floor, was_truncated
from barnabas.storage.logs.syncing import SyncWork

from .building import NOW_MS, append, batch_at

SETTINGS = LogSettings(
    segment_bytes=3000, index_interval_bytes=200, retention_bytes=20_000, file_delete_delay_ms=0
)
STEPS = 1500
SYNCS_AT_ONCE = 3
GONE = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER  # below the start; being truncated
SLOW_S = 0.003
SWITCH_S = 1e-5  # threads take turns far more often than usual


class WitnessDisk(Disk):
    """Knows how much of every file is durable, and which names of a folder are."""

    def __init__(self) -> None:
        self.durable_bytes: dict[int, int] = {}  # by inode
        self.durable_names: dict[str, set[str]] = {}
        self._cuts: dict[int, int] = {}
        self._lock = threading.Lock()

    def fsync(self, descriptor: int, /) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            names = {each.name for each in path.iterdir()}  # those that come while this runs are not covered
            os.fsync(descriptor)
            time.sleep(SLOW_S)  # as disks are: the owner goes on meanwhile
            self.durable_names[str(path)] = names
            return
        found = os.fstat(descriptor)
        cuts = self._cuts.get(found.st_ino, 0)
        os.fsync(descriptor)
        with self._lock:  # another thread may have synced more meanwhile, or the owner have cut it
            if cuts == self._cuts.get(found.st_ino, 0):
                self.durable_bytes[found.st_ino] = max(self.durable_bytes.get(found.st_ino, 0), found.st_size)

    def ftruncate(self, descriptor: int, length: int, /) -> None:
        os.ftruncate(descriptor, length)
        inode = os.fstat(descriptor).st_ino
        with self._lock:
            self._cuts[inode] = self._cuts.get(inode, 0) + 1
            self.durable_bytes[inode] = min(self.durable_bytes.get(inode, 0), length)


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    yield
    sys.setswitchinterval(before)


class Owner:
    """What a loop does: everything that changes the log, and what threads have to report."""

    def __init__(self, directory: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = WitnessDisk()
        self.rolled: list[int] = []
        context = LogContext(
            self.disk, open_files_max=3, on_roll=lambda log, offset: self.rolled.append(offset)
        )
        self.log = Log.create(directory, SETTINGS, now_ms=NOW_MS, context=context)
        self.pool = ThreadPoolExecutor(8)
        self.reports: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.syncs = 0

    # -- syncing -------------------------------------------------------------------------------------

    def sync(self, offset: int | None = None) -> None:
        work = self.log.begin_sync(offset)
        self.syncs += 1
        done = self.pool.submit(work.run)
        done.add_done_callback(lambda _: self.reports.put(lambda: self.synced(work, done)))

    def synced(self, work: SyncWork, done: Future[None]) -> None:
        self.syncs -= 1
        done.result()
        self.log.end_sync(work)
        self.check()

    def check(self) -> None:
        """What the log calls durable is."""
        log = self.log
        point = log.recovery_point
        assert point <= log.written_offset
        if log.truncation is not None:
            return  # files are longer than what the log says of them
        folder = self.disk.durable_names.get(str(Path(log.directory).resolve()), set())
        for index, segment in enumerate(log.segments):
            if segment.base_offset >= point or segment.suffix:
                break
            following = (
                log.segments[index + 1].base_offset if index + 1 < len(log.segments) else log.end_offset
            )
            needed = segment.size if following <= point else self.position_of(index, point)
            if needed:
                durable = self.disk.durable_bytes.get(Path(segment.path).stat().st_ino, 0)
                assert durable >= needed, f"{segment}: {durable} bytes are durable, {point} says {needed}"
            assert Path(segment.path).name in folder, f"the name of {segment} is not durable"

    def position_of(self, index: int, offset: int) -> int:
        found = self.log.segments[index].find(offset)
        return found[0] if found is not None else self.log.segments[index].size

    # -- changing ------------------------------------------------------------------------------------

    def append(self) -> None:
        offset = self.log.end_offset
        append(self.log, batch_at(offset, self.rng.randrange(1, 4)))

    def truncate(self) -> None:
        log = self.log
        batches = [header.base_offset for segment in log.segments[-3:] for _, header in segment.headers()]
        begun = log.begin_truncation(self.rng.choice([log.end_offset, *batches]))
        if begun is not None:
            assert log.recovery_point <= log.end_offset
            done = self.pool.submit(begun.run)
            done.add_done_callback(lambda _: self.reports.put(begun.end))

    def let_go(self) -> None:
        """Retention, as a broker does it: a thread looks, the owner takes out, a thread renames."""
        log = self.log
        if log.truncation is not None or not log.claim():
            return
        upper = log.end_offset

        def looked(done: Future[int]) -> None:
            if log.truncation is not None:
                log.release()
                return
            count = min(done.result(), retention.count_below(log, log.end_offset))
            gone = retention.detach_oldest(log, count)
            buried = self.pool.submit(retention.delete_detached, log, gone, NOW_MS)
            buried.add_done_callback(lambda _: self.reports.put(lambda: self.buried(buried)))

        counted = self.pool.submit(retention.count_expired, log, NOW_MS, upper)
        counted.add_done_callback(lambda _: self.reports.put(lambda: looked(counted)))

    def buried(self, done: Future[None]) -> None:
        done.result()
        self.log.release()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            chance = self.rng.random()
            if self.log.truncation is not None:
                time.sleep(0.0002)  # the log is nobody's: only syncs go on
            elif chance < 0.01:
                self.truncate()
            elif chance < 0.03:
                self.let_go()
            elif chance < 0.035:
                self.log.roll()
            elif chance < 0.05:
                work = self.log.begin_folder_sync()
                work.run()
                self.log.end_sync(work)
            else:
                self.append()
            for offset in self.rolled:
                if self.rng.random() < 0.3:  # the others are left to a later sync
                    self.sync(offset)
            self.rolled.clear()
            if self.syncs < SYNCS_AT_ONCE and self.rng.random() < 0.06:
                self.sync()
            self.listen()

    def listen(self) -> None:
        while not self.reports.empty():
            self.reports.get()()

    def finish(self) -> None:
        """Until every thread has reported."""
        while self.syncs or self.log.is_claimed or self.log.truncation is not None:
            self.reports.get(timeout=60)()


def reader(log: Log, done: threading.Event, seed: int) -> int:
    """Reads anywhere; whatever it gets are whole batches that follow each other."""
    rng, batches = random.Random(seed), 0
    while not done.is_set():
        low, high = log.log_start_offset, log.written_offset
        if low >= high:
            continue
        offset, truncations = rng.randrange(low, high), log.truncations
        try:
            data = log.read_cold(offset, rng.choice((300, 2000, 8000)), high).read()
        except KafkaError as error:
            assert error.code in GONE or was_truncated(log, truncations), error
            continue
        if was_truncated(log, truncations) or len(data) < BATCH_OVERHEAD:
            continue
        expected = None
        for position, header in headers(data):
            assert expected in (None, header.base_offset)
            if expected is None:
                assert header.base_offset <= offset < header.next_offset
            size = header.size
            records = header.next_offset - header.base_offset
            assert data[position : position + size] == batch_at(header.base_offset, records)
            expected = header.next_offset
            batches += 1
    return batches


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_concurrent_threads_never_see_a_wrong_log(directory: str, seed: int) -> None:
    owner = Owner(directory, seed)
    log, done = owner.log, threading.Event()
    readers = [owner.pool.submit(reader, log, done, seed * 10 + number) for number in range(2)]
    try:
        owner.run(STEPS)
        owner.finish()
    finally:
        done.set()
    assert sum(each.result(60) for each in readers) > 0
    owner.sync()
    owner.finish()
    owner.pool.shutdown()
    assert log.recovery_point == log.written_offset
    assert log.folder_syncs == 0
    assert not log.folder_dirty
    found = [
        (header.base_offset, header.next_offset)
        for segment in log.segments
        for _, header in segment.headers()
    ]

    again = Log.open(directory, SETTINGS, recovery_point=0, now_ms=NOW_MS, context=LogContext())

    assert again.end_offset == log.end_offset
    assert [
        (header.base_offset, header.next_offset)
        for segment in again.segments
        for _, header in segment.headers()
    ] == found
    assert floor(again.segments, again.end_offset) == len(again.segments) - 1
