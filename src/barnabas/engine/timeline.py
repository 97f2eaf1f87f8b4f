"""The timeline: when each source, table and view ran, how long, with which counts, and its state now.

In: an entry for each run, and states. Out: entries and states by kind, name and time. Two tables in one
SQLite file beside the lake: the supervisor, both Spark applications, serving and `status` use it at once,
and each of them may be killed. Does not know: Spark, what the work is.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

FILE_NAME = "timeline.db"
RESERVE = "reserve"
RESERVE_BYTES = 1 << 20
BUSY_TIMEOUT_S = 30.0
ENTRIES_MAX = 200_000  # older entries are deleted
TRIM_EVERY = 500


class Kind(StrEnum):
    """The kind of work."""

    SOURCE = "source"
    REFINED = "refined"
    VIEW_BATCH = "view batch"
    VIEW_SPEED = "view speed"
    MAINTENANCE = "maintenance"
    COMMAND = "command"
    PROCESS = "process"


class State(StrEnum):
    """The state of a source, view, table or process."""

    STARTING = "starting"
    RUNNING = "running"
    IDLE = "idle"
    WAITING = "waiting"  # for an unavailable source, a topic without data, space on the disk
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of some work. `run` identifies it, so that recording it again after a crash replaces it."""

    kind: str
    name: str
    run: str
    started: float  # seconds since 1970
    ended: float
    rows_in: int = 0
    rows_out: int = 0
    duplicates: int = 0
    quarantined: int = 0
    late: int = 0
    bytes_in: int = 0
    lag: int = 0  # unread rows of the source when the work ended
    delay_s: float = 0.0  # age of the newest event when the work ended
    error: str = ""

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended - self.started)

    @property
    def velocity(self) -> float:
        """Rows per second of the work."""
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class CurrentState:
    """The state of one source, view, table or process, since when, and of which process."""

    kind: str
    name: str
    state: str
    detail: str
    since: float
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Total:
    """Totals of all runs of one name."""

    kind: str
    name: str
    runs: int
    failures: int
    rows_in: int
    rows_out: int
    duplicates: int
    quarantined: int
    late: int
    bytes_in: int
    seconds: float
    last: Entry | None

    @property
    def velocity(self) -> float:
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0


def total_of(row: Sequence[Any], last: Entry | None) -> Total:
    kind, name, runs, failures, rows_in, rows_out, duplicates, quarantined, late, bytes_in, seconds = row
    counts = (rows_in, rows_out, duplicates, quarantined, late, bytes_in)
    return Total(kind, name, runs, failures, *counts, seconds, last)


