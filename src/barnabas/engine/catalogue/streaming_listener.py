"""Reports queries of Structured Streaming to the catalogue.

In: events of Spark's listener bus. Out: states, progress and errors of the queries, by their names. It works
in sessions of this process and in those of Spark Connect. Does not know: what queries compute.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryState
from barnabas.spark.progress import positions, rows_behind

KIND = "stream"


class CatalogueListener(StreamingQueryListener):
    """A query without a name goes by its id. `brief` makes one line without secrets of an error."""

    def __init__(self, reporter: Reporter, brief: Callable[[str], str]) -> None:
        self._reporter = reporter
        self._brief = brief
        self._names: dict[str, str] = {}  # by the id of the run

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        name = event.name or str(event.id)
        self._names[str(event.runId)] = name
        self._reporter.set_state(name, QueryState.STARTING, kind=KIND)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress: Mapping[str, Any] = json.loads(event.progress.json)
        name = progress.get("name") or str(progress["id"])
        self._names[str(progress["runId"])] = name
        sink = progress.get("sink") or {}
        self._reporter.progress(
            name,
            batch=int(progress["batchId"]),
            rows_in=int(progress.get("numInputRows") or 0),
            rows_out=max(int(sink.get("numOutputRows") or 0), 0),
            seconds=float(progress.get("batchDuration") or 0) / 1000,
            lag=rows_behind(progress),
            offsets=offsets_of(progress),
        )
        self._reporter.set_state(name, QueryState.RUNNING, kind=KIND)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        name = self._names.get(str(event.runId), str(event.id))
        self._reporter.set_state(name, QueryState.IDLE, kind=KIND)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        name = self._names.pop(str(event.runId), str(event.id))
        if event.exception:
            self._reporter.failed(name, self._brief(event.exception))
        else:
            self._reporter.set_state(name, QueryState.STOPPED, kind=KIND)


def offsets_of(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Offsets of the sources after the batch, by topic and partition."""
    found: dict[str, Any] = {}
    for source in progress.get("sources") or ():
        for (topic, partition), offset in positions(source.get("endOffset")).items():
            found.setdefault(topic, {})[partition] = offset
    return found
