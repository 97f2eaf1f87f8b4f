"""The two layers of a pipeline's views, for the applications that run them.

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
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from barnabas.pipeline.increments.scopes import Scope
from barnabas.pipeline.increments.source_table import SourceTable, TableVersion
from barnabas.pipeline.ingest.results import AddedRows
from barnabas.pipeline.lake.tables import TableName
from barnabas.pipeline.spec.model import Pipeline, by_name
from barnabas.pipeline.views import batch_layer
from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition, define
from barnabas.pipeline.views.delivery import Delivery
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.part_files import lake_parts
from barnabas.pipeline.views.parts import Conflict, Joined, PartRows, Parts, SpeedPart, ViewState
from barnabas.pipeline.views.speed_layer import SpeedLayer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIES = 10
PARTS_MAX = 5_000  # of the speed layer, then a view without a schedule is recomputed: the store keeps them
JOINED = b"joined"  # versions of joined tables, in the metadata of increments
T = TypeVar("T")
LOG = logging.getLogger(__name__)


class Layer(enum.StrEnum):
    BATCH = "batch"
    SPEED = "speed"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a call: which layer worked, from which version to which, how many rows it handed over, and
    how long it took. `version` is None while the view's table does not exist."""

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
        self._spark = spark
        self._pipeline = pipeline
        self._parts = parts
        self._computing = Computing(pipeline)
        self._definitions = {
            view.name: define(view, pipeline.event_time_of(view.table)) for view in pipeline.views
        }
        self._scheduled = {view.name for view in pipeline.views if view.batch}
        self._source_tables: dict[TableName, SourceTable] = {}
        self._layouts: dict[tuple[str, str], Layout] = {}
        self._joined: dict[str, Joined] = {}  # of the last state that was seen
        self._parts_since: Counter[str] = Counter()  # speed parts since the last batch part
        self._delivery = Delivery(lake_parts(pipeline))

    @property
    def names(self) -> list[str]:
        return list(self._definitions)

    def of(self, table: TableName) -> list[str]:
        """Views that read or join a table: those to refresh after it was rewritten."""
        return [
            name
            for name, definition in self._definitions.items()
            if definition.table == table or table in self._joined_tables(definition)
        ]

    def fed_by(self, table: TableName) -> list[str]:
        """Views over a table, and views that follow changes of it as a joined table: those to catch up when
        it has a new version."""
        return [
            name
            for name, definition in self._definitions.items()
            if definition.table == table
            or (definition.star is not None and table in self._joined_tables(definition))
        ]

    def refresh(self, view: str) -> Outcome:
        """Batch layer: recompute the view as of its tables' current versions and move the horizon there.

        The store merges speed parts that arrive meanwhile onto the new batch part. A later horizon of
        another process stays."""
        definition = self._definition(view)
        started = Started()
        tables = [self._table(table) for table in (definition.table, *self._joined_tables(definition))]
        for each in tables:
            each.forget()
        source_table = tables[0]
        for _ in range(TRIES):
            horizon = source_table.current()
            if horizon is None:
                return started.outcome(view, Layer.NONE, None, None, 0)
            joined = self._current(definition)
            rows: PartRows | None = None
            try:
                layout = self._layout(definition, source_table, horizon, joined)
                self._parts.announce(view, layout.fingerprint, horizon.version, joined)
                before = self._parts.state(view)
                self._delivery.sweep(view, before, once=False)
                part = batch_layer.compute(
                    self._computing,
                    definition,
                    source_table,
                    layout,
                    horizon,
                    joined,
                    lambda frame: self._delivery.batch(frame, layout, horizon.version, before),  # noqa: B023
                )
                rows = part.rows
                after = self._put(self._parts.put_batch, part)
                self._parts_since[view] = 0
            except Conflict as conflict:
                LOG.info("%s", conflict)
                state = self._parts.state(view)
                if state and state.layout == layout and state.horizon.version > horizon.version:
                    return started.outcome(view, Layer.NONE, None, horizon.version, 0)
                continue
            finally:
                if rows is not None:
                    self._delivery.done(rows)
            if after.position.version == horizon.version:
                self._parts.checked(view, horizon.version, started.at)
            left = None if before is None else before.horizon.version
            return started.outcome(view, Layer.BATCH, left, horizon.version, part.rows.num_rows)
        raise Conflict(
            f"the view {view} was changed by other processes {TRIES} times while it was being computed"
        )

    def increments(self, table: TableName, rows: DataFrame) -> dict[str, pa.Table]:
        """Additions to the views of a table by rows that are about to be added to it, for `catch_up`.
        Views to which they add many rows are left out: they read the table's changes."""
        found: dict[str, pa.Table] = {}
        names = [name for name, definition in self._definitions.items() if definition.table == table]
        current = self._table(table).current() if names else None
        if current is None:
            return found
        for name in names:
            definition = self._definitions[name]
            joined = self._joined.get(name)
            if joined is None:
                joined = self._current(definition)
            layout = self._layout(definition, self._table(table), current, joined)
            speed = self._speed(definition, layout)
            made = speed.of_rows(
                rows,
                joined,
                lambda frame: self._delivery.increments(frame, layout),  # noqa: B023
            )
            if made is not None:
                noted = json.dumps(dict(joined), sort_keys=True)
                found[name] = made.replace_schema_metadata({JOINED: noted})
        return found

    def catch_up(self, view: str, added: Sequence[AddedRows] = ()) -> Outcome:
        """Speed layer: bring the view from its position to its tables' current versions.

        A view is refreshed instead if it was never computed, if its SQL changed, or if the changes cannot be
        read any more. `added`: increments of known commits, which then need not be read from the table."""
        definition = self._definition(view)
        started = Started()
        source_table = self._table(definition.table)
        begun: int | None = None
        rows = 0
        known = {each.version: each for each in added if each.table == definition.table}
        for _ in range(TRIES + len(known)):
            seen_at = datetime.now(UTC)
            current = source_table.current()
            if current is None:
                return started.outcome(view, Layer.NONE, None, None, 0)
            state = self._parts.state(view)
            self._delivery.sweep(view, state, once=True)
            if state is None or state.position.version > current.version or self._has_many_parts(view):
                return self.refresh(view)
            layout = self._layout(definition, source_table, current, state.joined)
            joined = self._target(definition, state)
            if joined is None or layout.fingerprint != state.layout.fingerprint:
                return self.refresh(view)
            after = state.position.version
            begun = after if begun is None else begun
            if after == current.version and joined == state.joined:
                self._parts.checked(view, after, seen_at)
                layer = Layer.SPEED if rows or begun < after else Layer.NONE
                return started.outcome(view, layer, begun, after, rows)
            upto = current
            if state.is_before_fence:
                joined = state.fence_joined
                if state.fence < current.version:
                    upto = TableVersion(state.fence, source_table.committed_at(state.fence))
            part = self._told(view, layout, source_table, state, known.get(after + 1))
            if part is None:
                part = self._changes(definition, layout, state, upto, joined)
            if part is None:
                return self.refresh(view)
            try:
                self._put(self._parts.put_speed, part)
                self._parts_since[view] += 1
                rows += part.rows.num_rows
            except Conflict as conflict:
                LOG.info("%s", conflict)
            finally:
                self._delivery.done(part.rows)
        raise Conflict(
            f"the view {view} was changed by other processes {TRIES} times while it was being computed"
        )

    def _has_many_parts(self, view: str) -> bool:
        return view not in self._scheduled and self._parts_since[view] > PARTS_MAX

    # -- states ------------------------------------------------------------------------------------

    def _put(self, put: Callable[[T], ViewState], part: T) -> ViewState:
        state = put(part)
        self._joined[state.view] = state.joined
        return state

    def _current(self, definition: Definition) -> dict[str, int]:
        """The current versions of the joined tables."""
        return {
            str(table): self._pipeline.lake_location.version(self._spark, table)
            for table in self._joined_tables(definition)
        }

    def _target(self, definition: Definition, state: ViewState) -> Joined | None:
        """The versions of joined tables that the next parts lead to; None if the view must be recomputed.

        A view that cannot follow its joined tables sees them as of its last batch part. Without a schedule
        for those, it is recomputed when they change."""
        self._joined[definition.name] = state.joined
        if not definition.lookups:
            return state.joined
        current = self._current(definition)
        if any(version < state.joined.get(name, -1) for name, version in current.items()):
            return None  # a joined table was deleted and made again
        if definition.star is not None:
            return current
        if current != dict(state.joined) and definition.name not in self._scheduled:
            return None
        return state.joined

    def _told(
        self,
        view: str,
        layout: Layout,
        source_table: SourceTable,
        state: ViewState,
        following: AddedRows | None,
    ) -> SpeedPart | None:
        """The part that is known from the commit after the view's position, if it is of use."""
        after = state.position.version
        rows = following.views.get(view) if following is not None else None
        if following is None or rows is None:
            return None
        joined = json.loads((rows.schema.metadata or {}).get(JOINED, b"{}"))
        if joined != state.joined or not source_table.is_commit(after + 1, following.app, following.number):
            return None
        upto = TableVersion(after + 1, source_table.committed_at(after + 1))
        return SpeedPart(layout, after, upto, rows.replace_schema_metadata(None), state.joined, state.joined)

    def _definition(self, view: str) -> Definition:
        try:
            return self._definitions[view]
        except KeyError:
            by_name(self._pipeline.views, view)
            raise

    def _changes(
        self, definition: Definition, layout: Layout, state: ViewState, upto: TableVersion, joined: Joined
    ) -> SpeedPart | None:
        """None if the changes cannot be read: files are vacuumed, or the schema changed."""
        from pyspark.errors import PySparkException

        after = state.position.version
        try:
            return self._speed(definition, layout).compute(
                after,
                upto,
                state.joined,
                joined,
                lambda frame: self._delivery.speed(frame, layout, after, upto.version),
            )
        except (PySparkException, ValueError) as problem:
            LOG.warning(
                "view %s is recomputed: the changes of %s after version %s cannot be read: %s",
                definition.name,
                definition.table,
                after,
                str(problem).partition("\n")[0],
            )
            return None

    # -- tables ------------------------------------------------------------------------------------

    def _table(self, table: TableName) -> SourceTable:
        if table not in self._source_tables:
            self._source_tables[table] = SourceTable(self._spark, self._pipeline.lake_location, table)
        return self._source_tables[table]

    def _joined_tables(self, definition: Definition) -> list[TableName]:
        return [self._computing.find(definition, name) for name in definition.lookups]

    def _speed(self, definition: Definition, layout: Layout) -> SpeedLayer:
        source_table = self._table(definition.table)
        return SpeedLayer(self._computing, definition, source_table, layout, self._table)

    def _layout(
        self, definition: Definition, source_table: SourceTable, at: TableVersion, joined: Joined
    ) -> Layout:
        others = [self._table(table).identity() for table in self._joined_tables(definition)]
        identity = " ".join([source_table.identity(), *others])
        key = (definition.name, identity)
        if key not in self._layouts:
            rows = source_table.rows(at.version)
            with Scope(rows.sparkSession) as scope:
                view = self._computing.over(scope, definition, rows, joined)
                self._layouts[key] = self._computing.layout(definition, view, identity)
        return self._layouts[key]


class Started:
    """The start of a call, for its `Outcome`."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)
        self._from = time.monotonic()

    def outcome(self, view: str, layer: Layer, after: int | None, version: int | None, rows: int) -> Outcome:
        return Outcome(view, layer, after, version, rows, self.at, time.monotonic() - self._from)
