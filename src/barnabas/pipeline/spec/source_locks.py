"""Locks of sources: only one writer at a time changes the tables behind a source, across processes.

In: a pipeline, the name of a source. Out: a lock. A batch holds it from raw to the last zone, and so do
commands that rewrite the same tables: a replay between two zones of a batch would write its rows, and the
batch would write them again. The operating system releases the lock when its holder dies. A thread may
enter a lock that it holds. Does not know: tables.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder

FOLDER = "turns"


class SourceLock:
    """Shared by all threads of a process; a file lock keeps other processes out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.RLock()
        self._depth = 0
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._mutex.acquire()
        try:
            if not self._depth:
                self._descriptor = locked_file(self._path)
            self._depth += 1
        except BaseException:
            self._mutex.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            os.close(self._descriptor)
        self._mutex.release()


def locked_file(path: Path) -> int:
    """Open and lock the file; wait while another process holds the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_locks: dict[Path, SourceLock] = {}
_opening = threading.Lock()


def source_lock(pipeline: Pipeline, source: str) -> SourceLock:
    path = state_folder(pipeline) / FOLDER / f"{source}.lock"
    with _opening:
        return _locks.setdefault(path, SourceLock(path))
