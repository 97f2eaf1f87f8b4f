"""Records the work of a pipeline: an entry in the timeline, a state, the catalogue, and a lineage event.

In: results of batches, outcomes of views, recomputed tables, failures. Out: the timeline and the event
log, which outlive the process; events for a lineage server, where the file names one. A failure to record
never stops the work. Does not know: how the work is done.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from openlineage.client.event_v2 import RunState

from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.errors import brief
from barnabas.engine.timeline import BestEffortTimeline, Entry, Kind, State, Timeline
from barnabas.pipeline.ingest.results import BatchResult, RewriteResult
from barnabas.pipeline.lake.tables import Zone
from barnabas.pipeline.lineage.log import EventLog
from barnabas.pipeline.lineage.openlineage import event, plain
from barnabas.pipeline.lineage.pipeline_graph import graph_of
from barnabas.pipeline.lineage.sending import LineageSender
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder
from barnabas.pipeline.views.layers import Layer, Outcome


class RunRecorder:
    """One for each process. Thread-safe."""

    def __init__(self, pipeline: Pipeline, reporter: Reporter | None = None) -> None:
        self._reporter = reporter  # to the catalogue of the engine
        folder = state_folder(pipeline)
        self.timeline = Timeline(folder)
        self._best_effort = BestEffortTimeline(self.timeline)
        self._events = EventLog(folder)
        self._graph = graph_of(pipeline)
        self._stands: dict[tuple[Kind, str], tuple[State, str]] = {}
        self._sender: LineageSender | None = None
        if pipeline.lineage.url:
            self._sender = LineageSender(pipeline.lineage)
            atexit.register(self.close)

    def close(self) -> None:
        """Send the last events. The end of the process does it too."""
        if self._sender is not None:
            self._sender.close()
            atexit.unregister(self.close)

    # -- sources -----------------------------------------------------------------------------------

    def batch(self, batch: BatchResult, lag: int | None, *, streaming: bool) -> None:
        newest = batch.newest_event_time
        entry = Entry(
            Kind.SOURCE,
            batch.source,
            str(batch.batch),
            batch.started.timestamp(),
            batch.ended.timestamp(),
            rows_in=batch.rows_in,
            rows_out=batch.accepted,
            duplicates=batch.duplicates,
            quarantined=batch.quarantined,
            late=batch.late,
            bytes_in=batch.bytes,
            lag=lag or 0,
            delay_s=max(0.0, (batch.ended - newest).total_seconds()) if newest is not None else 0.0,
        )
        self._best_effort.record(entry)
        if self._reporter is not None:
            self._reporter.progress(
                query_of(Kind.SOURCE, batch.source),
                batch=batch.batch,
                rows_in=batch.rows_in,
                rows_out=batch.accepted,
                seconds=entry.seconds,
                lag=lag,
                delay_s=entry.delay_s if newest is not None else None,
                offsets=batch.position,
            )
        for changed in batch.changed:
            if changed.table.zone is not Zone.QUARANTINE:
                self._tell(f"{changed.table.zone}.{changed.table.name}", entry, streaming=streaming)
        self._tell(f"raw.{batch.source}", entry, streaming=streaming)

    # -- views and tables --------------------------------------------------------------------------

    def outcome(self, outcome: Outcome, rows_in: int = 0, newest: datetime | None = None) -> None:
        """Record the outcome of a view, unless there was nothing to do."""
        if outcome.layer is Layer.NONE:
            return
        kind = Kind.VIEW_BATCH if outcome.layer is Layer.BATCH else Kind.VIEW_SPEED
        started = outcome.started_at.timestamp()
        ended = started + outcome.seconds
        delay_s = max(0.0, ended - newest.timestamp()) if newest is not None else 0.0
        run = f"{outcome.version}"
        entry = Entry(
            kind, outcome.view, run, started, ended, rows_in=rows_in, rows_out=outcome.rows, delay_s=delay_s
        )
        self._best_effort.record(entry)
        if self._reporter is not None:
            self._reporter.progress(
                query_of(kind, outcome.view),
                batch=outcome.version,
                rows_in=rows_in,
                rows_out=outcome.rows,
                seconds=outcome.seconds,
                delay_s=delay_s if newest is not None else None,
            )
        self._tell(f"view.{outcome.view}", entry, streaming=kind == Kind.VIEW_SPEED)

    def made(self, kind: Kind, name: str, started: float, rows: int, version: int | None = None) -> None:
        """Record a recomputed table, or other finished work."""
        ended = time.time()
        run = str(version) if version is not None else f"{ended:.3f}"
        entry = Entry(kind, name, run, started, ended, rows_out=rows)
        self._best_effort.record(entry)
        if self._reporter is not None:
            self._reporter.progress(query_of(kind, name), batch=version, rows_out=rows, seconds=entry.seconds)
        self._tell(f"{kind}.{name}", entry, streaming=False)

    def rewritten(self, done: RewriteResult, started: float) -> None:
        ended = time.time()
        self._best_effort.record(
            Entry(
                Kind.COMMAND,
                done.what,
                f"{ended:.3f}",
                started,
                ended,
                rows_in=done.rows_in,
                rows_out=done.accepted,
                quarantined=done.quarantined,
            )
        )

    # -- states ------------------------------------------------------------------------------------

    def set_state(self, kind: Kind, name: str, state: State, detail: str = "") -> None:
        """Set a state. Only changes are written: a real-time source is polled ten times a second."""
        if self._stands.get((kind, name)) != (state, detail):
            self._best_effort.set_state(kind, name, state, detail, os.getpid())
            self._stands[kind, name] = (state, detail)
            if self._reporter is not None:
                self._reporter.set_state(query_of(kind, name), state, detail, kind)

    def failed(self, kind: Kind, name: str, error: BaseException, started: float, then: str = "") -> None:
        said = brief(error)
        ended = time.time()
        self._best_effort.record(Entry(kind, name, f"{ended:.3f}", started, ended, error=said))
        waits = State.WAITING if type(error).__name__ in WAITS_FOR else State.FAILED
        detail = f"{said}; {then}" if then else said
        self.set_state(kind, name, waits, detail)
        if self._reporter is not None:
            self._reporter.failed(query_of(kind, name), said, state=waits, detail=detail)

    @contextlib.contextmanager
    def working(self, kind: Kind, name: str, then: str = "") -> Iterator[None]:
        """Record a failure of the block, and raise it."""
        started = time.time()
        self.set_state(kind, name, State.RUNNING)
        try:
            yield
        except Exception as error:
            self.failed(kind, name, error, started, then)
            raise

    def _tell(self, key: str, entry: Entry, *, streaming: bool) -> None:
        node = self._graph.nodes.get(key)
        if node is None or not node.inputs:
            return
        if streaming and not self._events.is_news(key):
            return
        kind = RunState.RUNNING if streaming else RunState.COMPLETE
        found = event(self._graph, node, entry, kind, streaming=streaming)
        if self._sender is not None:
            self._sender.send(found)
        with contextlib.suppress(OSError):
            self._events.append(plain(found))


def query_of(kind: str, name: str) -> str:
    """The name in the catalogue: `source/orders`, `view-speed/revenue`."""
    return f"{kind.replace(' ', '-')}/{name}"


WAITS_FOR = ("SourceUnavailable", "LakeUnavailable", "ServingError", "CommitConflict")


def utc_now() -> datetime:
    return datetime.now(UTC)
