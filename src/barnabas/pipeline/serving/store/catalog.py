"""The store's own two tables: where each view stands, and which versions it went through when.

In: a session (one transaction). Out: `Entry`s. Positions change in the same transaction as the rows they
speak of. Does not know: how rows are merged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from barnabas.pipeline.serving.store.session import Session, Tables
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import Position, ViewState

VERSIONS_MAX = 10_000  # how many versions beyond the horizon are kept, at most
TABLES = (
    """CREATE TABLE IF NOT EXISTS _views (view VARCHAR PRIMARY KEY, generation BIGINT, layout VARCHAR,
    horizon BIGINT, horizon_at TIMESTAMPTZ, "position" BIGINT, position_at TIMESTAMPTZ,
    checked_at TIMESTAMPTZ, oldest BIGINT, speed_since BIGINT, row_count BIGINT,
    fence BIGINT)""",
    """CREATE TABLE IF NOT EXISTS _moves (view VARCHAR, version BIGINT, version_at TIMESTAMPTZ,
    is_horizon BOOLEAN, horizon BIGINT, horizon_at TIMESTAMPTZ)""",
    "CREATE INDEX IF NOT EXISTS _moves_index ON _moves (view)",
)
COLUMNS = """view, generation, layout, horizon, horizon_at, "position", position_at, checked_at, oldest,
    speed_since, row_count, fence"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A view in the catalog. Speed parts are there from `speed_since` (exclusive) on."""

    layout: Layout
    generation: int
    horizon: Position
    position: Position
    checked_at: datetime
    oldest: int
    speed_since: int
    rows: int
    fence: int

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
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """What a view was at a version: asked for by time travel."""

    version: int
    position: Position
    horizon: Position


def utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def entry_of(row: tuple[Any, ...]) -> Entry:
    _, generation, layout, horizon, horizon_at, position, position_at, checked, oldest, since, rows, fence = (
        row
    )
    return Entry(
        Layout.from_json(layout),
        generation,
        Position(horizon, utc(horizon_at)),
        Position(position, utc(position_at)),
        utc(checked),
        oldest,
        since,
        rows,
        fence,
    )


def entries(session: Session) -> list[Entry]:
    return list(map(entry_of, session.rows(f"SELECT {COLUMNS} FROM _views ORDER BY view")))


def find(session: Session, view: str) -> Entry | None:
    found = session.rows(f"SELECT {COLUMNS} FROM _views WHERE view = ?", view)
    return entry_of(found[0]) if found else None


def save(session: Session, entry: Entry) -> None:
    session.run("DELETE FROM _views WHERE view = ?", entry.layout.view)
    session.run(
        f"INSERT INTO _views ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
    )


def note_move(session: Session, entry: Entry, *, is_horizon: bool) -> None:
    session.run(
        "INSERT INTO _moves VALUES (?, ?, ?, ?, ?, ?)",
        entry.layout.view,
        entry.position.version,
        entry.position.at,
        is_horizon,
        entry.horizon.version,
        entry.horizon.at,
    )


def forget(session: Session, view: str) -> None:
    session.run("DELETE FROM _views WHERE view = ?", view)
    session.run("DELETE FROM _moves WHERE view = ?", view)


def moment_at(session: Session, entry: Entry, version: int) -> Moment:
    """The last move up to a version."""
    found = session.rows(
        """SELECT version, version_at, horizon, horizon_at FROM _moves WHERE view = ? AND version <= ?
        ORDER BY version DESC, horizon DESC LIMIT 1""",
        entry.layout.view,
        version,
    )
    if not found:
        return Moment(version, entry.position, entry.horizon)
    reached, at, horizon, horizon_at = found[0]
    return Moment(version, Position(reached, utc(at)), Position(horizon, utc(horizon_at)))


def was_at(session: Session, entry: Entry, version: int) -> bool:
    """Whether the view stood at this very version once: no speed part lies across it."""
    if version in (entry.horizon.version, entry.position.version):
        return True
    return bool(
        session.rows(
            "SELECT 1 FROM _moves WHERE view = ? AND version = ? LIMIT 1", entry.layout.view, version
        )
    )


def version_at(session: Session, view: str, at: datetime) -> int | None:
    """The newest version that had been committed at a time; None if all that are kept are younger."""
    found = session.rows("SELECT max(version) FROM _moves WHERE view = ? AND version_at <= ?", view, at)
    version = found[0][0] if found else None
    return None if version is None else int(version)


def prune(session: Session, entry: Entry, keep_horizons: int) -> Entry:
    """Forgets what lies before the last horizons, and what is more than the bound beyond."""
    horizons = session.rows(
        "SELECT DISTINCT horizon FROM _moves WHERE view = ? ORDER BY horizon DESC LIMIT ?",
        entry.layout.view,
        keep_horizons,
    )
    oldest = max(entry.oldest, min((row[0] for row in horizons), default=entry.oldest))
    beyond = session.rows(
        "SELECT DISTINCT version FROM _moves WHERE view = ? ORDER BY version DESC LIMIT 1 OFFSET ?",
        entry.layout.view,
        VERSIONS_MAX,
    )
    since = entry.speed_since
    if beyond:
        oldest, since = max(oldest, beyond[0][0]), max(since, beyond[0][0])
        session.run(f"DELETE FROM {entry.tables.speed} WHERE _version <= ?", since)
    if oldest > entry.oldest:
        session.run(f"DELETE FROM {entry.tables.past} WHERE _to <= ?", oldest)
        # The last move up to the oldest version stays: it says what that version was.
        session.run(
            """DELETE FROM _moves WHERE view = ? AND version <
            (SELECT max(version) FROM _moves WHERE view = ? AND version <= ?)""",
            entry.layout.view,
            entry.layout.view,
            oldest,
        )
    return replace(entry, oldest=oldest, speed_since=since)
