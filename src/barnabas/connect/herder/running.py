"""Connectors that run in this worker: their objects, called in threads, and their task configurations."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.connect.config.connector_settings import common_settings
from barnabas.connect.config.settings import Settings
from barnabas.connect.herder.errands import in_own_thread
from barnabas.connect.herder.offsets import Offsets
from barnabas.connect.plugins import Connector, ConnectorContext
from barnabas.connect.plugins.errors import ConnectError

log = logging.getLogger("barnabas.connect")

TASKS_MAX = 10_000

T = TypeVar("T")


@dataclass(slots=True)
class Startups:
    """How starts of connectors ended."""

    attempts: int = 0
    failures: int = 0

    async def counted(self, start: Awaitable[None]) -> None:
        self.attempts += 1
        try:
            await start
        except BaseException:
            self.failures += 1
            raise


@dataclass(frozen=True, slots=True)
class StoredOffsets:
    """The offsets of one source."""

    connector: str
    offsets: Offsets

    def read(self, partitions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offsets.read(self.connector, each) for each in partitions]


class RunningConnector:
    """A started connector. `raw` is the configuration as it is stored, with references. Its calls never
    overlap, however long one takes."""

    def __init__(self, name: str, raw: Mapping[str, str]) -> None:
        self.name = name
        self.raw = dict(raw)
        self.config: dict[str, str] = {}
        self.failure = ""  # the trace, once it failed
        self._calls = threading.Lock()
        self._is_left_behind = False
        self._connector: Connector
        self._context: ConnectorContext | None = None

    async def start(
        self,
        found: type[Connector],
        config: Mapping[str, str],
        offsets: Offsets,
        reconfigure: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.config = dict(config)
        self._connector = found()
        settings = self._connector.CONFIG.parse(self.config)
        context = self._context = ConnectorContext(self.name, self.config, reconfigure, failed)
        context.offsets = StoredOffsets(self.name, offsets)
        await in_own_thread(self._called, self._connector.start, settings, context)

    def _called(self, call: Callable[..., T], *arguments: object) -> T:
        with self._calls:
            try:
                return call(*arguments)
            finally:
                if self._is_left_behind:
                    self._connector.stop()

    async def task_configs(self) -> list[dict[str, str]]:
        """The configurations of its tasks, as they are stored: references instead of values."""
        common = common_settings().parse(
            {
                name: self.config[name]
                for name in ("name", "connector.class", "tasks.max")
                if name in self.config
            }
        )
        found = await in_own_thread(self._called, self._connector.task_configs, int(common["tasks.max"]))
        self._check_count(len(found), int(common["tasks.max"]))
        return [self._stored(config) for config in found]

    def _check_count(self, count: int, allowed: int) -> None:
        enforced = self.config.get("tasks.max.enforce", "true").strip().lower() != "false"
        if count > TASKS_MAX or (enforced and count > allowed):
            raise ConnectError(
                f"The connector {self.name} has generated {count} tasks, which is greater than {allowed}, "
                "the maximum number of tasks it is configured to create: raise tasks.max"
            )

    def _stored(self, config: Mapping[str, str]) -> dict[str, str]:
        task = self._connector.task_class(Settings({}, dict(self.config)))
        found = {
            name: self.raw[name] if self.config.get(name) == value and name in self.raw else value
            for name, value in config.items()
        }
        found["task.class"] = task_class_name(self._connector, f"{task.__module__}.{task.__qualname__}")
        for name in ("topics", "topics.regex") if self._connector.KIND == "sink" else ():
            if name in self.raw:
                found[name] = self.raw[name]
        return found

    async def stop(self, grace_s: float) -> None:
        """Stop it. One that is still busy after its grace time is left behind, and stops when it can."""
        if self._context is None:
            return
        self._context.stopping.set()
        if not await in_own_thread(self._stopped, grace_s):
            log.warning(
                "connector %s is still busy after %.0f s: it is left behind, and stops later",
                self.name, grace_s,
            )  # fmt: skip

    def _stopped(self, grace_s: float) -> bool:
        if not self._calls.acquire(timeout=grace_s):
            self._is_left_behind = True
            if not self._calls.acquire(blocking=False):
                return False
        try:
            self._connector.stop()
        finally:
            self._calls.release()
        return True


def task_class_name(connector: Connector, own: str) -> str:
    """The class of the tasks as an Apache worker knows it, so that it can run them after us."""
    java = next(iter(connector.JAVA_NAMES), "")
    return f"{java.removesuffix('Connector')}Task" if java.endswith("Connector") else own
