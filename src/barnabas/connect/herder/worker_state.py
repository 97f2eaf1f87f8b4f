"""The state of a worker as its API shows it: configurations, statuses, offsets, topics that were used.

In: records that the worker applied. Out: bodies of responses, with secrets hidden. Does not know: how states
change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.connect.config.definition import ConfigDef
from barnabas.connect.config.providers import Providers
from barnabas.connect.config.secrets import Redaction, masked, restored
from barnabas.connect.herder.config_state import ConfigState
from barnabas.connect.herder.errors import Refused, not_found
from barnabas.connect.herder.offsets import Offsets
from barnabas.connect.herder.states import Status
from barnabas.connect.plugins import ConnectError, Known, Plugins

Place = tuple[str, int | None]  # a connector, or one of its tasks


class WorkerState:
    def __init__(self, worker: Mapping[str, str], worker_id: str, plugins: Plugins) -> None:
        self.worker = dict(worker)
        self.worker_id = worker_id
        self.plugins = plugins
        self.providers = Providers(worker)
        self.state = ConfigState()
        self.statuses: dict[Place, Status] = {}
        self.offsets = Offsets()
        self.topics: dict[str, dict[str, int]] = {}  # by connector: the topics it used, with a task

    def plugin(self, name: str) -> Known | None:
        """The plugin of a connector, if it is known."""
        try:
            given = {"class": self.state.connectors[name]["connector.class"]}
            return self.plugins.find(self.providers.resolve(given)["class"])
        except Exception:
            return None

    def kind(self, name: str) -> str:
        found = self.plugin(name)
        return "unknown" if found is None else str(found.kind)

    def version(self, name: str) -> str | None:
        found = self.plugin(name)
        return None if found is None else found.version

    def config(self, name: str) -> dict[str, str]:
        found = self.state.connectors.get(name)
        if found is None:
            raise not_found(name)
        return found

    def definition(self, name: str) -> ConfigDef | None:
        """The settings of a connector's class, if it is known."""
        found = self.plugin(name)
        try:
            return None if found is None else found.load().CONFIG
        except ConnectError:
            return None

    def shown_config(self, name: str, config: Mapping[str, str]) -> dict[str, str | None]:
        """The configuration of a connector, or of one of its tasks, for a response: secrets are hidden."""
        return masked(config, self.definition(name))

    def as_stored(self, config: Mapping[str, str | None]) -> dict[str, str | None]:
        """A configuration of a connector that is known, with its secrets where they are hidden."""
        name = config.get("name") or ""
        old = self.state.connectors.get(name, {})
        return restored(config, old, self.shown_config(name, old))

    def redaction(self, name: str, config: Mapping[str, str]) -> Redaction:
        """A configuration with the values of its references, and what hides them in texts."""
        return self.providers.redaction(config, self.definition(name))

    def info(self, name: str) -> dict[str, Any]:
        tasks = [{"connector": name, "task": each} for each in range(len(self.state.tasks.get(name, ())))]
        config = self.shown_config(name, self.config(name))
        return {"name": name, "config": config, "tasks": tasks, "type": self.kind(name)}

    def tasks(self, name: str) -> list[dict[str, Any]]:
        self.config(name)
        return [
            {"id": {"connector": name, "task": number}, "config": self.shown_config(name, config)}
            for number, config in enumerate(self.state.tasks.get(name, ()))
        ]

    def status(self, name: str) -> dict[str, Any]:
        found = self.statuses.get((name, None))
        if found is None:
            raise Refused(404, f"No status found for connector {name}")
        tasks = sorted(number for each, number in self.statuses if each == name and number is not None)
        return {
            "name": name,
            "connector": found.shown(),
            "tasks": [self.task_status(name, number) for number in tasks],
            "type": self.kind(name),
        }

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        found = self.statuses.get((name, task))
        if found is None:
            raise Refused(404, f"No status found for task {name}-{task}")
        return {"id": task, **found.shown()}
