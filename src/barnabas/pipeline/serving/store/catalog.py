"""The store's own two tables: the state of each view, and the versions it went through.

In: a transaction. Out: `ViewEntry`s. A view's state changes in the same transaction as its rows.
Does not know: how rows are merged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from barnabas.pipeline.serving.store.transaction import Tables, Transaction
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import Joined, TableVersion, ViewState

VERSIONS_MAX = 10_000  # of a view beyond its horizon
TABLES = (
    """CREATE TABLE IF NOT EXISTS _views (view VARCHAR, generation BIGINT, layout VARCHAR,
    horizon BIGINT, horizon_at TIMESTAMPTZ, "position" BIGINT, position_at TIMESTAMPTZ,
    checked_at TIMESTAMPTZ, oldest BIGINT, speed_since BIGINT, row_count BIGINT,
    fence BIGINT, joined VARCHAR, fence_joined VARCHAR, number BIGINT, covered BIGINT)""",
    """CREATE TABLE IF NOT EXISTS _moves (view VARCHAR, version BIGINT, version_at TIMESTAMPTZ,
    is_horizon BOOLEAN, horizon BIGINT, horizon_at TIMESTAMPTZ, joined VARCHAR, number BIGINT)""",
)
COLUMNS = """view, generation, layout, horizon, horizon_at, "position", position_at, checked_at, oldest,
    speed_since, row_count, fence, joined, fence_joined, number, covered"""


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view in the catalog. The store has its speed parts after `speed_since`, which are numbered:
    `number` is that of the last one, `covered` that of the last one before the horizon."""

    layout: Layout
    generation: int
    horizon: TableVersion
    position: TableVersion
    checked_at: datetime
    oldest: int
    speed_since: int
    rows: int
    fence: int
    joined: Joined
    fence_joined: Joined
    number: int
    covered: int = 0

    @property
    def tables(self) -> Tables:
        return Tables(self.layout.view, self.generation)

    @property
    def state(self) -> ViewState:
        return ViewState(
            self.layout.view,
            self.layout,
            self.horizon,
            self.position,
            self.checked_at,
            self.oldest,
            self.rows,
            self.fence,
            self.joined,
            self.fence_joined,
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """A view at an earlier version, for time travel."""

    version: int
    position: TableVersion
    horizon: TableVersion


def utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def upgrade(transaction: Transaction) -> None:
    """Drop the views of a store that an earlier release wrote: they are computed again."""
    named = transaction.rows(
        """SELECT column_name FROM information_schema.columns WHERE table_name = '_views'
        AND table_schema = current_schema()"""
    )
    columns = {row[0] for row in named}
    if not columns or "covered" in columns:
        return
    for view, generation in transaction.rows("SELECT view, generation FROM _views"):
        tables = Tables(view, generation)
        for name in (tables.now, tables.past, tables.speed):
            transaction.run(f"DROP TABLE IF EXISTS {name}")
    transaction.run("DROP TABLE _views")
    transaction.run("DROP TABLE _moves")


def entry_of(row: tuple[Any, ...]) -> ViewEntry:
    _, generation, layout, horizon, horizon_at, position, position_at, checked, oldest, since, rows = row[:11]
    fence, joined, fence_joined, number, covered = row[11:]
    return ViewEntry(
        Layout.from_json(layout),
        generation,
        TableVersion(horizon, utc(horizon_at)),
        TableVersion(position, utc(position_at)),
        utc(checked),
        oldest,
        since,
        rows,
        fence,
        json.loads(joined),
        json.loads(fence_joined),
        number,
        covered,
    )


def entries(transaction: Transaction) -> list[ViewEntry]:
    return list(map(entry_of, transaction.rows(f"SELECT {COLUMNS} FROM _views ORDER BY view")))


def find(transaction: Transaction, view: str) -> ViewEntry | None:
    found = transaction.rows(f"SELECT {COLUMNS} FROM _views WHERE view = ?", view)
    return entry_of(found[0]) if found else None


def save(transaction: Transaction, entry: ViewEntry) -> None:
    transaction.run("DELETE FROM _views WHERE view = ?", entry.layout.view)
    transaction.run(
        f"INSERT INTO _views ({COLUMNS}) VALUES ({', '.join('?' * 16)})",
        entry.layout.view,
        entry.generation,
        entry.layout.to_json(),
        entry.horizon.version,
        entry.horizon.at,
        entry.position.version,
        entry.position.at,
        entry.checked_at,
        entry.oldest,
        entry.speed_since,
        entry.rows,
        entry.fence,
        as_text(entry.joined),
        as_text(entry.fence_joined),
        entry.number,
        entry.covered,
    )


def as_text(joined: Joined) -> str:
    return json.dumps(dict(joined), sort_keys=True)


def note_move(transaction: Transaction, entry: ViewEntry, *, is_horizon: bool) -> None:
    transaction.run(
        "INSERT INTO _moves VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        entry.layout.view,
        entry.position.version,
        entry.position.at,
        is_horizon,
        entry.horizon.version,
        entry.horizon.at,
        as_text(entry.joined),
        entry.number,
    )


def forget(transaction: Transaction, view: str) -> None:
    transaction.run("DELETE FROM _views WHERE view = ?", view)
    transaction.run("DELETE FROM _moves WHERE view = ?", view)


def moment_at(transaction: Transaction, entry: ViewEntry, version: int) -> Moment:
    """The state of the view at a version."""
    found = transaction.rows(
        """SELECT version, version_at, horizon, horizon_at FROM _moves WHERE view = ? AND version <= ?
        ORDER BY version DESC, horizon DESC LIMIT 1""",
        entry.layout.view,
        version,
    )
    if not found:
        return Moment(version, entry.position, entry.horizon)
    reached, at, horizon, horizon_at = found[0]
    return Moment(version, TableVersion(reached, utc(at)), TableVersion(horizon, utc(horizon_at)))


def number_at(transaction: Transaction, entry: ViewEntry, version: int, joined: Joined) -> int | None:
    """The number of the last speed part when the view was at exactly these versions; None if it never was,
    so that a part may cross them."""
    found = transaction.rows(
        "SELECT max(number) FROM _moves WHERE view = ? AND version = ? AND joined = ?",
        entry.layout.view,
        version,
        as_text(joined),
    )
    number = found[0][0] if found else None
    return None if number is None else int(number)


def version_at(transaction: Transaction, view: str, at: datetime) -> int | None:
    """The newest version that was committed by then; None if all known versions are younger."""
    found = transaction.rows("SELECT max(version) FROM _moves WHERE view = ? AND version_at <= ?", view, at)
    version = found[0][0] if found else None
    return None if version is None else int(version)


def prune(transaction: Transaction, entry: ViewEntry, keep_horizons: int) -> ViewEntry:
    """Delete what is older than the last horizons, and versions beyond `VERSIONS_MAX`."""
    horizons = transaction.rows(
        "SELECT DISTINCT horizon FROM _moves WHERE view = ? ORDER BY horizon DESC LIMIT ?",
        entry.layout.view,
        keep_horizons,
    )
    oldest = max(entry.oldest, min((row[0] for row in horizons), default=entry.oldest))
    beyond = transaction.rows(
        "SELECT DISTINCT version FROM _moves WHERE view = ? ORDER BY version DESC LIMIT 1 OFFSET ?",
        entry.layout.view,
        VERSIONS_MAX,
    )
    since = entry.speed_since
    if beyond:
        oldest, since = max(oldest, beyond[0][0]), max(since, beyond[0][0])
        transaction.run(f"DELETE FROM {entry.tables.speed} WHERE _version <= ?", since)
    if oldest > entry.oldest:
        transaction.run(f"DELETE FROM {entry.tables.past} WHERE _to <= ?", oldest)
        # The last move up to the oldest version stays: it describes that version.
        transaction.run(
            """DELETE FROM _moves WHERE view = ? AND version <
            (SELECT max(version) FROM _moves WHERE view = ? AND version <= ?)""",
            entry.layout.view,
            entry.layout.view,
            oldest,
        )
    return replace(entry, oldest=oldest, speed_since=since)
