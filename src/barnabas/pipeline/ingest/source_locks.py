"""Turns: who writes to the tables behind a source writes alone, also beside other processes.

In: a pipeline, the name of a source. Out: a turn to hold. A batch holds it from raw to the last zone, and so
does what rewrites the same tables: a replay that came between two zones of a batch would write its rows, and
the batch would write them again. The system takes a turn from who dies. In one thread it may be taken twice.
Does not know: tables.
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


class Turn:
    """One for all who ask in this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mine = threading.RLock()
        self._depth = 0
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._mine.acquire()
        try:
            if not self._depth:
                self._descriptor = taken(self._path)
            self._depth += 1
        except BaseException:
            self._mine.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            os.close(self._descriptor)
        self._mine.release()


def taken(path: Path) -> int:
    """Waits until nobody else has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_turns: dict[Path, Turn] = {}
_asking = threading.Lock()


def turn(pipeline: Pipeline, source: str) -> Turn:
    path = state_folder(pipeline) / FOLDER / f"{source}.lock"
    with _asking:
        return _turns.setdefault(path, Turn(path))
