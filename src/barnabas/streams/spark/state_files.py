"""The state of one task: pages in a SQLite file of the machine that runs the task.

In: pages by store and key, as `plans.stores.StateBackend` asks for them. Out: a file that stands at one
*version*. A batch reads each page once, keeps its changes in memory, and `prepare` writes them beside the
pages. They count when the batch's offsets are committed with the same version as metadata: `settle` applies
them then, or drops them. So a process may die at any point, and the file follows what the brokers say. Does
not know: brokers, what is in a page.
"""

from __future__ import annotations

import heapq
import marshal
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PAGES_KEPT_MAX = 200_000  # pages that stay in memory between two batches
BUSY_S = 30.0
KEYS_A_QUERY = 5_000
NEW = ""  # the version of a file in which no batch has been committed
RESTORING = "restoring"  # the version of a file whose pages are being brought back

Change = tuple[str, bytes, bytes | None]

SCHEMA = """
CREATE TABLE IF NOT EXISTS pages (
    store TEXT NOT NULL, key BLOB NOT NULL, page BLOB NOT NULL, PRIMARY KEY (store, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prepared (version TEXT PRIMARY KEY, changes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class StateLost(Exception):
    """The file stands at another version than the committed one, and has no changes that lead there."""


class StateFile:
    """A `StateBackend` with versions. One process at a time may write it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        # A killed process loses nothing; a machine without power may lose the last batches, which the
        # version shows: the state is then restored from the changelogs.
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(SCHEMA)
        self._kept: dict[tuple[str, bytes], bytes | None] = {}
        self._changes: dict[tuple[str, bytes], bytes | None] = {}
        self._kept_version = self.version

    @property
    def version(self) -> str:
        """That of the last batch whose changes are applied."""
        row = self._db.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
        return NEW if row is None else str(row[0])

    # -- the port of the interpreter -------------------------------------------------------------

    def get(self, store: str, key: bytes) -> bytes | None:
        place = (store, key)
        if place in self._kept:
            return self._kept[place]
        row = self._db.execute("SELECT page FROM pages WHERE store = ? AND key = ?", place).fetchone()
        page = self._kept[place] = None if row is None else row[0]
        return page

    def get_many(self, store: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Pages in the order of their keys; those that are not in memory are read with few queries."""
        kept = self._kept
        missing = [key for key in keys if (store, key) not in kept]
        for first in range(0, len(missing), KEYS_A_QUERY):
            some = missing[first : first + KEYS_A_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, page FROM pages WHERE store = ? AND key IN ({marks})"
            kept.update(((store, key), None) for key in some)
            kept.update(((store, key), page) for key, page in self._db.execute(query, (store, *some)))
        return [kept[store, key] for key in keys]

    def put(self, store: str, key: bytes, page: bytes) -> None:
        self._kept[store, key] = self._changes[store, key] = page

    def put_many(self, store: str, pages: Iterable[tuple[bytes, bytes]]) -> None:
        changed = {(store, key): page for key, page in pages}
        self._kept.update(changed)
        self._changes.update(changed)

    def delete(self, store: str, key: bytes) -> None:
        self._kept[store, key] = self._changes[store, key] = None

    def range(self, store: str, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Pages in the order of their keys, `last` not included, the batch's own changes among them."""
        query = "SELECT key, page FROM pages WHERE store = ? AND key >= ?"
        values: list[object] = [store, first or b""]
        if last is not None:
            query += " AND key < ?"
            values.append(last)
        stored = self._db.execute(f"{query} ORDER BY key", values)
        changed = sorted(
            (key, page)
            for (name, key), page in self._changes.items()
            if name == store and key >= (first or b"") and (last is None or key < last)
        )
        overridden = {key for key, _ in changed}
        unchanged = ((key, page) for key, page in stored if key not in overridden)
        present = ((key, page) for key, page in changed if page is not None)
        return heapq.merge(unchanged, present)

    # -- versions --------------------------------------------------------------------------------

    def settle(self, committed: str) -> None:
        """Bring the file to the version that is committed. Raises StateLost where it cannot be reached."""
        self._changes.clear()
        if self.version == committed:
            if self._kept_version != committed or len(self._kept) > PAGES_KEPT_MAX:
                self._kept.clear()
            self._kept_version = committed
            return
        row = self._db.execute("SELECT changes FROM prepared WHERE version = ?", (committed,)).fetchone()
        if row is None:
            raise StateLost(
                f"the state in {self.path} stands at version {self.version or 'none'}, committed is"
                f" {committed or 'none'}"
            )
        self._apply(committed, marshal.loads(row[0]))
        self._kept.clear()
        self._kept_version = committed

    def prepare(self, version: str) -> None:
        """Keep the batch's changes, so that they can be applied when the batch is committed."""
        changes = [(store, key, page) for (store, key), page in self._changes.items()]
        self._db.execute("INSERT OR REPLACE INTO prepared VALUES (?, ?)", (version, marshal.dumps(changes)))

    def commit(self, version: str) -> None:
        """The batch is committed: apply what was prepared."""
        changes = [(store, key, page) for (store, key), page in self._changes.items()]
        self._apply(version, changes)
        self._changes.clear()
        self._kept_version = version

    def drop_changes(self) -> None:
        """The batch failed: the next one begins from the committed version."""
        self._changes.clear()
        self._kept.clear()

    def clear(self, version: str) -> None:
        """Delete all pages: the state is restored from elsewhere, and then stands at `version`."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("DELETE FROM pages")
        self._db.execute("DELETE FROM prepared")
        self._db.execute("INSERT OR REPLACE INTO facts VALUES ('version', ?)", (version,))
        self._db.execute("COMMIT")
        self._changes.clear()
        self._kept.clear()
        self._kept_version = version

    def _apply(self, version: str, changes: list[Change]) -> None:
        put = [change for change in changes if change[2] is not None]
        deleted = [(store, key) for store, key, page in changes if page is None]
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", put)
            self._db.executemany("DELETE FROM pages WHERE store = ? AND key = ?", deleted)
            self._db.execute("DELETE FROM prepared")
            self._db.execute("INSERT OR REPLACE INTO facts VALUES ('version', ?)", (version,))
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def keep_restored(self, version: str = RESTORING) -> None:
        """Write pages that were brought back. The last step gives the version at which the file stands."""
        self.commit(version)
        self._kept.clear()

    def forget(self) -> None:
        """Drop pages that are kept in memory."""
        self._kept.clear()

    def close(self) -> None:
        self._db.close()


_open: dict[Path, StateFile] = {}


def state_file(path: Path) -> StateFile:
    """The file of this process: it stays open between batches, and keeps pages in memory."""
    found = _open.get(path)
    if found is not None and not path.exists():  # a reset deleted it
        found.close()
        found = None
    if found is None:
        found = _open[path] = StateFile(path)
    return found
