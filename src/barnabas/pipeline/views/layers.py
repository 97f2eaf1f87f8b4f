"""Both layers of a pipeline's views, for the applications that run them.

In: a Spark session, the pipeline, and where parts go: a store of this process
(`serving.store.opening.open_store`) or `serving.http.client.ServingClient`. Out: `Outcome`s. Every call may
be made at any time, from several processes at once, and again after a crash: a part says where it begins, and
the store takes each part once.

    views = Views(spark, pipeline, ServingClient(url, token))
    views.refresh("revenue")    # batch layer: recompute as of the table's current version, move the horizon
    views.catch_up("revenue")   # speed layer: add what came since; refreshes a view that does not exist
    views.of(TableName.parse("trusted.orders"))   # names of the views over a table

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
from barnabas.pipeline.lake.tables import TableName
from barnabas.pipeline.spec.model import Pipeline, by_name
from barnabas.pipeline.views import batch_layer
from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition, define
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import Conflict, Parts, SpeedPart, TableVersion
from barnabas.pipeline.views.source_table import SourceTable
from barnabas.pipeline.views.speed_layer import SpeedLayer

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
    """What a call did: which layer worked, from which version to which, how many rows it handed over, and how
    long it took. `version` is None while the view's table does not exist."""

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
        self._source_tables = {table: SourceTable(spark, pipeline.lake_location, table) for table in tables}
        self._layouts: dict[tuple[str, str], Layout] = {}

    @property
    def names(self) -> list[str]:
        return list(self._definitions)

    def of(self, table: TableName) -> list[str]:
        """Views that read or join a table: those to refresh after it was rewritten."""
        return [
            name
            for name, definition in self._definitions.items()
            if definition.table == table
            or table in {self._computing.find(definition, lookup) for lookup in definition.lookups}
        ]

    def fed_by(self, table: TableName) -> list[str]:
        """Views over a table: those to catch up when it has a new version."""
        return [name for name, definition in self._definitions.items() if definition.table == table]

    def refresh(self, view: str) -> Outcome:
        """Batch layer: recompute the view as of its table's current version and move the horizon there.

        The store merges speed parts that arrive meanwhile onto the new batch part. A later horizon of
        another process stays."""
        definition = self._definition(view)
        started = Started()
        source_table = self._source_tables[definition.table]
        source_table.forget()
        for _ in range(TRIES):
            horizon = source_table.current()
            if horizon is None:
                return started.outcome(view, Layer.NONE, None, None, 0)
            try:
                layout = self._layout(definition, source_table, horizon)
                self._parts.announce(view, layout.fingerprint, horizon.version)
                part = batch_layer.compute(self._computing, definition, source_table, horizon)
                self._layouts[view, source_table.identity()] = part.layout
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
        raise Conflict(
            f"the view {view} was changed by other processes {TRIES} times while it was being computed"
        )

    def increments(self, table: TableName, rows: DataFrame) -> dict[str, pa.Table]:
        """What rows that are about to be added to a table add to its views, for `catch_up`."""
        source_table = self._source_tables.get(table)
        current = source_table.current() if source_table is not None else None
        if source_table is None or current is None:
            return {}
        found = {}
        for name in self.fed_by(table):
            definition = self._definitions[name]
            found[name] = self._speed(definition, source_table, current).of_rows(rows)
        return found

    def catch_up(self, view: str, added: Sequence[AddedRows] = ()) -> Outcome:
        """Speed layer: bring the view from its position to its table's current version.

        A view is refreshed instead if it was never computed, if its SQL changed, or if the changes cannot be
        read any more. `added`: increments of known commits, which then need not be read from the table."""
        definition = self._definition(view)
        started = Started()
        source_table = self._source_tables[definition.table]
        begun: int | None = None
        rows = 0
        known = {each.version: each for each in added if each.table == definition.table}
        for _ in range(TRIES + len(known)):
            seen_at = datetime.now(UTC)
            current = source_table.current()
            if current is None:
                return started.outcome(view, Layer.NONE, None, None, 0)
            state = self._parts.state(view)
            if state is None or state.position.version > current.version:
                return self.refresh(view)
            if self._layout(definition, source_table, current).fingerprint != state.layout.fingerprint:
                return self.refresh(view)
            after = state.position.version
            begun = after if begun is None else begun
            if after == current.version:
                self._parts.checked(view, after, seen_at)
                layer = Layer.SPEED if begun < after else Layer.NONE
                return started.outcome(view, layer, begun, after, rows)
            upto = current
            if after < state.fence < current.version:
                upto = TableVersion(state.fence, source_table.committed_at(state.fence))
            following = known.get(after + 1)
            if (
                following is not None
                and view in following.views
                and source_table.is_commit(after + 1, following.app, following.number)
            ):
                layout = self._layout(definition, source_table, current)
                upto = TableVersion(after + 1, source_table.committed_at(after + 1))
                part = SpeedPart(layout, after, upto, following.views[view])
            else:
                found = self._changes(definition, source_table, after, upto)
                if found is None:
                    return self.refresh(view)
                part = found
            try:
                self._parts.put_speed(part)
                rows += part.rows.num_rows
            except Conflict as conflict:
                LOG.info("%s", conflict)
        raise Conflict(
            f"the view {view} was changed by other processes {TRIES} times while it was being computed"
        )

    def _definition(self, view: str) -> Definition:
        try:
            return self._definitions[view]
        except KeyError:
            by_name(self._pipeline.views, view)
            raise

    def _changes(
        self, definition: Definition, source_table: SourceTable, after: int, upto: TableVersion
    ) -> SpeedPart | None:
        """None if the changes cannot be read: files are vacuumed, or the schema changed."""
        from pyspark.errors import PySparkException

        try:
            return self._speed(definition, source_table, upto).compute(after, upto)
        except (PySparkException, pa.ArrowInvalid) as problem:
            LOG.warning(
                "view %s is recomputed: the changes of %s after version %s cannot be read: %s",
                definition.name,
                definition.table,
                after,
                str(problem).partition("\n")[0],
            )
            return None

    def _speed(self, definition: Definition, source_table: SourceTable, upto: TableVersion) -> SpeedLayer:
        return SpeedLayer(
            self._computing, definition, source_table, self._layout(definition, source_table, upto)
        )

    def _layout(self, definition: Definition, source_table: SourceTable, at: TableVersion) -> Layout:
        key = (definition.name, source_table.identity())
        if key not in self._layouts:
            with self._computing.over(definition, source_table.rows(at.version)) as view:
                self._layouts[key] = self._computing.layout(definition, view, source_table.identity())
        return self._layouts[key]


class Started:
    """The start of a call, for its `Outcome`."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)
        self._from = time.monotonic()

    def outcome(self, view: str, layer: Layer, after: int | None, version: int | None, rows: int) -> Outcome:
        return Outcome(view, layer, after, version, rows, self.at, time.monotonic() - self._from)
