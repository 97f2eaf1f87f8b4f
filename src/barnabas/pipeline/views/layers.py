"""Both layers of a pipeline's views, for those who run them.

In: a Spark session, the pipeline, and where parts go (`serving.store.open_store(…)` in this process, or
`serving.client.ServingClient(url, token)`). Out: `Outcome`s. Applications may call everything at any time,
from several processes at once, and again after a crash: parts say where they begin, and the store takes each
once.

    views = Views(spark, pipeline, ServingClient(url, token))
    views.refresh("revenue")       # batch layer: recompute up to the table's current version, move the
    horizon views.catch_up("revenue")      # speed layer: add what came since; begins with a refresh where
    nothing is there views.of(Table.parse("trusted.orders"))   # names of the views over a table

Does not know: schedules, processes, HTTP.
"""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from barnabas.pipeline.ingest.results import AddedRows
from barnabas.pipeline.lake.tables import Table
from barnabas.pipeline.spec.model import Pipeline, by_name
from barnabas.pipeline.views import batch
from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition, define
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import Conflict, Parts, Position, SpeedPart
from barnabas.pipeline.views.source_table import Master
from barnabas.pipeline.views.speed import Speed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIES = 10
LOG = logging.getLogger(__name__)


class Layer(enum.StrEnum):
    BATCH = "batch"
    SPEED = "speed"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call did: which layer worked (none: there was nothing to do), from which version to which, how
    many rows it handed over, and how long it took. `version` is None while the view's table does not
    exist."""

    view: str
    layer: Layer
    after: int | None
    version: int | None
    rows: int
    started_at: datetime
    seconds: float


class Views:
    """The views of one pipeline, computed in one session."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, parts: Parts) -> None:
        self._pipeline = pipeline
        self._parts = parts
        self._computing = Computing(pipeline)
        self._definitions = {
            view.name: define(view, pipeline.event_time_of(view.table)) for view in pipeline.views
        }
        tables = {definition.table for definition in self._definitions.values()}
        self._masters = {table: Master(spark, pipeline.lake_location, table) for table in tables}
        self._layouts: dict[tuple[str, str], Layout] = {}

    @property
    def names(self) -> list[str]:
        return list(self._definitions)

    def of(self, table: Table) -> list[str]:
        """Views over a table, or that look something up in it: those to refresh when it was rewritten."""
        return [
            name
            for name, definition in self._definitions.items()
            if definition.table == table
            or table in {self._computing.find(definition, lookup) for lookup in definition.lookups}
        ]

    def fed_by(self, table: Table) -> list[str]:
        """Views whose rows come from a table: those to catch up when it has a new version."""
        return [name for name, definition in self._definitions.items() if definition.table == table]

    def refresh(self, view: str) -> Outcome:
        """The batch layer: recomputes the view as of its table's current version and moves the horizon there.

        Speed parts that come meanwhile are kept and merged onto the new batch part. Somebody else's horizon
        that is further already stays."""
        definition = self._definition(view)
        started = Started()
        master = self._masters[definition.table]
        master.forget()
        for _ in range(TRIES):
            horizon = master.current()
            if horizon is None:
                return started.outcome(view, Layer.NONE, None, None, 0)
            try:
                layout = self._layout(definition, master, horizon)
                self._parts.announce(view, layout.fingerprint, horizon.version)
                part = batch.compute(self._computing, definition, master, horizon)
                self._layouts[view, master.identity()] = part.layout
                before = self._parts.state(view)
                after = self._parts.put_batch(part)
            except Conflict as conflict:
                LOG.info("%s", conflict)
                state = self._parts.state(view)
                if state and state.layout == layout and state.horizon.version > horizon.version:
                    return started.outcome(view, Layer.NONE, None, horizon.version, 0)
                continue
            if after.position.version == horizon.version:
                self._parts.checked(view, horizon.version, started.at)
            left = None if before is None else before.horizon.version
            return started.outcome(view, Layer.BATCH, left, horizon.version, part.rows.num_rows)
        raise Conflict(f"the view {view} was moved by others {TRIES} times while it was being computed")

    def increments(self, table: Table, rows: DataFrame) -> dict[str, pa.Table]:
        """What rows that are about to be added to a table are to the views over it, for `catch_up`."""
        master = self._masters.get(table)
        current = master.current() if master is not None else None
        if master is None or current is None:
            return {}
        found = {}
        for name in self.fed_by(table):
            definition = self._definitions[name]
            found[name] = self._speed(definition, master, current).of_rows(rows)
        return found

    def catch_up(self, view: str, added: Sequence[AddedRows] = ()) -> Outcome:
        """The speed layer: brings the view from its position to its table's current version.

        A view without a position, with another SQL than before, or whose changes cannot be read any more, is
        refreshed. Who has just added rows to the table may hand over what they are to the view (`added`):
        then they are not read again."""
        definition = self._definition(view)
        started = Started()
        master = self._masters[definition.table]
        begun: int | None = None
        rows = 0
        known = {each.version: each for each in added if each.table == definition.table}
        for _ in range(TRIES + len(known)):
            seen_at = datetime.now(UTC)
            current = master.current()
            if current is None:
                return started.outcome(view, Layer.NONE, None, None, 0)
            state = self._parts.state(view)
            if state is None or state.position.version > current.version:
                return self.refresh(view)
            if self._layout(definition, master, current).fingerprint != state.layout.fingerprint:
                return self.refresh(view)
            after = state.position.version
            begun = after if begun is None else begun
            if after == current.version:
                self._parts.checked(view, after, seen_at)
                layer = Layer.SPEED if begun < after else Layer.NONE
                return started.outcome(view, layer, begun, after, rows)
            upto = current
            if after < state.fence < current.version:
                upto = Position(state.fence, master.committed_at(state.fence))
            following = known.get(after + 1)
            if (
                following is not None
                and view in following.views
                and master.is_commit(after + 1, following.app, following.number)
            ):
                layout = self._layout(definition, master, current)
                upto = Position(after + 1, master.committed_at(after + 1))
                part = SpeedPart(layout, after, upto, following.views[view])
            else:
                found = self._changes(definition, master, after, upto)
                if found is None:
                    return self.refresh(view)
                part = found
            try:
                self._parts.put_speed(part)
                rows += part.rows.num_rows
            except Conflict as conflict:
                LOG.info("%s", conflict)
        raise Conflict(f"the view {view} was moved by others {TRIES} times while it was being computed")

    def _definition(self, view: str) -> Definition:
        try:
            return self._definitions[view]
        except KeyError:
            by_name(self._pipeline.views, view)
            raise

    def _changes(
        self, definition: Definition, master: Master, after: int, upto: Position
    ) -> SpeedPart | None:
        """None where the changes cannot be read: vacuumed, or the table's schema changed meanwhile."""
        from pyspark.errors import PySparkException

        try:
            return self._speed(definition, master, upto).compute(after, upto)
        except (PySparkException, pa.ArrowInvalid) as problem:
            LOG.warning(
                "view %s is recomputed: the changes of %s after version %s cannot be read: %s",
                definition.name,
                definition.table,
                after,
                str(problem).partition("\n")[0],
            )
            return None

    def _speed(self, definition: Definition, master: Master, upto: Position) -> Speed:
        return Speed(self._computing, definition, master, self._layout(definition, master, upto))

    def _layout(self, definition: Definition, master: Master, at: Position) -> Layout:
        key = (definition.name, master.identity())
        if key not in self._layouts:
            with self._computing.over(definition, master.rows(at.version)) as view:
                self._layouts[key] = self._computing.layout(definition, view, master.identity())
        return self._layouts[key]


class Started:
    """When a call began, and what became of it."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)
        self._from = time.monotonic()

    def outcome(self, view: str, layer: Layer, after: int | None, version: int | None, rows: int) -> Outcome:
        return Outcome(view, layer, after, version, rows, self.at, time.monotonic() - self._from)
