"""Syncing a log beside the loop: planned and noted on the loop, waited for by a thread.

In: a log, a pool of threads. Out: the log's recovery point where it belongs, or KAFKA_STORAGE_ERROR.
Does not know: when a sync is due.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.protocol import KafkaError

if TYPE_CHECKING:
    from barnabas.runtime.threads import Threads
    from barnabas.storage.log import Log
    from barnabas.storage.syncing import SyncWork


async def sync_log(threads: Threads, log: Log, offset: int | None = None, now_ms: int | None = None) -> None:
    """Make everything below `offset` durable (default: all that is written)."""
    work = log.begin_sync(offset, now_ms)
    try:
        await threads.run(work.run)
    finally:
        log.end_sync(work)


async def sync_names(threads: Threads, logs: Iterable[Log]) -> None:
    """Make the folders of logs durable where they are not. KafkaError: the first that could not be."""
    works = [(log, log.begin_names_sync()) for log in logs if log.names_dirty]
    if not works:
        return
    try:
        await threads.run(run_all, [work for _, work in works])
    finally:
        errors = []
        for log, work in works:
            try:
                log.end_sync(work)
            except KafkaError as error:
                errors.append(error)
    if errors:
        raise errors[0]


def run_all(works: list[SyncWork]) -> None:
    for work in works:
        work.run()
