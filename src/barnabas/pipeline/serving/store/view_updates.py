"""Parts become the merged view, each in one transaction: the horizon's move, and what comes after it.

In: a session, the view's entry, a part. Out: the entry as it is after. Nothing is counted twice, because a
speed part is only taken by a view that stands exactly where the part begins; nothing is missing when the
horizon moves, because speed parts beyond the new horizon are merged onto the new batch part before anybody
sees it. Does not know: which database it is, HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.pipeline.serving.store import catalog
from barnabas.pipeline.serving.store.catalog import Entry
from barnabas.pipeline.serving.store.session import (
    FROM,
    KEY,
    TO,
    VERSION,
    Dialect,
    Session,
    Tables,
    listed,
    with_keys,
)
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import GONE, REPLACES, BatchPart, Conflict, Position, SpeedPart
from barnabas.pipeline.views.row_merge import Merger, Row

PRUNED_EVERY = 100  # versions


def put_batch(session: Session, dialect: Dialect, part: BatchPart, keep_horizons: int) -> Entry:
    """Moves the horizon of a view to the part's version, or begins the view with it."""
    entry = catalog.find(session, part.layout.view)
    rows = with_keys(fitted(part.rows, part.layout, part.layout.schema), part.layout)
    if pc.count_distinct(rows[KEY]).as_py() != rows.num_rows:
        raise ValueError(
            f"the view {part.layout.view} has several rows for one key: its SQL must group by its keys"
        )
    if entry is None or entry.layout.fingerprint != part.layout.fingerprint:
        return begin(session, dialect, entry, part, rows)
    if part.horizon.version < max(entry.horizon.version, entry.speed_since):
        raise Conflict(
            f"the horizon of {part.layout.view} is at version {entry.horizon.version} already, "
            f"beyond {part.horizon.version}"
        )
    if part.horizon.version < entry.position.version and not catalog.was_at(
        session, entry, part.horizon.version
    ):
        raise Conflict(f"a speed part of {part.layout.view} lies across version {part.horizon.version}")
    session.load("incoming", rows)
    merged, replaced = beyond(session, entry, part.horizon.version)
    session.load("merged", merged)
    session.load("replaced", pa.table({KEY: pa.array(replaced, pa.string())}))
    return exchange(session, entry, part.horizon, keep_horizons)


def announce(session: Session, view: str, fingerprint: str, horizon: int) -> None:
    """A batch part as of `horizon` is on its way: no speed part may lie across it."""
    entry = catalog.find(session, view)
    if entry is None or entry.layout.fingerprint != fingerprint:
        return
    if horizon < entry.position.version and not catalog.was_at(session, entry, horizon):
        raise Conflict(f"a speed part of {view} lies across version {horizon}")
    if horizon > entry.fence:
        catalog.save(session, replace(entry, fence=horizon))


