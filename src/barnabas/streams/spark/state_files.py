"""The state of one task: pages in a SQLite file of the machine that runs the task.

In: pages by store and key, as `plans.stores.StateBackend` asks for them. Out: a file that stands at one
*version*. A batch reads each page once, keeps its changes in memory, and `prepare` writes them beside the
pages. They count when the batch's offsets are committed with the same version as metadata: `settle` makes a
*step* of them then, or drops them. So a process may die at any point, and the file follows what the brokers
say. Steps wait beside the table of pages: a page that changes in each batch is written to the table seldom,
and a process whose turn comes again reads only the steps that it has not seen. Does not know: brokers, what
is in a page.
"""

from __future__ import annotations

import heapq
import marshal
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from barnabas.streams.spark.kept_pages import Changes, KeptPages, Row

CHANGES_WAITING_MAX = 150_000  # of steps that are not in the table of pages yet
BYTES_WAITING_MAX = 64 * 1024 * 1024
PART_BYTES = 16 * 1024 * 1024  # of a batch's changes in a row: SQLite takes no value of a gigabyte
STEPS_MAX = 32
BUSY_S = 30.0
PAGE_BYTES = 16 * 1024  # of SQLite: a step of a batch is some hundred kilobytes in one row
LOG_BYTES = 64 * 1024 * 1024  # of changes before SQLite copies them into the file, which a batch waits for
KEYS_A_QUERY = 5_000
NEW = ""  # the version of a file in which no batch has been committed
RESTORING = "restoring"  # the version of a file whose pages are being brought back

