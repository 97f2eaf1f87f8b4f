"""Connectors that do nothing, or fail after a delay: what operators try their alarms with."""

from __future__ import annotations

import time
from threading import Timer
from typing import TYPE_CHECKING, ClassVar

from barnabas.connect.config import ConfigDef, at_least, one_of
from barnabas.connect.data import Records
from barnabas.connect.plugins import (
    ConnectError,
    Connector,
    ConnectorContext,
    SinkContext,
    SinkTask,
    SourceContext,
    SourceTask,
    TaskContext,
)

if TYPE_CHECKING:
    from barnabas.connect.config import Settings

TASK_FAILURE, CONNECTOR_FAILURE = "task-failure", "connector-failure"
CONFIG = (
    ConfigDef()
    .define(
        "mock_mode", "STRING", "nothing", "HIGH", "What fails: the tasks, the connector, or nothing.",
        validator=one_of("nothing", TASK_FAILURE, CONNECTOR_FAILURE),
    )
    .define("delay_ms", "LONG", 15_000, "MEDIUM", "When it fails.", validator=at_least(0))
)  # fmt: skip


class Fuse:
    """Raises an error once the delay is over, if tasks are to fail."""

    def __init__(self, context: TaskContext) -> None:
        self._fails = context.settings.text("mock_mode") == TASK_FAILURE
        self._at = time.monotonic() + context.settings.integer("delay_ms") / 1000

    def check(self) -> None:
        if self._fails and time.monotonic() >= self._at:
            raise ConnectError("the task fails because mock_mode=task-failure says so")


class MockSourceTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        self._fuse = Fuse(context)

    def poll(self) -> Records | None:
        self._fuse.check()
        self.context.stopping.wait(min(0.1, self.context.poll_seconds))
        return None


class MockSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._fuse = Fuse(context)

    def put(self, records: Records) -> None:
        self._fuse.check()


class MockConnector(Connector):
    """Fails by itself with mock_mode=connector-failure."""

    CONFIG: ClassVar[ConfigDef] = CONFIG
    _timer: Timer | None = None

    def start(self, settings: Settings, context: ConnectorContext) -> None:
        super().start(settings, context)
        if settings.text("mock_mode") == CONNECTOR_FAILURE:
            error = ConnectError("the connector fails because mock_mode=connector-failure says so")
            self._timer = Timer(settings.integer("delay_ms") / 1000, context.failed, (error,))
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class MockSourceConnector(MockConnector):
    KIND = "source"
    JAVA_NAMES = ("org.apache.kafka.connect.tools.MockSourceConnector",)
    task = MockSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.context.config) for _ in range(max_tasks)]


class MockSinkConnector(MockConnector):
    KIND = "sink"
    JAVA_NAMES = ("org.apache.kafka.connect.tools.MockSinkConnector",)
    task = MockSinkTask
