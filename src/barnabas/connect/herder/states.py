"""States of connectors and tasks, and the port through which a worker runs tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from barnabas.connect.config.secrets import Redaction


class State(StrEnum):
    """State of a connector or a task."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    DESTROYED = "DESTROYED"


class Target(StrEnum):
    """State that a connector should have."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class TaskId(NamedTuple):
    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"


@dataclass(slots=True)
class RunningTask:
    """A task that this worker started: the settings it got, and what it should do."""

    raw: dict[str, str]
    target: Target
    has_failed: bool = False
    is_begun: bool = False  # the runner has it


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a connector or a task, as the status topic holds it."""

    state: State
    worker_id: str
    generation: int = 0
    trace: str | None = None
    version: str | None = None

    def record(self) -> dict[str, Any]:
        """The value of its record, in Connect's form."""
        found: dict[str, Any] = {
            "state": str(self.state),
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
        }
        if self.state is not State.UNASSIGNED:
            found["version"] = self.version
        return found

    @classmethod
    def of_record(cls, value: Mapping[str, Any]) -> Status:
        return cls(
            State(value["state"]),
            str(value.get("worker_id", "")),
            int(value.get("generation", 0)),
            value.get("trace"),
            value.get("version"),
        )

    def shown(self) -> dict[str, Any]:
        """The entry of a status response: trace and version only where there are any."""
        found: dict[str, Any] = {"state": str(self.state), "worker_id": self.worker_id}
        if self.version is not None:
            found["version"] = self.version
        if self.trace is not None:
            found["trace"] = self.trace
        return found


OnStatus = Callable[[str, str | None], None]  # may be called from any thread; the text is a trace


class TaskRunner(Protocol):
    """Runs tasks of this worker. Calls may block: the herder makes them in threads."""

    def start(
        self,
        connector: str,
        task: int,
        config: Mapping[str, str],
        target_state: str,
        on_status: OnStatus,
        *,
        reconfigure: Callable[[], None],
        used_topic: Callable[[str], None],
        redaction: Redaction | None = None,
    ) -> None:
        """Begin with a task; `on_status` tells RUNNING, PAUSED and FAILED. `redaction` hides its secrets."""

    def stop(self, connector: str, task: int) -> object:
        """End a task, and return when it ended or its grace time is over."""

    def pause(self, connector: str, task: int) -> None: ...

    def resume(self, connector: str, task: int) -> None: ...