def begin(session: Session, dialect: Dialect, entry: Entry | None, part: BatchPart, rows: pa.Table) -> Entry:
    """A view that is new, or has another SQL or other master data than before: new tables, nothing of the
    old."""
    layout = part.layout
    if entry is not None:
        drop_tables(session, entry.tables)
        catalog.forget(session, layout.view)
    begun = Entry(
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
    create_tables(session, dialect, begun.tables, layout)
    session.load("incoming", rows)
    names = columns_of(layout)
    session.run(
        f"""INSERT INTO {begun.tables.now} ({names}, {FROM})
        SELECT {names}, {part.horizon.version} FROM incoming"""
    )
    index_tables(session, dialect, begun.tables, layout)
    catalog.save(session, begun)
    catalog.note_move(session, begun, is_horizon=True)
    return begun


def beyond(session: Session, entry: Entry, horizon: int) -> tuple[pa.Table, list[str]]:
    """Rows of the keys that speed parts beyond the horizon touch, merged onto the new batch part; and these
    keys."""
    layout = entry.layout
    names = columns_of(layout)
    parts = session.table(
        f"""SELECT {names}, {REPLACES}, {GONE} FROM {entry.tables.speed}
        WHERE {VERSION} > ? ORDER BY {VERSION}""",
        part_schema(layout),
        horizon,
    )
    touched = pc.unique(parts[KEY]).to_pylist() if parts.num_rows else []
    if not touched:
        return key_schema(layout).empty_table(), []
    session.load("touched", pa.table({KEY: pa.array(touched, pa.string())}))
    base = session.table(
        f"SELECT {listed(key_schema(layout).names, 'incoming')} FROM incoming JOIN touched USING ({KEY})",
        key_schema(layout),
    )
    return fold(layout, base, parts), touched


def exchange(session: Session, entry: Entry, horizon: Position, keep_horizons: int) -> Entry:
    """The rows of `now` become those of `incoming`, those of `merged` in place of the replaced keys. Rows
    that do not change stay, so that the past grows by what changed only."""
    layout, tables = entry.layout, entry.tables
    position = horizon if horizon.version > entry.position.version else entry.position
    names = columns_of(layout)
    session.run(
        f"""CREATE TEMPORARY TABLE coming AS
        SELECT {names} FROM incoming WHERE {KEY} NOT IN (SELECT {KEY} FROM replaced)
        UNION ALL SELECT {names} FROM merged"""
    )
    same = " AND ".join(
        f"n.{name} IS NOT DISTINCT FROM c.{name}" for name in (f'"{column.name}"' for column in layout.stored)
    )
    session.run(
        f"""CREATE TEMPORARY TABLE changed AS SELECT n.{KEY} FROM {tables.now} n LEFT JOIN coming c
        ON n.{KEY} = c.{KEY} WHERE c.{KEY} IS NULL OR NOT ({same})"""
    )
    keep_past(session, entry, "changed", position.version)
    gone = session.count(f"DELETE FROM {tables.now} WHERE {KEY} IN (SELECT {KEY} FROM changed)")
    new = session.count(
        f"""INSERT INTO {tables.now} ({names}, {FROM}) SELECT {listed_of(layout, "c")}, {position.version}
        FROM coming c LEFT JOIN {tables.now} n ON n.{KEY} = c.{KEY} WHERE n.{KEY} IS NULL"""
    )
    session.run(f"DELETE FROM {tables.speed} WHERE {VERSION} <= ?", horizon.version)
    session.run("DROP TABLE coming")
    session.run("DROP TABLE changed")
    moved = replace(
        entry,
        horizon=horizon,
        position=position,
        checked_at=max(entry.checked_at, position.at),
        speed_since=horizon.version,
        rows=entry.rows - gone + new,
    )
    catalog.note_move(session, moved, is_horizon=True)
    moved = catalog.prune(session, moved, keep_horizons)
    catalog.save(session, moved)
    return moved


def put_speed(session: Session, part: SpeedPart, keep_horizons: int) -> Entry:
    """Adds what happened after the view's position."""
    entry = catalog.find(session, part.layout.view)
    if entry is None or entry.layout.fingerprint != part.layout.fingerprint:
        raise Conflict(
            f"the view {part.layout.view} was not computed with this SQL yet: its batch part comes first"
        )
    if entry.position.version >= part.upto.version:
        return entry  # sent again, or the horizon has gone beyond it
    if entry.position.version != part.after:
        raise Conflict(
            f"the view {part.layout.view} stands at version {entry.position.version}, not at {part.after}"
        )
    if part.after < entry.fence < part.upto.version:
        raise Conflict(
            f"a horizon of {part.layout.view} is announced at version {entry.fence}: stop there first"
        )
    layout, tables, version = entry.layout, entry.tables, part.upto.version
    parts = with_keys(fitted(part.rows, layout, flagged_schema(layout)), layout)
    session.load("incoming", parts)
    names = columns_of(layout)
    session.run(
        f"""INSERT INTO {tables.speed} ({names}, {REPLACES}, {GONE}, {VERSION})
        SELECT {names}, {REPLACES}, {GONE}, {version} FROM incoming"""
    )
    base = session.table(
        f"SELECT {listed_of(layout, 'n')} FROM {tables.now} n JOIN incoming i ON n.{KEY} = i.{KEY}",
        key_schema(layout),
    )
    session.load("merged", fold(layout, base, parts))
    keep_past(session, entry, "incoming", version)
    gone = session.count(f"DELETE FROM {tables.now} WHERE {KEY} IN (SELECT {KEY} FROM incoming)")
    new = session.count(f"INSERT INTO {tables.now} ({names}, {FROM}) SELECT {names}, {version} FROM merged")
    moved = replace(
        entry,
        position=part.upto,
        checked_at=max(entry.checked_at, part.upto.at),
        rows=entry.rows - gone + new,
    )
    catalog.note_move(session, moved, is_horizon=False)
    if version // PRUNED_EVERY != part.after // PRUNED_EVERY:
        moved = catalog.prune(session, moved, keep_horizons)
    catalog.save(session, moved)
    return moved


def keep_past(session: Session, entry: Entry, keys: str, version: int) -> None:
    names = listed_of(entry.layout, "n")
    session.run(
        f"""INSERT INTO {entry.tables.past} ({columns_of(entry.layout)}, {FROM}, {TO})
        SELECT {names}, n.{FROM}, {version} FROM {entry.tables.now} n JOIN {keys} k ON n.{KEY} = k.{KEY}
        WHERE n.{FROM} < {version}"""
    )


def fold(layout: Layout, base: pa.Table, parts: pa.Table) -> pa.Table:
    """The rows of the touched keys after the parts, in the order in which they are given."""
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
    """The part's rows with the layout's types, in its order; ValueError where they are others."""
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


def create_tables(session: Session, dialect: Dialect, tables: Tables, layout: Layout) -> None:
    columns = ", ".join(f'"{column.name}" {dialect.type_of(column.type)}' for column in layout.stored)
    columns = (
        f"{columns}, {KEY} {dialect.type_of('string')}" if columns else f"{KEY} {dialect.type_of('string')}"
    )
    session.run(f"CREATE TABLE {tables.now} ({columns}, {FROM} BIGINT)")
    session.run(f"CREATE TABLE {tables.past} ({columns}, {FROM} BIGINT, {TO} BIGINT)")
    session.run(
        f"CREATE TABLE {tables.speed} ({columns}, {REPLACES} BOOLEAN, {GONE} BOOLEAN, {VERSION} BIGINT)"
    )


def index_tables(session: Session, dialect: Dialect, tables: Tables, layout: Layout) -> None:
    """By key as a whole, by version where the past ends, and what questions look up."""
    session.run(f"CREATE INDEX {tables.index(0)} ON {tables.now} ({KEY})")
    session.run(f"CREATE INDEX {tables.index(1)} ON {tables.past} ({TO})")
    for number, what in enumerate(dialect.indexed(layout), 2):
        session.run(f"CREATE INDEX {tables.index(number)} ON {tables.now} {what}")


def drop_tables(session: Session, tables: Tables) -> None:
    for name in (tables.now, tables.past, tables.speed):
        session.run(f"DROP TABLE IF EXISTS {name}")
