"""Contexts for tasks that tests drive by hand: offsets in memory, reports kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.data import Records
from barnabas.connect.plugins import Connector, SinkContext, SinkTask, SourceContext, SourceTask


def frozen(value: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(value.items()))


class Offsets(dict[Any, dict[str, Any]]):
    """Stored offsets, as the runtime keeps them."""

    def read(self, partitions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.get(frozen(each)) for each in partitions]

    def store(self, records: Records) -> None:
        for partition, offset in records.positions:
            self[frozen(partition)] = offset


def started_source(
    connector: type[Connector], config: dict[str, str], offsets: Offsets, task: int = 0
) -> SourceTask:
    settings = connector.CONFIG.parse(config)
    context = SourceContext("c", task, settings, config, offsets=offsets, poll_seconds=0.0)
    found: Any = connector().task_class(settings)()
    found.start(context)
    return found


def started_sink(connector: type[Connector], config: dict[str, str], **given: Any) -> SinkTask:
    settings = connector.CONFIG.parse(config)
    found: Any = connector().task_class(settings)()
    found.start(SinkContext("c", 0, settings, config, **given))
    return found
