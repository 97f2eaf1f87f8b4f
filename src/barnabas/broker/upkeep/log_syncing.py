"""Syncs of logs in threads: the loop plans a sync and notes its result.

In: a log, a pool of threads. Out: the new recovery point of the log, or KAFKA_STORAGE_ERROR.
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

LOGS_A_THREAD = 64  # whose folders one call to a thread syncs


async def sync_log(threads: Threads, log: Log, offset: int | None = None, now_ms: int | None = None) -> None:
    """Sync everything below `offset` (default: all that is written)."""
    work = log.begin_sync(offset, now_ms)
    try:
        await threads.run(work.run)
    finally:
        log.end_sync(work)


def sync_names(threads: Threads, logs: Iterable[Log]) -> WaitingSteps[None]:
    """Sync the folders of logs that need it. KafkaError: the first failure; the other folders are synced."""
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
    """Sync some folders with one call to a thread."""
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
