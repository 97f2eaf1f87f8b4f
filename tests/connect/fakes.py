"""A connector, its plugins and a runner of tasks that do nothing but tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from barnabas.connect.config import ConfigDef
from barnabas.connect.config.secrets import Redaction
from barnabas.connect.herder.states import OnStatus, State
from barnabas.connect.plugins import Connector, Kind, Known, Plugins, SourceTask


class QuietTask(SourceTask):
    pass


class QuietConnector(Connector):
    VERSION = "1.0"
    CONFIG: ClassVar[ConfigDef] = (
        ConfigDef().define("topic", "string", importance="high").define("pass", "password", None)
    )
    task = QuietTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.context.config, "number": str(each)} for each in range(max_tasks)]


class QuietPlugins(Plugins):
    def __init__(self) -> None:
        known = Known(Kind.SOURCE, f"{__name__}:QuietConnector", ("org.example.QuietConnector",), "1.0")
        self._folders = []
        self._known = [known]
        self._by_spelling = {each: [known] for each in known.spellings()}


class Recorder:
    """A TaskRunner: remembers what runs, and tells states at once."""

    def __init__(self) -> None:
        self.running: dict[tuple[str, int], dict[str, str]] = {}
        self.tell: dict[tuple[str, int], OnStatus] = {}
        self.starts = 0

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
        used_topic(config["topic"])
        self.starts += 1
        self.running[connector, task] = dict(config)
        self.tell[connector, task] = on_status
        on_status(State.PAUSED if target_state == "PAUSED" else State.RUNNING, None)

    def stop(self, connector: str, task: int) -> None:
        del self.running[connector, task]

    def pause(self, connector: str, task: int) -> None:
        self.tell[connector, task](State.PAUSED, None)

    def resume(self, connector: str, task: int) -> None:
        self.tell[connector, task](State.RUNNING, None)
