"""Updates of merged views, each in one transaction: a new horizon, or a speed part behind it.

In: a transaction, the view's entry, a part. Out: the new entry. Nothing is counted twice, because a speed
part is accepted only if the view is exactly where the part begins. Nothing is missing when the horizon
moves, because speed parts beyond the new horizon are merged onto the new batch part in the same
transaction. Does not know: which database it is, HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.pipeline.serving.store import catalog
from barnabas.pipeline.serving.store.catalog import ViewEntry
from barnabas.pipeline.serving.store.transaction import (
    FROM,
    KEY,
    TO,
    VERSION,
    Dialect,
    Tables,
    Transaction,
    listed,
    with_keys,
)
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import GONE, REPLACES, BatchPart, Conflict, SpeedPart, TableVersion
from barnabas.pipeline.views.row_merge import Merger, Row

PRUNED_EVERY = 100  # versions


def put_batch(transaction: Transaction, dialect: Dialect, part: BatchPart, keep_horizons: int) -> ViewEntry:
    """Move the horizon of a view to the part's version, or create the view."""
    entry = catalog.find(transaction, part.layout.view)
    rows = with_keys(fitted(part.rows, part.layout, part.layout.schema), part.layout)
    if pc.count_distinct(rows[KEY]).as_py() != rows.num_rows:
        raise ValueError(
            f"the view {part.layout.view} has several rows for one key: its SQL must group by its keys"
        )
    if entry is None or entry.layout.fingerprint != part.layout.fingerprint:
        return begin(transaction, dialect, entry, part, rows)
    if part.horizon.version < max(entry.horizon.version, entry.speed_since):
        raise Conflict(
            f"the horizon of {part.layout.view} is at version {entry.horizon.version} already, "
            f"beyond {part.horizon.version}"
        )
    if part.horizon.version < entry.position.version and not catalog.was_at(
        transaction, entry, part.horizon.version
    ):
        raise Conflict(f"a speed part of {part.layout.view} crosses version {part.horizon.version}")
    transaction.load("incoming", rows)
    merged, replaced = beyond(transaction, entry, part.horizon.version)
    transaction.load("merged", merged)
    transaction.load("replaced", pa.table({KEY: pa.array(replaced, pa.string())}))
    return exchange(transaction, entry, part.horizon, keep_horizons)


def announce(transaction: Transaction, view: str, fingerprint: str, horizon: int) -> None:
    """A batch part at `horizon` will follow: no speed part may cross it."""
    entry = catalog.find(transaction, view)
    if entry is None or entry.layout.fingerprint != fingerprint:
        return
    if horizon < entry.position.version and not catalog.was_at(transaction, entry, horizon):
        raise Conflict(f"a speed part of {view} crosses version {horizon}")
    if horizon > entry.fence:
        catalog.save(transaction, replace(entry, fence=horizon))


def begin(
    transaction: Transaction, dialect: Dialect, entry: ViewEntry | None, part: BatchPart, rows: pa.Table
) -> ViewEntry:
    """Create the tables of a view that is new, or has another SQL or table than before; drop the old ones."""
    layout = part.layout
    if entry is not None:
        drop_tables(transaction, entry.tables)
        catalog.forget(transaction, layout.view)
    begun = ViewEntry(
        layout,
        entry.generation + 1 if entry is not None else 1,
        part.horizon,
        part.horizon,
        part.horizon.at,
        part.horizon.version,
        part.horizon.version,
        rows.num_rows,
        part.horizon.version,
    )
    create_tables(transaction, dialect, begun.tables, layout)
    transaction.load("incoming", rows)
    names = columns_of(layout)
    transaction.run(
        f"""INSERT INTO {begun.tables.now} ({names}, {FROM})
        SELECT {names}, {part.horizon.version} FROM incoming"""
    )
    index_tables(transaction, dialect, begun.tables, layout)
    catalog.save(transaction, begun)
    catalog.note_move(transaction, begun, is_horizon=True)
    return begun


