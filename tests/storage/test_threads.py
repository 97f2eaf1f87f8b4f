"""Slow calls run in threads during appends: reads return whole batches, syncs cover what they report."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from barnabas.records.batch import BatchHeader
from barnabas.storage import Log, LogContext, LogSettings

from .building import NOW_MS, append, batch_at

BATCHES = 1500


def test_readers_and_syncs_beside_appends(directory: str) -> None:
    done = threading.Event()
    pool = ThreadPoolExecutor(6)
    synced: list[int] = []

    def sync(log: Log, offset: int) -> None:
        log.sync(offset)
        assert log.recovery_point >= offset
        synced.append(offset)

    context = LogContext(
        open_files_max=4, on_roll=lambda log, offset: pending.append(pool.submit(sync, log, offset))
    )
    log = Log.create(
        directory, LogSettings(segment_bytes=5000, index_interval_bytes=300), now_ms=NOW_MS, context=context
    )
    pending = [pool.submit(reader, log, done, step) for step in (200, 1000, 4000)]
    try:
        for number in range(BATCHES):
            append(log, batch_at(2 * number, 2))
    finally:
        done.set()
    counts = [future.result(60) for future in pending]
    pool.shutdown()

    assert counts[:3] == [BATCHES] * 3
    assert sorted(synced) == [segment.base_offset for segment in log.segments[1:]]


def reader(log: Log, done: threading.Event, max_bytes: int) -> int:
    """Follow the log to its end; how many batches it had."""
    offset = count = 0
    while not done.is_set() or offset < log.written_offset:
        data, position = log.read_cold(offset, max_bytes).read(), 0
        while position < len(data):
            header = BatchHeader(data, position)
            assert header.base_offset == offset
            assert data[position : position + header.size] == batch_at(offset, 2)
            offset, position, count = header.next_offset, position + header.size, count + 1
    return count


def test_a_truncation_is_not_undone_by_a_sync_that_was_under_way(
    log: Log, reopen: Callable[..., Log]
) -> None:
    for number in range(10):
        append(log, batch_at(number))
    real_sync = log.active.context.disk.fsync

    class SlowDisk(type(log.context.disk)):  # type: ignore[misc]
        def fsync(self, descriptor: int) -> None:
            real_sync(descriptor)
            if log.end_offset == 10:
                log.truncate_to(5)  # as another thread would, while this one waits for the disk

    log.context.disk = SlowDisk()
    log.sync()

    assert log.recovery_point <= 5
