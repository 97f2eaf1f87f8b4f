"""Input from its thread for a task that is a Spark job, and the contract of what runs it.

The runner of tasks fills these in. Does not know: Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any, Protocol

from barnabas.connect.config import Settings
from barnabas.connect.plugins import Plugins
from barnabas.connect.tasks.offsets import OffsetMemory
from barnabas.connect.tasks.progress import Progress
from barnabas.connect.tasks.task_clients import TaskClient


@dataclass(frozen=True, slots=True)
class TaskParts:
    """One task: its configuration, its events, and ways to tell the worker something."""

    connector: str
    task: int
    config: Mapping[str, str]  # may hold secrets
    worker: Mapping[str, str]
    plugins: Plugins
    progress: Progress
    stopping: Event
    paused: Event
    cancelled: Event  # the worker no longer waits for the task: it must write and commit nothing more
    tell: Callable[[str], None]  # a state
    used_topic: Callable[[str], None]
    reconfigure: Callable[[], None]
    properties: Callable[[str, str], dict[str, str]]  # of clients, by kind and client id
    store: Callable[[], OffsetMemory]  # where offsets of a source are
    transactional_id: str | None  # of a source that is exactly once
    closers: list[Callable[[], None]]  # run when the task ends, the last one first
    clients: list[TaskClient]  # for metrics
    set_wake: Callable[[Callable[[], None]], None]  # ends what waits when the task must stop

    @property
    def name(self) -> str:
        return f"{self.connector}-{self.task}"


class Jobs(Protocol):
    """Runs tasks that are Spark jobs, in the thread of the task."""

    def run(self, task: Any, settings: Settings, parts: TaskParts) -> None: ...

    def close(self) -> None: ...
