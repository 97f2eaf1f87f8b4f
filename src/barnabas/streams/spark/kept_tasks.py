"""Tasks of processors that outlive their batches in this process.

In: a task whose batch is committed, with the version of its state then. Out: the same task for the next
batch, if the state still stands there: else another worker has gone on, and the task is closed. Does not
know: what tasks compute.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from barnabas.plans.interpreter.task import Task
from barnabas.streams.spark.state_files import StateFile

TASKS_MAX = 256
log = logging.getLogger("barnabas.streams")


@dataclass(frozen=True, slots=True)
class KeptTask:
    """`owner` made the task: another plan's tasks are others."""

    task: Task
    state: StateFile
    version: str
    owner: object


_kept: dict[Path, KeptTask] = {}


def pop(state: StateFile, owner: object) -> Task | None:
    """Remove and return the task that left the state as it is now."""
    found = _kept.pop(state.path, None)
    if found is None:
        return None
    if found.state is state and found.version == state.version and found.owner is owner:
        return found.task
    close(found.task)
    return None


def keep(task: Task, state: StateFile, owner: object) -> None:
    """The batch is committed: the state stands where the task left it."""
    if len(_kept) >= TASKS_MAX:
        close(_kept.pop(next(iter(_kept))).task)
    _kept[state.path] = KeptTask(task, state, state.version, owner)


def close(task: Task) -> None:
    """Close processors of a task that is not needed any more; what they raise changes nothing."""
    try:
        task.close()
    except Exception as error:
        log.warning("a processor could not be closed: %s: %s", type(error).__name__, error)


def has(path: Path) -> bool:
    return path in _kept


def clear() -> None:
    """Forget all tasks, as in a worker that begins."""
    _kept.clear()


def take_all() -> dict[Path, KeptTask]:
    found = dict(_kept)
    _kept.clear()
    return found


def put_all(kept: dict[Path, KeptTask]) -> None:
    _kept.update(kept)
