"""The timeline: when each source, table and view ran, how long, what went in and out, and how it is now.

In: entries, one for each piece of work, and the state that a part of the pipeline is in. Out: the same,
asked by what and when. Kept as two tables in one SQLite file beside the lake, because the supervisor, both
Spark applications, serving and `status` read and write it at once, and each of them may be killed.
Does not know: Spark, or what the work was.
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
ENTRIES_MAX = 200_000  # the oldest beyond it are forgotten
TRIM_EVERY = 500


class Kind(StrEnum):
    """What did the work."""

    SOURCE = "source"
    REFINED = "refined"
    VIEW_BATCH = "view batch"
    VIEW_SPEED = "view speed"
    MAINTENANCE = "maintenance"
    COMMAND = "command"
    PROCESS = "process"


class State(StrEnum):
    """How a part of the pipeline is now."""

    STARTING = "starting"
    RUNNING = "running"
    IDLE = "idle"
    WAITING = "waiting"  # for a source that is away, a topic without data, a place on the disk
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Entry:
    """One piece of work. `run` names it among its kind: recorded again after a crash, it replaces itself."""

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
    lag: int = 0  # rows that waited in the source when the work ended
    delay_s: float = 0.0  # how old the newest event was when the work ended
    error: str = ""

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended - self.started)

    @property
    def velocity(self) -> float:
        """Rows a second while the work went on."""
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """How one part is now, since when, and in which process."""

    kind: str
    name: str
    state: str
    detail: str
    since: float
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Total:
    """All work of one part together."""

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
    """The timeline cannot be read or written; the text says which file and why."""


class Timeline:
    """The tables of one lake. Each call is a transaction of its own, so that a kill leaves it whole."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._recorded = 0
        self._is_made = False

    def record(self, entry: Entry) -> None:
        marks = ", ".join("?" * len(COLUMNS))
        with self._open() as table:
            table.execute(f"INSERT OR REPLACE INTO timeline VALUES ({marks})", astuple(entry))
            self._recorded += 1
            if self._recorded % TRIM_EVERY == 0:
                table.execute(
                    "DELETE FROM timeline WHERE ended < (SELECT ended FROM timeline"
                    f" ORDER BY ended DESC LIMIT 1 OFFSET {ENTRIES_MAX})"
                )

    def stand(self, kind: str, name: str, state: str, detail: str = "", pid: int = 0) -> None:
        """Say how a part is now; `since` moves only when its state or reason does."""
        with self._open() as table:
            table.execute(
                "INSERT INTO standing VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET"
                " since = CASE WHEN state = excluded.state AND detail = excluded.detail"
                " THEN since ELSE excluded.since END,"
                " state = excluded.state, detail = excluded.detail, pid = excluded.pid",
                (kind, name, state, detail, time.time(), pid),
            )

    def forget(self, kind: str, name: str) -> None:
        """A part that the pipeline has no longer."""
        with self._open() as table:
            table.execute("DELETE FROM standing WHERE kind = ? AND name = ?", (kind, name))

    def standings(self) -> list[Standing]:
        if not self.path.exists():
            return []
        with self._open() as table:
            return [Standing(*row) for row in table.execute("SELECT * FROM standing ORDER BY kind, name")]

    def entries(
        self, kind: str | None = None, name: str | None = None, since: float = 0.0, limit: int = ENTRIES_MAX
    ) -> list[Entry]:
        """The newest so many, oldest first."""
        if not self.path.exists():
            return []
        asked = "SELECT * FROM timeline WHERE ended >= ?"
        values: list[object] = [since]
        for column, value in (("kind", kind), ("name", name)):
            if value is not None:
                asked += f" AND {column} = ?"
                values.append(value)
        with self._open() as table:
            rows = table.execute(
                f"{asked} ORDER BY ended DESC, run DESC LIMIT ?", (*values, limit)
            ).fetchall()
        return [Entry(*row) for row in reversed(rows)]

    def totals(self) -> list[Total]:
        """All parts that did something, in the order of their names."""
        if not self.path.exists():
            return []
        sums = ", ".join(f"sum({name})" for name in COUNTED)
        with self._open() as table:
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
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction. Connections are not kept: they must not be shared by threads and forks."""
        try:
            if not self._is_made:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            table = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S)
            try:
                # A journal that stays, and no log beside the table: who reads makes no file on a full disk.
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


class Recorder:
    """A timeline for work that goes on without it: a full disk must not stop a pipeline for its diary. A
    little of the disk is kept, so that it can still be written that the rest is full."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.missed = 0
        self._reserve = timeline.path.with_name(RESERVE)

    def record(self, entry: Entry) -> None:
        self._written(lambda: self.timeline.record(entry))
        if not entry.error:
            self._keep()

    def stand(self, kind: str, name: str, state: str, detail: str = "", pid: int = 0) -> None:
        self._written(lambda: self.timeline.stand(kind, name, state, detail, pid))

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
        """Work that went well says that there is room."""
        if self._reserve.exists():
            return
        with contextlib.suppress(OSError), self._reserve.open("wb") as file:
            file.write(bytes(RESERVE_BYTES))
