"""The state of an incremental snapshot: which tables, how far, which rows of a chunk are still to be sent.

A chunk is read between two rows in the signal table, the window; with `read.only` between the place of the
stream and the end of the log behind the query. When the stream reaches the end of the window, rows of the
chunk are sent that no change of the window has touched. Pure.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.connect.connectors.debezium.filters import Lists
from barnabas.connect.connectors.debezium.signals import Signal

log = logging.getLogger(__name__)
TABLES_MAX = 10_000
ID = "incremental_snapshot_collections_id"
CONDITION = "incremental_snapshot_collections_additional_condition"
SURROGATE = "incremental_snapshot_collections_surrogate_key"
BLOCKING = "blocking_snapshot_collections"  # our own: Debezium forgets a blocking snapshot that is cut
STORED = ("incremental_snapshot_", BLOCKING)
Key = tuple[Any, ...]


@dataclass
class Chunk:
    """Rows that were read in one window, by key. `last` is the key of the last row as a query gives it."""

    table: str
    rows: dict[Key, Any]
    last: list[str]
    is_open: bool = False  # the stream is inside of the window
    name: str = ""
    end: Any = None  # with `read.only`: the place of the log where the window ends, in place of a row


@dataclass
class Incremental:
    """Tables that are still to be read, the first of them under way."""

    tables: deque[tuple[str, str | None]] = field(default_factory=deque)  # name, condition
    last: list[str] | None = None  # key of the last row that was sent
    maximum: list[str] | None = None
    chunk: Chunk | None = None
    is_paused: bool = False
    blocking: dict[str, str] = field(default_factory=dict)  # patterns, statements of some; until its end

    @staticmethod
    def of(offset: Mapping[str, Any]) -> Incremental:
        text = offset.get("incremental_snapshot_collections")
        blocking = json.loads(offset.get(BLOCKING) or "{}")
        if not text:
            return Incremental(blocking=blocking)
        found = deque((str(each[ID]), each.get(CONDITION)) for each in json.loads(text))
        return Incremental(
            found,
            key_of(offset, "incremental_snapshot_primary_key"),
            key_of(offset, "incremental_snapshot_maximum_key"),
            blocking=blocking,
        )

    @property
    def offset(self) -> tuple[tuple[str, Any], ...]:
        found: list[tuple[str, Any]] = []
        if self.blocking:
            found.append((BLOCKING, json.dumps(self.blocking)))
        if not self.tables:
            return tuple(found)
        listed = [{ID: name, CONDITION: condition, SURROGATE: None} for name, condition in self.tables]
        found.append(("incremental_snapshot_collections", json.dumps(listed)))
        if self.maximum is not None:
            found.append(("incremental_snapshot_maximum_key", json.dumps(self.maximum)))
        if self.last is not None:
            found.append(("incremental_snapshot_primary_key", json.dumps(self.last)))
        return tuple(found)

    @property
    def is_active(self) -> bool:
        return bool(self.tables) and not self.is_paused

    # -- signals -----------------------------------------------------------------------------------

    def obey(self, signal: Signal) -> None:
        """Follow a signal of a user."""
        if signal.type == "execute-snapshot":
            self._execute(signal)
        elif signal.type == "stop-snapshot":
            self._stop(signal)
        elif signal.type in ("pause-snapshot", "resume-snapshot"):
            self.is_paused = signal.type == "pause-snapshot"
        elif signal.type == "log":
            log.info("signal %s: %s", signal.id, signal.data.get("message", ""))
        else:
            log.warning("the signal %s has the type %s, which is not known", signal.id, signal.type)

    def _execute(self, signal: Signal) -> None:
        kind = str(signal.data.get("type", "INCREMENTAL")).upper()
        if kind not in ("INCREMENTAL", "BLOCKING"):
            text = "the signal %s asks for a snapshot of type %s: known are INCREMENTAL and BLOCKING"
            log.warning(text, signal.id, kind)
            return
        conditions = {
            str(each.get("data-collection")): each.get("filter")
            for each in signal.data.get("additional-conditions") or ()
            if isinstance(each, dict)
        }
        if kind == "BLOCKING":
            names = [str(each) for each in signal.data.get("data-collections") or ()][:TABLES_MAX]
            chosen = Lists(names)
            selects = {each: str(text) for each, text in conditions.items() if text and chosen.wants(each)}
            self.blocking |= (dict.fromkeys(names, "") | selects) if names else {}
            return
        waiting = {name for name, _ in self.tables}
        for each in signal.data.get("data-collections") or ():
            name = str(each)
            if name not in waiting and len(self.tables) < TABLES_MAX:
                self.tables.append((name, conditions.get(name)))

    def _stop(self, signal: Signal) -> None:
        names = [str(each) for each in signal.data.get("data-collections") or ()]
        if not names or (self.tables and self.tables[0][0] in names):
            self.last = self.maximum = self.chunk = None
        self.tables = deque(each for each in self.tables if names and each[0] not in names)

    # -- windows -----------------------------------------------------------------------------------

    def next_table(self) -> None:
        """The table under way is complete."""
        self.tables.popleft()
        self.last = self.maximum = self.chunk = None

    def opened(self, name: str) -> None:
        if self.chunk is not None and self.chunk.name == name:
            self.chunk.is_open = True

    def touched(self, table: str, key: Key) -> None:
        """A change of the window wins over the chunk's row."""
        if self.chunk is not None and self.chunk.is_open and self.chunk.table == table:
            self.chunk.rows.pop(key, None)

    def ended(self, place: Any) -> str | None:
        """The name of the chunk whose window ends before a place of the log."""
        chunk = self.chunk
        return None if chunk is None or chunk.end is None or place < chunk.end else chunk.name

    def closed(self, name: str) -> Chunk | None:
        """The chunk whose window ends here; its rows are sent now."""
        chunk = self.chunk
        if chunk is None or chunk.name != name:
            return None
        self.chunk = None
        self.last = chunk.last
        return chunk


def key_of(offset: Mapping[str, Any], name: str) -> list[str] | None:
    """A key that this connector has stored. Java's serialized keys are not read: the table begins again."""
    try:
        found = json.loads(offset.get(name) or "null")
    except ValueError:
        return None
    return [str(each) for each in found] if isinstance(found, list) else None
