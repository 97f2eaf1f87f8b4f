"""The contract of connectors: what can be configured, how work is divided into tasks, which road it takes.

A connector holds no data path: its tasks do the work. Does not know: workers, REST.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from barnabas import __version__
from barnabas.connect.config import ConfigDef
from barnabas.connect.plugins.contexts import ConnectorContext
from barnabas.connect.plugins.spark import SparkSink, SparkSource
from barnabas.connect.plugins.tasks import SinkTask, SourceTask

if TYPE_CHECKING:
    from barnabas.connect.config import Settings

SOURCE = "source"
SINK = "sink"

TaskClass = type[SourceTask] | type[SinkTask] | type[SparkSource] | type[SparkSink]


class Connector:
    """Subclasses set KIND, CONFIG and `task`; most need nothing else."""

    VERSION: ClassVar[str] = __version__
    KIND: ClassVar[str] = SOURCE
    CONFIG: ClassVar[ConfigDef] = ConfigDef()
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ()  # classes of Java connectors that this one stands for
    task: ClassVar[TaskClass]

    settings: Settings
    context: ConnectorContext

    def start(self, settings: Settings, context: ConnectorContext) -> None:
        self.settings = settings
        self.context = context

    def task_class(self, settings: Settings) -> TaskClass:
        """The class of the tasks: a thread's or a Spark job's. Override if the road depends on settings."""
        return self.task

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The configuration of each task. One task with the connector's own, unless overridden; sinks share
        their partitions among `max_tasks` equal tasks."""
        copies = max_tasks if self.KIND == SINK else 1
        return [dict(self.context.config) for _ in range(copies)]

    def stop(self) -> None:
        """Close what `start` opened."""

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        """Errors by setting name that CONFIG alone cannot see: settings that do not fit each other."""
        return {}

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        """Judge offsets that a user sets: ConnectError if they make no sense, True if this connector
        has checked them, False if it has no say. Pairs of (partition, offset); an offset of None resets."""
        return False

    def exactly_once_support(self, config: Mapping[str, str]) -> bool | None:
        """Whether a source can be exactly once with this configuration; None: it does not say."""
        return None

    def defines_transactions(self, config: Mapping[str, str]) -> bool:
        """Whether `transaction.boundary=connector` is possible."""
        return False