def beyond(transaction: Transaction, entry: ViewEntry, horizon: int) -> tuple[pa.Table, list[str]]:
    """The keys that speed parts beyond the horizon touch, and their rows merged onto the new batch part."""
    layout = entry.layout
    names = columns_of(layout)
    parts = transaction.table(
        f"""SELECT {names}, {REPLACES}, {GONE} FROM {entry.tables.speed}
        WHERE {VERSION} > ? ORDER BY {VERSION}""",
        part_schema(layout),
        horizon,
    )
    touched = pc.unique(parts[KEY]).to_pylist() if parts.num_rows else []
    if not touched:
        return key_schema(layout).empty_table(), []
    transaction.load("touched", pa.table({KEY: pa.array(touched, pa.string())}))
    base = transaction.table(
        f"SELECT {listed(key_schema(layout).names, 'incoming')} FROM incoming JOIN touched USING ({KEY})",
        key_schema(layout),
    )
    return fold(layout, base, parts), touched


def exchange(
    transaction: Transaction, entry: ViewEntry, horizon: TableVersion, keep_horizons: int
) -> ViewEntry:
    """Replace the rows of `now` by `incoming`, and those of replaced keys by `merged`.

    Unchanged rows stay, so that `past` grows by the changed rows only."""
    layout, tables = entry.layout, entry.tables
    position = horizon if horizon.version > entry.position.version else entry.position
    names = columns_of(layout)
    transaction.run(
        f"""CREATE TEMPORARY TABLE coming AS
        SELECT {names} FROM incoming WHERE {KEY} NOT IN (SELECT {KEY} FROM replaced)
        UNION ALL SELECT {names} FROM merged"""
    )
    same = " AND ".join(
        f"n.{name} IS NOT DISTINCT FROM c.{name}" for name in (f'"{column.name}"' for column in layout.stored)
    )
    transaction.run(
        f"""CREATE TEMPORARY TABLE changed AS SELECT n.{KEY} FROM {tables.now} n LEFT JOIN coming c
        ON n.{KEY} = c.{KEY} WHERE c.{KEY} IS NULL OR NOT ({same})"""
    )
    keep_past(transaction, entry, "changed", position.version)
    gone = transaction.count(f"DELETE FROM {tables.now} WHERE {KEY} IN (SELECT {KEY} FROM changed)")
    new = transaction.count(
        f"""INSERT INTO {tables.now} ({names}, {FROM}) SELECT {listed_of(layout, "c")}, {position.version}
        FROM coming c LEFT JOIN {tables.now} n ON n.{KEY} = c.{KEY} WHERE n.{KEY} IS NULL"""
    )
    transaction.run(f"DELETE FROM {tables.speed} WHERE {VERSION} <= ?", horizon.version)
    transaction.run("DROP TABLE coming")
    transaction.run("DROP TABLE changed")
    moved = replace(
        entry,
        horizon=horizon,
        position=position,
        checked_at=max(entry.checked_at, position.at),
        speed_since=horizon.version,
        rows=entry.rows - gone + new,
    )
    catalog.note_move(transaction, moved, is_horizon=True)
    moved = catalog.prune(transaction, moved, keep_horizons)
    catalog.save(transaction, moved)
    return moved


def put_speed(transaction: Transaction, part: SpeedPart, keep_horizons: int) -> ViewEntry:
    """Add what changed after the view's position."""
    entry = catalog.find(transaction, part.layout.view)
    if entry is None or entry.layout.fingerprint != part.layout.fingerprint:
        raise Conflict(
            f"the view {part.layout.view} was not computed with this SQL yet: its batch part comes first"
        )
    if entry.position.version >= part.upto.version:
        return entry  # repeated, or the horizon is beyond it
    if entry.position.version != part.after:
        raise Conflict(
            f"the view {part.layout.view} is at version {entry.position.version}, not at {part.after}"
        )
    if part.after < entry.fence < part.upto.version:
        raise Conflict(
            f"a horizon of {part.layout.view} is announced at version {entry.fence}: a part must end there"
        )
    layout, tables, version = entry.layout, entry.tables, part.upto.version
    parts = with_keys(fitted(part.rows, layout, flagged_schema(layout)), layout)
    transaction.load("incoming", parts)
    names = columns_of(layout)
    transaction.run(
        f"""INSERT INTO {tables.speed} ({names}, {REPLACES}, {GONE}, {VERSION})
        SELECT {names}, {REPLACES}, {GONE}, {version} FROM incoming"""
    )
    base = transaction.table(
        f"SELECT {listed_of(layout, 'n')} FROM {tables.now} n JOIN incoming i ON n.{KEY} = i.{KEY}",
        key_schema(layout),
    )
    transaction.load("merged", fold(layout, base, parts))
    keep_past(transaction, entry, "incoming", version)
    gone = transaction.count(f"DELETE FROM {tables.now} WHERE {KEY} IN (SELECT {KEY} FROM incoming)")
    new = transaction.count(
        f"INSERT INTO {tables.now} ({names}, {FROM}) SELECT {names}, {version} FROM merged"
    )
    moved = replace(
        entry,
        position=part.upto,
        checked_at=max(entry.checked_at, part.upto.at),
        rows=entry.rows - gone + new,
    )
    catalog.note_move(transaction, moved, is_horizon=False)
    if version // PRUNED_EVERY != part.after // PRUNED_EVERY:
        moved = catalog.prune(transaction, moved, keep_horizons)
    catalog.save(transaction, moved)
    return moved


