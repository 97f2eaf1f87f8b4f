"""Syncs of the folders of many new logs: in parts, and a failure does not affect the others."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.upkeep.log_syncing import LOGS_A_THREAD, sync_names
from barnabas.protocol import KafkaError
from barnabas.runtime.clock import SystemClock
from barnabas.runtime.disk import Disk
from barnabas.runtime.pieces import Pieces
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings


class InlineThreads:
    """Runs work at once, and records how much each call had."""

    def __init__(self) -> None:
        self.portions: list[int] = []

    def run(self, work: Callable[..., Any], works: list[Any]) -> asyncio.Future[Any]:
        self.portions.append(len(works))
        future = asyncio.get_running_loop().create_future()
        future.set_result(work(works))
        return future


class FailingDisk(Disk):
    def __init__(self, fails_at: str) -> None:
        self.fails_at = fails_at

    def sync_file(self, path: str) -> None:
        if self.fails_at in path:
            raise OSError(errno.EIO, "planted", path)

    sync_directory = sync_file


def new_logs(folder: Path, count: int, context: LogContext) -> list[Log]:
    return [
        Log.create(f"{folder}/many-{number}", LogSettings(), now_ms=0, context=context)
        for number in range(count)
    ]


def sync_all(logs: list[Log]) -> list[int]:
    threads: Any = InlineThreads()

    async def run() -> None:
        await Pieces(SystemClock().work_s).run(sync_names(threads, logs))

    asyncio.run(run())
    return list(threads.portions)


def test_one_call_to_a_thread_syncs_many_logs(tmp_path: Path) -> None:
    logs = new_logs(tmp_path, 2 * LOGS_A_THREAD + 1, LogContext(FailingDisk("nothing")))
    assert all(log.folder_dirty for log in logs)
    assert sync_all(logs) == [LOGS_A_THREAD, LOGS_A_THREAD, 1]
    assert not any(log.folder_dirty for log in logs)
    assert sync_all(logs) == []


def test_a_failed_sync_of_a_folder_is_raised_after_the_others(tmp_path: Path) -> None:
    logs = new_logs(tmp_path, LOGS_A_THREAD + 2, LogContext(FailingDisk("/many-1/")))
    with pytest.raises(KafkaError, match="many-1"):
        sync_all(logs)
    assert [log.topic_partition.partition for log in logs if log.folder_dirty] == [1]
