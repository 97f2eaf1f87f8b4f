"""Syncing a log beside the loop: planned and noted on the loop, waited for by a thread.

In: a log, a pool of threads. Out: the log's recovery point where it belongs, or KAFKA_STORAGE_ERROR.
Does not know: when a sync is due.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.protocol import KafkaError
from barnabas.runtime.pieces import WaitingSteps

if TYPE_CHECKING:
    from barnabas.runtime.threads import Threads
    from barnabas.storage.logs.log import Log
    from barnabas.storage.logs.syncing import SyncWork

LOGS_A_THREAD = 64  # whose folders are made durable by one call to a thread


async def sync_log(threads: Threads, log: Log, offset: int | None = None, now_ms: int | None = None) -> None:
    """Make everything below `offset` durable (default: all that is written)."""
    work = log.begin_sync(offset, now_ms)
    try:
        await threads.run(work.run)
    finally:
        log.end_sync(work)


def sync_names(threads: Threads, logs: Iterable[Log]) -> WaitingSteps[None]:
    """Make the folders of logs durable where they are not. KafkaError: the first that could not be; the
    others are durable all the same."""
    errors: list[KafkaError] = []
    dirty: list[Log] = []
    for log in logs:
        if log.folder_dirty:
            dirty.append(log)
            if len(dirty) >= LOGS_A_THREAD:
                yield from sync_some(threads, dirty, errors)
                dirty = []
        yield None
    yield from sync_some(threads, dirty, errors)
    if errors:
        raise errors[0]


def sync_some(threads: Threads, logs: list[Log], errors: list[KafkaError]) -> WaitingSteps[None]:
    """A part of them, by one call to a thread."""
    works = [(log, log.begin_folder_sync()) for log in logs]
    if not works:
        return
    try:
        synced = threads.run(run_all, [work for _, work in works])
        yield synced
        synced.result()
    finally:
        for log, work in works:
            try:
                log.end_sync(work)
            except KafkaError as error:
                errors.append(error)


def run_all(works: list[SyncWork]) -> None:
    for work in works:
        work.run()