def keep_past(transaction: Transaction, entry: ViewEntry, keys: str, version: int) -> None:
    names = listed_of(entry.layout, "n")
    transaction.run(
        f"""INSERT INTO {entry.tables.past} ({columns_of(entry.layout)}, {FROM}, {TO})
        SELECT {names}, n.{FROM}, {version} FROM {entry.tables.now} n JOIN {keys} k ON n.{KEY} = k.{KEY}
        WHERE n.{FROM} < {version}"""
    )


def fold(layout: Layout, base: pa.Table, parts: pa.Table) -> pa.Table:
    """The rows of the touched keys after the parts, which are applied in their order."""
    merger = Merger(layout)
    width = len(layout.stored)
    rows: dict[str, Row | None] = {row[width]: row[:width] for row in tuples(base)}
    for row in tuples(parts.select([*key_schema(layout).names, REPLACES, GONE])):
        key, replaces, gone = row[width:]
        rows[key] = merger.fold(rows.get(key), [(replaces or gone, None if gone else row[:width])])
    left = [(*row, key) for key, row in rows.items() if row is not None]
    columns = list(zip(*left, strict=True)) if left else [()] * (width + 1)
    schema = key_schema(layout)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )


def tuples(table: pa.Table) -> Iterable[Row]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def fitted(rows: pa.Table, layout: Layout, schema: pa.Schema) -> pa.Table:
    """The part's rows with the layout's columns and types; ValueError if they do not fit."""
    try:
        return rows.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise ValueError(f"a part of the view {layout.view} does not have its columns: {problem}") from None


def key_schema(layout: Layout) -> pa.Schema:
    return layout.schema.append(pa.field(KEY, pa.string()))


def flagged_schema(layout: Layout) -> pa.Schema:
    return layout.schema.append(pa.field(REPLACES, pa.bool_())).append(pa.field(GONE, pa.bool_()))


def part_schema(layout: Layout) -> pa.Schema:
    return key_schema(layout).append(pa.field(REPLACES, pa.bool_())).append(pa.field(GONE, pa.bool_()))


def columns_of(layout: Layout) -> str:
    return listed(key_schema(layout).names)


def listed_of(layout: Layout, table: str) -> str:
    return listed(key_schema(layout).names, table)


def create_tables(transaction: Transaction, dialect: Dialect, tables: Tables, layout: Layout) -> None:
    columns = ", ".join(f'"{column.name}" {dialect.type_of(column.type)}' for column in layout.stored)
    columns = (
        f"{columns}, {KEY} {dialect.type_of('string')}" if columns else f"{KEY} {dialect.type_of('string')}"
    )
    transaction.run(f"CREATE TABLE {tables.now} ({columns}, {FROM} BIGINT)")
    transaction.run(f"CREATE TABLE {tables.past} ({columns}, {FROM} BIGINT, {TO} BIGINT)")
    transaction.run(
        f"CREATE TABLE {tables.speed} ({columns}, {REPLACES} BOOLEAN, {GONE} BOOLEAN, {VERSION} BIGINT)"
    )


def index_tables(transaction: Transaction, dialect: Dialect, tables: Tables, layout: Layout) -> None:
    """Index by key, by the end of past rows, and by the columns that queries filter."""
    transaction.run(f"CREATE INDEX {tables.index(0)} ON {tables.now} ({KEY})")
    transaction.run(f"CREATE INDEX {tables.index(1)} ON {tables.past} ({TO})")
    for number, what in enumerate(dialect.indexed(layout), 2):
        transaction.run(f"CREATE INDEX {tables.index(number)} ON {tables.now} {what}")


def drop_tables(transaction: Transaction, tables: Tables) -> None:
    for name in (tables.now, tables.past, tables.speed):
        transaction.run(f"DROP TABLE IF EXISTS {name}")
