"""Updates of merged views, each in one transaction: a new horizon, or a speed part behind it.

In: a transaction, the view's entry, a part and its rows in pieces. Out: the new entry. Nothing is counted
twice, because a speed part is accepted only if the view is exactly where the part begins. Nothing is missing
when the horizon moves, because speed parts beyond the new horizon are merged onto the new batch part in
the same transaction. The database does all that grows with the view.
Does not know: which database it is, HTTP, where rows of parts come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from barnabas.pipeline.serving.store import catalog, sketch_unions
from barnabas.pipeline.serving.store.catalog import ViewEntry
from barnabas.pipeline.serving.store.merging import merged
from barnabas.pipeline.serving.store.transaction import (
    FROM,
    KEY,
    NUMBER,
    TO,
    VERSION,
    Dialect,
    Tables,
    Transaction,
    listed,
    with_keys,
)
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.part_files import LakeParts
from barnabas.pipeline.views.parts import (
    GONE,
    REPLACES,
    BatchPart,
    Conflict,
    Joined,
    SpeedPart,
    is_within,
)

PRUNED_EVERY = 100  # versions


@dataclass(frozen=True, slots=True)
class Updates:
    """Updates in one transaction."""

    transaction: Transaction
    dialect: Dialect
    lake: LakeParts
    keep_horizons: int

    # -- a new horizon -----------------------------------------------------------------------------

    def announce(self, view: str, fingerprint: str, horizon: int, joined: Joined) -> None:
        """A batch part at these versions will follow: no speed part may cross them."""
        entry = catalog.find(self.transaction, view)
        if entry is None or entry.layout.fingerprint != fingerprint:
            return
        if place(self.transaction, entry, horizon, joined) is None:
            raise Conflict(f"a speed part of {view} crosses version {horizon}")
        if is_within(entry.fence, entry.fence_joined, horizon, joined):
            catalog.save(self.transaction, replace(entry, fence=horizon, fence_joined=joined))

    def put_batch(self, part: BatchPart) -> ViewEntry:
        """Move the horizon of a view to the part's version, or create the view."""
        layout = part.layout
        entry = catalog.find(self.transaction, layout.view)
        covered = None
        if entry is not None and entry.layout.fingerprint == layout.fingerprint:
            if part.horizon.version < max(entry.horizon.version, entry.speed_since):
                raise Conflict(
                    f"the horizon of {layout.view} is at version {entry.horizon.version} already, "
                    f"beyond {part.horizon.version}"
                )
            covered = place(self.transaction, entry, part.horizon.version, part.joined)
            if covered is None:
                raise Conflict(f"a speed part of {layout.view} crosses version {part.horizon.version}")
            if covered < entry.covered:
                raise Conflict(
                    f"a later horizon of {layout.view} is at version {entry.horizon.version} already"
                )
        self._load(part.layout, layout.schema, self.lake.batches(part.rows, layout.schema))
        [(rows, keys)] = self.transaction.rows(f"SELECT count(*), count(DISTINCT {KEY}) FROM incoming")
        if rows != keys:
            raise ValueError(
                f"the view {layout.view} has several rows for one key: its SQL must group by its keys"
            )
        if entry is None or covered is None:
            return self._begin(entry, part, rows)
        self._beyond(entry, covered)
        return self._exchange(entry, part, covered)

    def _load(self, layout: Layout, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        keyed = schema.append(pa.field(KEY, pa.string()))
        self.transaction.load("incoming", keyed, (with_keys(batch, layout) for batch in batches))

    def _begin(self, entry: ViewEntry | None, part: BatchPart, rows: int) -> ViewEntry:
        """Create the tables of a view that is new, or has another SQL or table than before; drop the old
        ones."""
        layout = part.layout
        if entry is not None:
            drop_tables(self.transaction, entry.tables)
            catalog.forget(self.transaction, layout.view)
        version = part.horizon.version
        begun = ViewEntry(
            layout,
            entry.generation + 1 if entry is not None else 1,
            part.horizon,
            part.horizon,
            part.horizon.at,
            version,
            version,
            rows,
            version,
            part.joined,
            part.joined,
            0,
        )
        create_tables(self.transaction, self.dialect, begun.tables, layout)
        names = columns_of(layout)
        # Rows in the order of their keys: DuckDB then skips blocks by their bounds.
        order = listed(column.name for column in layout.keys) or KEY
        self.transaction.run(
            f"INSERT INTO {begun.tables.now} ({names}, {FROM}) "
            f"SELECT {names}, {version} FROM incoming ORDER BY {order}"
        )
        for statement in self.dialect.indexes(begun.tables, layout):
            self.transaction.run(statement)
        catalog.save(self.transaction, begun)
        catalog.note_move(self.transaction, begun, is_horizon=True)
        return begun

    def _beyond(self, entry: ViewEntry, covered: int) -> None:
        """Make `replaced`, the keys that speed parts beyond the horizon touch, and `merged`, their rows
        merged onto the new batch part. `covered` is the number of the last part that the horizon covers."""
        layout = entry.layout
        names = columns_of(layout)
        self.transaction.make(
            "replaced",
            f"""SELECT {KEY},
            coalesce(max(CASE WHEN {REPLACES} OR {GONE} THEN {NUMBER} END), -1) AS since
            FROM {entry.tables.speed} WHERE {NUMBER} > {covered} GROUP BY {KEY}""",
        )
        rows = f"""SELECT {listed_of(layout, "i")} FROM incoming i JOIN replaced r ON r.{KEY} = i.{KEY}
            WHERE r.since < 0
            UNION ALL SELECT {listed_of(layout, "s")} FROM {entry.tables.speed} s
            JOIN replaced r ON r.{KEY} = s.{KEY}
            WHERE s.{NUMBER} > {covered} AND s.{NUMBER} >= r.since AND NOT s.{GONE}"""
        self._merge(layout, rows, names)

    def _merge(self, layout: Layout, rows: str, names: str) -> None:
        select = f"SELECT {names} FROM ({merged(self.dialect, layout, rows)}) AS of_keys"
        self.transaction.make("merged", select)
        sketch_unions.unite(self.transaction, layout, rows, "merged")

    def _exchange(self, entry: ViewEntry, part: BatchPart, covered: int) -> ViewEntry:
        """Replace the rows of `now` by `incoming`, and those of replaced keys by `merged`.

        Unchanged rows stay, so that `past` grows by the changed rows only."""
        transaction, layout, tables, horizon = self.transaction, entry.layout, entry.tables, part.horizon
        is_ahead = covered >= entry.number  # nothing came after the part
        position = horizon if is_ahead else entry.position
        names = columns_of(layout)
        transaction.make(
            "coming",
            f"""SELECT {listed_of(layout, "i")} FROM incoming i
            WHERE NOT EXISTS (SELECT 1 FROM replaced r WHERE r.{KEY} = i.{KEY})
            UNION ALL SELECT {names} FROM merged""",
        )
        same = " AND ".join(
            f"n.{name} IS NOT DISTINCT FROM c.{name}"
            for name in (f'"{column.name}"' for column in layout.stored)
        )
        transaction.make(
            "changed",
            f"""SELECT n.{KEY} FROM {tables.now} n LEFT JOIN coming c
            ON n.{KEY} = c.{KEY} WHERE c.{KEY} IS NULL OR NOT ({same})""",
        )
        self._keep_past(entry, "changed", position.version)
        gone = transaction.count(f"DELETE FROM {tables.now} WHERE {KEY} IN (SELECT {KEY} FROM changed)")
        new = transaction.count(
            f"""INSERT INTO {tables.now} ({names}, {FROM})
            SELECT {listed_of(layout, "c")}, {position.version} FROM coming c
            WHERE NOT EXISTS (SELECT 1 FROM {tables.now} n WHERE n.{KEY} = c.{KEY})"""
        )
        transaction.run(f"DELETE FROM {tables.speed} WHERE {NUMBER} <= {covered}")
        for name in ("coming", "changed", "replaced", "merged"):
            transaction.run(f"DROP TABLE {name}")
        moved = replace(
            entry,
            horizon=horizon,
            position=position,
            checked_at=max(entry.checked_at, position.at),
            speed_since=horizon.version,
            rows=entry.rows - gone + new,
            joined=part.joined if is_ahead else entry.joined,
            covered=covered,
        )
        catalog.note_move(transaction, moved, is_horizon=True)
        moved = catalog.prune(transaction, moved, self.keep_horizons)
        catalog.save(transaction, moved)
        return moved

    # -- what came after it ------------------------------------------------------------------------

    def put_speed(self, part: SpeedPart) -> ViewEntry:
        """Add what changed after the view's position."""
        entry = catalog.find(self.transaction, part.layout.view)
        if entry is None or entry.layout.fingerprint != part.layout.fingerprint:
            raise Conflict(
                f"the view {part.layout.view} was not computed with this SQL yet: its batch part comes first"
            )
        if is_within(part.upto.version, part.joined, entry.position.version, entry.joined):
            return entry  # repeated, or the horizon is beyond it
        check_place(entry, part)
        layout, tables, version = entry.layout, entry.tables, part.upto.version
        transaction, number = self.transaction, entry.number + 1
        flagged = layout.schema.append(pa.field(REPLACES, pa.bool_())).append(pa.field(GONE, pa.bool_()))
        self._load(layout, flagged, self.lake.batches(part.rows, flagged))
        names = columns_of(layout)
        transaction.run(
            f"""INSERT INTO {tables.speed} ({names}, {REPLACES}, {GONE}, {VERSION}, {NUMBER})
            SELECT {names}, {REPLACES}, {GONE}, {version}, {number} FROM incoming"""
        )
        rows = f"""SELECT {listed_of(layout, "n")} FROM {tables.now} n JOIN incoming i ON n.{KEY} = i.{KEY}
            WHERE NOT i.{REPLACES} AND NOT i.{GONE}
            UNION ALL SELECT {names} FROM incoming WHERE NOT {GONE}"""
        self._merge(layout, rows, names)
        self._keep_past(entry, "incoming", version)
        gone = transaction.count(f"DELETE FROM {tables.now} WHERE {KEY} IN (SELECT {KEY} FROM incoming)")
        new = transaction.count(
            f"INSERT INTO {tables.now} ({names}, {FROM}) SELECT {names}, {version} FROM merged"
        )
        moved = replace(
            entry,
            position=part.upto,
            checked_at=max(entry.checked_at, part.upto.at),
            rows=entry.rows - gone + new,
            joined=part.joined,
            number=number,
        )
        catalog.note_move(transaction, moved, is_horizon=False)
        if version // PRUNED_EVERY != part.after // PRUNED_EVERY:
            moved = catalog.prune(transaction, moved, self.keep_horizons)
        catalog.save(transaction, moved)
        return moved

    def _keep_past(self, entry: ViewEntry, keys: str, version: int) -> None:
        names = listed_of(entry.layout, "n")
        self.transaction.run(
            f"""INSERT INTO {entry.tables.past} ({columns_of(entry.layout)}, {FROM}, {TO})
            SELECT {names}, n.{FROM}, {version} FROM {entry.tables.now} n JOIN {keys} k ON n.{KEY} = k.{KEY}
            WHERE n.{FROM} < {version}"""
        )


def place(transaction: Transaction, entry: ViewEntry, version: int, joined: Joined) -> int | None:
    """The number of the last speed part that a batch part at these versions covers; None if a part crosses
    them."""
    if is_within(entry.position.version, entry.joined, version, joined):
        return entry.number
    return catalog.number_at(transaction, entry, version, joined)


def check_place(entry: ViewEntry, part: SpeedPart) -> None:
    """Conflict if the part does not begin where the view is, or crosses an announced horizon."""
    view = part.layout.view
    if (entry.position.version, dict(entry.joined)) != (part.after, dict(part.joined_after)):
        raise Conflict(f"the view {view} is at version {entry.position.version}, not at {part.after}")
    if entry.state.is_before_fence and not is_within(
        part.upto.version, part.joined, entry.fence, entry.fence_joined
    ):
        raise Conflict(f"a horizon of {view} is announced at version {entry.fence}: a part must end there")


def columns_of(layout: Layout) -> str:
    return listed([*layout.schema.names, KEY])


def listed_of(layout: Layout, table: str) -> str:
    return listed([*layout.schema.names, KEY], table)


def create_tables(transaction: Transaction, dialect: Dialect, tables: Tables, layout: Layout) -> None:
    columns = ", ".join(f'"{column.name}" {dialect.type_of(column.type)}' for column in layout.stored)
    columns = (
        f"{columns}, {KEY} {dialect.type_of('string')}" if columns else f"{KEY} {dialect.type_of('string')}"
    )
    transaction.run(f"CREATE TABLE {tables.now} ({columns}, {FROM} BIGINT)")
    transaction.run(f"CREATE TABLE {tables.past} ({columns}, {FROM} BIGINT, {TO} BIGINT)")
    transaction.run(
        f"""CREATE TABLE {tables.speed} ({columns}, {REPLACES} BOOLEAN, {GONE} BOOLEAN, {VERSION} BIGINT,
        {NUMBER} BIGINT)"""
    )


def drop_tables(transaction: Transaction, tables: Tables) -> None:
    for name in (tables.now, tables.past, tables.speed):
        transaction.run(f"DROP TABLE IF EXISTS {name}")
