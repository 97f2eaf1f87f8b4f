"""Connectors, task configurations and target states, as the records of the config topic say.

In: keys and values of records, in order. Out: the state, and for each record what it changed. `apply` never
fails: records that make no sense change nothing. Does not know: topics, workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from barnabas.connect.herder.states import Target

CONNECTOR, TASK, COMMIT = "connector-", "task-", "commit-"
TARGET, RESTART, FENCING = "target-state-", "restart-connector-", "tasks-fencing-"
SESSION_KEY, LOGGER = "session-key", "logger-cluster-"

Record = tuple[str, dict[str, Any] | None]  # key and value; None deletes


class Change(StrEnum):
    """The change that a record made."""

    CONFIG = "config"
    REMOVED = "removed"
    TASKS = "tasks"
    TARGET = "target"
    RESTART = "restart"
    FENCED = "fenced"
    SESSION_KEY = "session key"
    LOGGER = "logger"


class Changed(NamedTuple):
    change: Change
    name: str = ""
    value: Mapping[str, Any] = {}


@dataclass(slots=True)
class ConfigState:
    """Task configurations count from their commit on. A connector whose commit misses some is inconsistent:
    it has no tasks until it is configured again."""

    connectors: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    tasks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    inconsistent: set[str] = field(default_factory=set)
    fenced: dict[str, int] = field(default_factory=dict)  # tasks whose producers were fenced
    fencing_due: set[str] = field(default_factory=set)
    session_key: Mapping[str, Any] | None = None
    offset: int = -1  # of the last record that was applied
    _seen: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)

    def target(self, name: str) -> Target:
        return self.targets.get(name, Target.STARTED)

    def apply(self, key: str, value: Any) -> Changed | None:
        """Follow one record."""
        if value is not None and not isinstance(value, dict):
            return None
        if key == SESSION_KEY:
            self.session_key = value
            return Changed(Change.SESSION_KEY)
        if key.startswith(CONNECTOR):
            return self._connector(key.removeprefix(CONNECTOR), value)
        if key.startswith(TARGET):
            return self._target(key.removeprefix(TARGET), value)
        if key.startswith(RESTART):
            return Changed(Change.RESTART, key.removeprefix(RESTART), value) if value else None
        if key.startswith(FENCING):
            return self._fencing(key.removeprefix(FENCING), value)
        if key.startswith(LOGGER):
            return Changed(Change.LOGGER, key.removeprefix(LOGGER), value) if value else None
        if key.startswith(COMMIT):
            return self._commit(key.removeprefix(COMMIT), value)
        if key.startswith(TASK):
            self._task(key.removeprefix(TASK), value)
        return None

    def _connector(self, name: str, value: dict[str, Any] | None) -> Changed | None:
        if value is None:
            known = name in self.connectors
            # The count of fenced tasks stays: more tasks of before may live on under the same name.
            for held in (self.connectors, self.targets, self.tasks, self._seen):
                held.pop(name, None)
            self.inconsistent.discard(name)
            self.fencing_due.discard(name)
            return Changed(Change.REMOVED, name) if known else None
        properties = value.get("properties")
        if not isinstance(properties, dict):
            return None
        self.connectors[name] = texts(properties)
        self.targets.setdefault(name, Target.STARTED)
        return Changed(Change.CONFIG, name)

    def _target(self, name: str, value: dict[str, Any] | None) -> Changed | None:
        if value is None:
            self.targets.pop(name, None)
            return None
        try:
            found = Target(str(value.get("state.v2", value.get("state"))))
        except ValueError:
            return None
        changed = self.targets.get(name) != found
        self.targets[name] = found
        return Changed(Change.TARGET, name) if changed and name in self.connectors else None

    def _task(self, rest: str, value: dict[str, Any] | None) -> None:
        name, dash, number = rest.rpartition("-")
        properties = value.get("properties") if value else None
        if dash and number.isdigit() and isinstance(properties, dict):
            self._seen.setdefault(name, {})[int(number)] = texts(properties)

    def _commit(self, name: str, value: dict[str, Any] | None) -> Changed | None:
        count = value.get("tasks") if value else None
        if name not in self.connectors or not isinstance(count, int):
            return None
        seen = self._seen.pop(name, {})
        if set(range(count)) - seen.keys():
            self.inconsistent.add(name)
            self.tasks[name] = []
            return Changed(Change.TASKS, name)
        self.inconsistent.discard(name)
        self.tasks[name] = [seen[number] for number in range(count)]
        self.fencing_due.add(name)
        return Changed(Change.TASKS, name)

    def _fencing(self, name: str, value: dict[str, Any] | None) -> Changed | None:
        count = value.get("task-count") if value else None
        if not isinstance(count, int):
            return None
        self.fenced[name] = count
        self.fencing_due.discard(name)
        return Changed(Change.FENCED, name)


def texts(properties: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(text) for key, text in properties.items() if text is not None}


# -- records of commands ---------------------------------------------------------------------------


def config_records(name: str, config: Mapping[str, str], target: Target | None = None) -> list[Record]:
    """A connector made or changed. A target state stands before it, so that no task starts too early."""
    found: list[Record] = [target_record(name, target)] if target is not None else []
    return [*found, (CONNECTOR + name, {"properties": dict(config)})]


def removal_records(name: str) -> list[Record]:
    return [(CONNECTOR + name, None), (TARGET + name, None)]


def task_records(name: str, configs: Sequence[Mapping[str, str]]) -> list[Record]:
    tasks: list[Record] = [
        (f"{TASK}{name}-{number}", {"properties": dict(config)}) for number, config in enumerate(configs)
    ]
    return [*tasks, (COMMIT + name, {"tasks": len(configs)})]


def target_record(name: str, target: Target) -> Record:
    """STOPPED is written as PAUSED for workers that do not know it."""
    old = Target.PAUSED if target is Target.STOPPED else target
    return TARGET + name, {"state": str(old), "state.v2": str(target)}


def restart_record(name: str, include_tasks: bool, only_failed: bool) -> Record:
    return RESTART + name, {"include-tasks": include_tasks, "only-failed": only_failed}