SCHEMA = """
CREATE TABLE IF NOT EXISTS pages (
    store TEXT NOT NULL, key BLOB NOT NULL, page BLOB NOT NULL, PRIMARY KEY (store, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS parts (
    version TEXT NOT NULL, part INTEGER NOT NULL, changes BLOB NOT NULL, PRIMARY KEY (version, part)
);
CREATE TABLE IF NOT EXISTS steps (number INTEGER PRIMARY KEY, version TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
HAS_PREPARED = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'prepared'"


class StateLost(Exception):
    """The file stands at another version than the committed one, and has no changes that lead there."""


class StateFile:
    """A `StateBackend` with versions. One process at a time may write it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        self._db.execute(f"PRAGMA page_size={PAGE_BYTES}")  # a file that is there keeps its own
        self._db.execute("PRAGMA journal_mode=WAL")
        (page_bytes,) = self._db.execute("PRAGMA page_size").fetchone()
        self._db.execute(f"PRAGMA wal_autocheckpoint={LOG_BYTES // page_bytes}")
        # A killed process loses nothing; a machine without power may lose the last batches, which the
        # version shows: the state is then restored from the changelogs.
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(SCHEMA)
        self._memory = KeptPages()
        self.records_restored = 0  # from changelogs
        self._seen = 0  # the last step that is in memory
        self._has_ranges = False
        self._take_over_prepared()
        self._catch_up()

    def _take_over_prepared(self) -> None:
        """Files of earlier versions have the changes of a batch in one row of another table."""
        if self._db.execute(HAS_PREPARED).fetchone() is None:
            return
        with self._transaction():
            if self._db.execute(HAS_PREPARED).fetchone() is not None:
                self._db.execute("INSERT INTO parts SELECT version, 0, changes FROM prepared")
                self._db.execute("DROP TABLE prepared")

    @property
    def version(self) -> str:
        """The version of the last committed batch."""
        return self._fact("version") or NEW

    def _fact(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    @property
    def _step(self) -> int:
        """The number of the last step, also where it is in the table already."""
        return int(self._fact("step") or 0)

    # -- the port of the interpreter -------------------------------------------------------------

    def get(self, store: str, key: bytes) -> bytes | None:
        kept = self._memory.of(store)
        if key in kept or not self._memory.missing(store, (key,)):
            return kept[key]
        found = self._db.execute("SELECT page FROM pages WHERE store = ? AND key = ?", (store, key))
        row = found.fetchone()
        page: bytes | None = None if row is None else row[0]
        self._memory.keep(store, {key: page})
        return page

    def get_many(self, store: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Pages in the order of their keys; those that are not in memory are read with few queries."""
        kept = self._memory.of(store)
        try:
            return list(map(kept.__getitem__, keys))  # mostly all are at hand
        except KeyError:
            missing = self._memory.missing(store, keys)
        for first in range(0, len(missing), KEYS_A_QUERY):
            some = missing[first : first + KEYS_A_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, page FROM pages WHERE store = ? AND key IN ({marks})"
            pages: dict[bytes, bytes | None] = dict.fromkeys(some)
            pages.update(self._db.execute(query, (store, *some)))
            self._memory.keep(store, pages)
        return [kept[key] for key in keys]

    def put(self, store: str, key: bytes, page: bytes) -> None:
        self._memory.put_one(store, key, page)

    def put_many(self, store: str, pages: Iterable[tuple[bytes, bytes]]) -> None:
        self._memory.put(store, dict(pages))

    def delete(self, store: str, key: bytes) -> None:
        self._memory.put_one(store, key, None)

    def range(self, store: str, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Pages in the order of their keys, `last` not included, the batch's own changes among them."""
        self._has_ranges = True  # the batch's step goes to the table at once
        if self._memory.count_of_steps:
            with self._transaction():
                self._apply_steps()
        query = "SELECT key, page FROM pages WHERE store = ? AND key >= ?"
        values: list[object] = [store, first or b""]
        if last is not None:
            query += " AND key < ?"
            values.append(last)
        stored = self._db.execute(f"{query} ORDER BY key", values)
        changed = sorted(
            (key, page)
            for key, page in self._memory.changes.get(store, {}).items()
            if key >= (first or b"") and (last is None or key < last)
        )
        overridden = {key for key, _ in changed}
        unchanged = ((key, page) for key, page in stored if key not in overridden)
        present = ((key, page) for key, page in changed if page is not None)
        return heapq.merge(unchanged, present)

    # -- versions --------------------------------------------------------------------------------

    def settle(self, committed: str) -> None:
        """Bring the file to the version that is committed. Raises StateLost where it cannot be reached."""
        if self._memory.changes:
            self._memory.forget()
        if self.version != committed:
            query = "SELECT 1 FROM parts WHERE version = ?"
            if self._db.execute(query, (committed,)).fetchone() is None:
                raise StateLost(
                    f"the state in {self.path} stands at version {self.version or 'none'}, committed is"
                    f" {committed or 'none'}"
                )
            with self._transaction():
                self._add_step(committed)
        self._catch_up()
        self._memory.age()

    def _catch_up(self) -> None:
        """Bring steps into memory that another process has committed."""
        if self._step == self._seen:
            return
        numbers = [number for (number,) in self._db.execute("SELECT number FROM steps ORDER BY number")]
        first = numbers[0] if numbers else self._step + 1
        if first > self._seen + 1:  # some are in the table already: what is in memory may be older
            self._memory.clear()
            self._seen = first - 1
        self._memory.drop_before(first)
        query = "SELECT number, changes FROM steps JOIN parts USING (version) WHERE number > ?"
        rows = self._db.execute(f"{query} ORDER BY number, part", (self._seen,))
        for number, parts in groupby(rows, key=itemgetter(0)):
            self._memory.add_step(number, _together(marshal.loads(part) for _, part in parts))
        self._seen = self._step

    @property
    def has_changes(self) -> bool:
        """Whether pages were changed that no batch has committed."""
        return bool(self._memory.changes)

    def prepare(self, version: str) -> None:
        """Keep the batch's changes, so that they count when the batch is committed."""
        with self._transaction():
            self._db.execute("DELETE FROM parts WHERE version = ?", (version,))
            parts = ((version, number, part) for number, part in enumerate(_parts_of(self._memory.changes)))
            self._db.executemany("INSERT INTO parts VALUES (?, ?, ?)", parts)

    def commit(self, version: str) -> None:
        """The batch is committed: what was prepared is the next step."""
        with self._transaction():
            number = self._add_step(version)
            if number != self._seen + 1:
                raise StateLost(f"another process has changed the state in {self.path}")
            self._memory.add_step(number, self._memory.changes)
            self._memory.changes = {}
            self._seen = number
            if self._has_ranges:
                self._apply_steps()
                self._has_ranges = False
            else:
                self._apply_steps(CHANGES_WAITING_MAX, STEPS_MAX, BYTES_WAITING_MAX)

    def drop_changes(self) -> None:
        """The batch failed: the next one begins from the committed version."""
        self._memory.forget()

    def clear(self, version: str) -> None:
        """Delete all pages: the state is restored from elsewhere, and then stands at `version`."""
        with self._transaction():
            for table in ("pages", "parts", "steps"):
                self._db.execute(f"DELETE FROM {table}")
            self._memory.clear()
            self._skip_to(version)

    def keep(self, version: str = RESTORING) -> None:
        """Write the changes to the table at once: pages of a state that is brought back, and of views."""
        with self._transaction():
            self._apply_steps()
            self._write(
                (store, *each) for store, pages in self._memory.changes.items() for each in pages.items()
            )
            self._memory.clear()
            self._skip_to(version)

    def _skip_to(self, version: str) -> None:
        """A version that no step leads to: other processes have to read anew."""
        self._seen = self._step + 1
        self._set_facts(version, self._seen)

    def _add_step(self, version: str) -> int:
        number = self._step + 1
        self._db.execute("INSERT INTO steps VALUES (?, ?)", (number, version))
        self._db.execute("DELETE FROM parts WHERE version NOT IN (SELECT version FROM steps)")
        self._set_facts(version, number)
        return number

    def _set_facts(self, version: str, step: int) -> None:
        facts = [("version", version), ("step", str(step))]
        self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts)

    def _apply_steps(self, waiting_max: int = 0, steps_max: int = 0, bytes_max: int = 0) -> None:
        """Write the oldest steps to the table, until so much waits; else all."""
        # Another process may have written steps that this one keeps: over newer pages they must not go.
        first = self._db.execute("SELECT min(number) FROM steps").fetchone()[0]
        self._memory.drop_before(self._step + 1 if first is None else first)
        before = self._memory.count_of_steps
        self._write(self._memory.take_steps(waiting_max, steps_max, bytes_max))
        if applied := before - self._memory.count_of_steps:
            query = "DELETE FROM steps WHERE number IN (SELECT number FROM steps ORDER BY number LIMIT ?)"
            self._db.execute(query, (applied,))
            self._db.execute("DELETE FROM parts WHERE version NOT IN (SELECT version FROM steps)")

    def _write(self, rows: Iterable[Row]) -> None:
        some = sorted(rows, key=_place)
        put = (row for row in some if row[2] is not None)
        self._db.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", put)
        deleted = (row[:2] for row in some if row[2] is None)
        self._db.executemany("DELETE FROM pages WHERE store = ? AND key = ?", deleted)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")  # a full disk shows here at the latest
        except BaseException:
            self._memory.clear()  # it may be ahead of the file
            self._seen = -1
            if self._db.in_transaction:  # SQLite itself rolls back after some errors
                self._db.execute("ROLLBACK")
            raise

    def forget(self) -> None:
        """Drop pages that can be read again."""
        self._memory.forget()

    def close(self) -> None:
        self._db.close()


def _parts_of(changes: Changes) -> Iterator[bytes]:
    """A batch's changes in bytes, at least one part."""
    part: Changes = {}
    size = 0
    for store, pages in changes.items():
        for key, page in pages.items():
            if size > PART_BYTES:
                yield marshal.dumps(part)
                part, size = {}, 0
            part.setdefault(store, {})[key] = page
            size += len(key) + len(page or b"")
    yield marshal.dumps(part)


def _together(parts: Iterable[Changes]) -> Changes:
    found: Changes = {}
    for part in parts:
        for store, pages in part.items():
            found.setdefault(store, {}).update(pages)
    return found


def _place(row: Row) -> tuple[str, bytes]:
    return row[0], row[1]


_open: dict[Path, StateFile] = {}


def state_file(path: Path, make: type[StateFile] = StateFile) -> StateFile:
    """The file of this process: it stays open between batches, and keeps pages in memory."""
    found = _open.get(path)
    if found is not None and not path.exists():  # a reset deleted it
        found.close()
        found = None
    if found is None:
        found = _open[path] = make(path)
    return found