COLUMNS = tuple(field.name for field in fields(Entry))
COUNTED = ("rows_in", "rows_out", "duplicates", "quarantined", "late", "bytes_in")
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS timeline (
  {", ".join(f"{name} NOT NULL" for name in COLUMNS)},
  PRIMARY KEY (kind, name, run)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS timeline_by_time ON timeline (ended);
CREATE TABLE IF NOT EXISTS standing (
  kind NOT NULL, name NOT NULL, state NOT NULL, detail NOT NULL, since NOT NULL, pid NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""


class TimelineError(Exception):
    """The timeline cannot be read or written; the message says which file and why."""


class Timeline:
    """The timeline of one lake. Each call is a transaction, so that a kill leaves it consistent."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._recorded = 0
        self._is_made = False

    def record(self, entry: Entry) -> None:
        marks = ", ".join("?" * len(COLUMNS))
        with self.opened() as table:
            table.execute(f"INSERT OR REPLACE INTO timeline VALUES ({marks})", astuple(entry))
            self._recorded += 1
            if self._recorded % TRIM_EVERY == 0:
                table.execute(
                    "DELETE FROM timeline WHERE ended < (SELECT ended FROM timeline"
                    f" ORDER BY ended DESC LIMIT 1 OFFSET {ENTRIES_MAX})"
                )

    def set_state(self, kind: str, name: str, state: str, detail: str = "", pid: int = 0) -> None:
        """Set a state; `since` changes only with the state or its detail."""
        with self.opened() as table:
            table.execute(
                "INSERT INTO standing VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET"
                " since = CASE WHEN state = excluded.state AND detail = excluded.detail"
                " THEN since ELSE excluded.since END,"
                " state = excluded.state, detail = excluded.detail, pid = excluded.pid",
                (kind, name, state, detail, time.time(), pid),
            )

    def forget(self, kind: str, name: str) -> None:
        """Delete the state of something that the pipeline does not have any more."""
        with self.opened() as table:
            table.execute("DELETE FROM standing WHERE kind = ? AND name = ?", (kind, name))

    def states(self) -> list[CurrentState]:
        if not self.path.exists():
            return []
        with self.opened() as table:
            return [CurrentState(*row) for row in table.execute("SELECT * FROM standing ORDER BY kind, name")]

    def entries(
        self, kind: str | None = None, name: str | None = None, since: float = 0.0, limit: int = ENTRIES_MAX
    ) -> list[Entry]:
        """The newest entries, at most `limit`, oldest first."""
        if not self.path.exists():
            return []
        asked = "SELECT * FROM timeline WHERE ended >= ?"
        values: list[object] = [since]
        for column, value in (("kind", kind), ("name", name)):
            if value is not None:
                asked += f" AND {column} = ?"
                values.append(value)
        with self.opened() as table:
            rows = table.execute(
                f"{asked} ORDER BY ended DESC, run DESC LIMIT ?", (*values, limit)
            ).fetchall()
        return [Entry(*row) for row in reversed(rows)]

    def totals(self) -> list[Total]:
        """Totals of everything that ran, by kind and name."""
        if not self.path.exists():
            return []
        sums = ", ".join(f"sum({name})" for name in COUNTED)
        with self.opened() as table:
            rows = table.execute(
                f"SELECT kind, name, count(*), sum(error <> ''), {sums}, sum(max(0, ended - started))"
                " FROM timeline GROUP BY kind, name ORDER BY kind, name"
            ).fetchall()
            return [total_of(row, self._last(table, row[0], row[1])) for row in rows]

    @staticmethod
    def _last(table: sqlite3.Connection, kind: str, name: str) -> Entry | None:
        row = table.execute(
            "SELECT * FROM timeline WHERE kind = ? AND name = ? ORDER BY ended DESC LIMIT 1", (kind, name)
        ).fetchone()
        return None if row is None else Entry(*row)

    @contextlib.contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """One transaction on a new connection: connections must not be shared by threads and forks."""
        try:
            if not self._is_made:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            table = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S)
            try:
                # A persistent journal, no write-ahead log: a reader must not create files on a full disk.
                table.execute("PRAGMA journal_mode = PERSIST")
                if not self._is_made or not self.path.exists():
                    table.executescript(SCHEMA)
                    self._is_made = True
                table.execute("PRAGMA synchronous = NORMAL")
                with table:
                    yield table
            finally:
                table.close()
        except (sqlite3.Error, OSError) as error:
            raise TimelineError(f"the timeline {self.path} cannot be used: {error}") from error


class BestEffortTimeline:
    """A timeline whose failures do not stop the work: a full disk must not stop a pipeline because of it. A
    reserve file is deleted on a full disk, so that there is space to record that it is full."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.missed = 0
        self._reserve = timeline.path.with_name(RESERVE)

    def record(self, entry: Entry) -> None:
        self._written(lambda: self.timeline.record(entry))
        if not entry.error:
            self._keep()

    def set_state(self, kind: str, name: str, state: str, detail: str = "", pid: int = 0) -> None:
        self._written(lambda: self.timeline.set_state(kind, name, state, detail, pid))

    def _written(self, write: Callable[[], None]) -> None:
        try:
            try:
                write()
            except TimelineError:
                self._reserve.unlink(missing_ok=True)
                write()
        except (TimelineError, OSError):
            self.missed += 1

    def _keep(self) -> None:
        """Make the reserve file after successful work, which shows that there is space."""
        if self._reserve.exists():
            return
        with contextlib.suppress(OSError), self._reserve.open("wb") as file:
            file.write(bytes(RESERVE_BYTES))
