"""The ledger of a timeline that is copied: which entries the copy lacks, and which of its pages are here.

In: a timeline. Out: entries in the order in which they were recorded, until they are noted as copied. A
trigger of the database notes them, so that entries of any process and of a killed run are found. Tables of
the timeline's own file. Does not know: where the copy is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import NamedTuple

from barnabas.engine.handover.pages import COLUMNS
from barnabas.engine.timeline import CurrentState, Entry, Timeline

TABLES = (
    """CREATE TABLE unsent (
    place INTEGER PRIMARY KEY AUTOINCREMENT, kind NOT NULL, name NOT NULL, run NOT NULL)""",
    "CREATE TABLE held_pages (name PRIMARY KEY, entries NOT NULL) WITHOUT ROWID",
    "CREATE TABLE own_run (owner NOT NULL)",
    "INSERT INTO unsent (kind, name, run) SELECT kind, name, run FROM timeline ORDER BY ended",
    """CREATE TRIGGER note_unsent AFTER INSERT ON timeline
    BEGIN INSERT INTO unsent (kind, name, run) VALUES (NEW.kind, NEW.name, NEW.run); END""",
)
SELECTED = ", ".join(f"timeline.{name}" for name in COLUMNS)
MARKS = ", ".join("?" * len(COLUMNS))


class Unsent(NamedTuple):
    """Entries that the copy lacks, and their last place."""

    entries: list[Entry]
    place: int


class Ledger:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        with timeline.opened() as database:
            database.execute("BEGIN IMMEDIATE")
            there = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'note_unsent'").fetchone()
            for statement in TABLES if there is None else ():
                database.execute(statement)

    # -- what the copy lacks -----------------------------------------------------------------------

    def unsent(self, entries_max: int) -> Unsent:
        with self._timeline.opened() as database:
            rows = database.execute(
                f"SELECT unsent.place, {SELECTED} FROM unsent LEFT JOIN timeline USING (kind, name, run)"
                " ORDER BY place LIMIT ?",
                (entries_max,),
            ).fetchall()
        entries = [Entry(*row[1:]) for row in rows if row[1] is not None]  # others were deleted as old ones
        return Unsent(entries, rows[-1][0] if rows else 0)

    def note_sent(self, place: int) -> None:
        """The copy has all entries up to this place."""
        with self._timeline.opened() as database:
            database.execute("DELETE FROM unsent WHERE place <= ?", (place,))

    def send_again(self, entries: Iterable[Entry]) -> None:
        with self._timeline.opened() as database:
            database.executemany(
                "INSERT INTO unsent (kind, name, run) VALUES (?, ?, ?)",
                [(each.kind, each.name, each.run) for each in entries],
            )

    # -- what came from the copy -------------------------------------------------------------------

    def held_pages(self) -> dict[str, int]:
        """Names of pages whose entries are all here, and how many entries each has."""
        with self._timeline.opened() as database:
            return dict(database.execute("SELECT name, entries FROM held_pages").fetchall())

    def add_page(self, name: str, entries: Sequence[Entry], *, is_complete: bool) -> None:
        with self._timeline.opened() as database:
            before = last_place(database)
            database.executemany(
                f"INSERT OR REPLACE INTO timeline VALUES ({MARKS})", [astuple(each) for each in entries]
            )
            database.execute("DELETE FROM unsent WHERE place > ?", (before,))
            if is_complete:
                database.execute("INSERT OR REPLACE INTO held_pages VALUES (?, ?)", (name, len(entries)))

    def note_page(self, name: str, entries: int) -> None:
        """A page of our own run."""
        with self._timeline.opened() as database:
            database.execute("INSERT OR REPLACE INTO held_pages VALUES (?, ?)", (name, entries))

    def forget_pages(self, names: Iterable[str]) -> None:
        with self._timeline.opened() as database:
            database.executemany("DELETE FROM held_pages WHERE name = ?", [(name,) for name in names])

    def replace_states(self, states: Sequence[CurrentState]) -> None:
        with self._timeline.opened() as database:
            database.execute("DELETE FROM standing")
            database.executemany(
                "INSERT INTO standing VALUES (?, ?, ?, ?, ?, ?)", [astuple(each) for each in states]
            )

    # -- the last run of this machine --------------------------------------------------------------

    @property
    def owner(self) -> str:
        """The mark of the last run of this machine; empty if there was none."""
        with self._timeline.opened() as database:
            row = database.execute("SELECT max(owner) FROM own_run").fetchone()
        return str(row[0] or "")

    @owner.setter
    def owner(self, mark: str) -> None:
        with self._timeline.opened() as database:
            database.execute("DELETE FROM own_run")
            database.execute("INSERT INTO own_run VALUES (?)", (mark,))


def last_place(database: sqlite3.Connection) -> int:
    row = database.execute("SELECT max(place) FROM unsent").fetchone()
    return int(row[0] or 0)
