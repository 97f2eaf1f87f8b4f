"""A test kit: runs a connector without a worker and without a broker, in milliseconds.

In: a connector class and its configuration. Out: the rows that a source gives, with the offsets that it
reached; or what a sink did with rows. Tests of connectors need nothing else.
Does not know: converters, transforms.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.config import Settings
from barnabas.connect.data import Column, Record, Records, Schema
from barnabas.connect.plugins import (
    ConnectError,
    Connector,
    ConnectorContext,
    SinkContext,
    SinkTask,
    SourceContext,
    SourceTask,
)
from barnabas.connect.tasks.offsets import OffsetMemory

POLLS_MAX = 1000


class Kit:
    """One task of a connector, given the first of its task configurations."""

    def __init__(
        self,
        connector: type[Connector],
        config: Mapping[str, str],
        *,
        offsets: Sequence[tuple[Any, Any]] = (),
    ) -> None:
        self.offsets = OffsetMemory("test")
        self.offsets.save(list(offsets))
        self.stopping = threading.Event()
        self.errant: list[tuple[Record, BaseException]] = []
        made = connector()
        settings: Settings = connector.CONFIG.parse(config)
        errors = [each for some in made.check(config).values() for each in some]
        if errors:
            raise ConnectError("; ".join(errors))
        made.start(settings, ConnectorContext("test", config, stopping=self.stopping, offsets=self.offsets))
        self.task_configs = made.task_configs(1)
        own = self.task_configs[0]
        self._settings, self._config = connector.CONFIG.parse(own), own
        self.task: Any = made.task_class(self._settings)()

    def poll(self, rows: int) -> list[Record]:
        """Poll a source until it gave so many rows, or nothing more comes; offsets are stored as it goes."""
        if not isinstance(self.task, SourceTask):
            raise ConnectError(f"{type(self.task).__name__} is no source that is polled")
        self.task.start(
            SourceContext(
                "test",
                0,
                self._settings,
                self._config,
                self.stopping,
                offsets=self.offsets,
                poll_seconds=0.01,
            )
        )
        found: list[Record] = []
        try:
            for _ in range(POLLS_MAX):
                records = self.task.poll()
                if records is not None:
                    found += records.rows()
                    self.offsets.save(records.positions)
                    self.task.commit(records.positions)
                if len(found) >= rows or records is None:
                    break
        finally:
            self.task.stop()
        return found

    def put(self, topic: str, values: Iterable[Any], schema: Schema | None = None) -> None:
        """Give a sink values of one partition, flush, and close it."""
        if not isinstance(self.task, SinkTask):
            raise ConnectError(f"{type(self.task).__name__} is no sink that records are put into")
        where = TopicPartition(topic, 0)

        def errant(records: Records, indices: Sequence[int], error: BaseException) -> None:
            self.errant += [(each, error) for each in records.take(list(indices)).rows()]

        column = Column.of(values, schema)
        count = len(column)
        context = SinkContext("test", 0, self._settings, self._config, self.stopping, assignment={where})
        context.errant = errant
        self.task.start(context)
        try:
            self.task.open([where])
            self.task.put(
                Records.of(
                    topic, column, timestamps=[0] * count, partitions=[0] * count, offsets=list(range(count))
                )
            )
            self.task.flush({where: count})
            self.task.close([where])
        finally:
            self.task.stop()
