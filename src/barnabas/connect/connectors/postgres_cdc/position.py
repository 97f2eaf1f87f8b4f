"""Offsets of the connector, in Debezium's form, and which transactions a snapshot has seen. Pure.

A snapshot and the stream meet without a gap: the slot exists before the snapshot begins, and transactions
that the snapshot has seen (by `pg_current_snapshot`) are left out of the stream.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from barnabas.connect.connectors.debezium.incremental import STORED

XID_MASK = 0xFFFFFFFF
MORE = (*STORED, "transaction_")


@dataclass(frozen=True, slots=True)
class SeenTransactions:
    """The answer of `pg_current_snapshot`, and a place in the log behind all that it had seen."""

    xmin: int
    xmax: int
    running: frozenset[int]
    lsn: int

    @staticmethod
    def of(text: str, lsn: int) -> SeenTransactions:
        xmin, xmax, running = text.split(":")
        numbers = frozenset(int(each) & XID_MASK for each in running.split(",") if each)
        return SeenTransactions(int(xmin), int(xmax), numbers, lsn)

    @property
    def text(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, sorted(self.running)))}"

    def has(self, xid: int, commit_lsn: int) -> bool:
        """Whether the snapshot has this transaction. Ids of the stream have 32 bits and wrap around."""
        if commit_lsn > self.lsn or xid in self.running:
            return False
        behind = (self.xmax - xid) & XID_MASK
        return 0 < behind < 1 << 31


@dataclass(frozen=True, slots=True)
class Place:
    """How far the stream was read: `commit` is behind the last whole transaction, `event` the last change,
    `events` the changes at that place of the log so far."""

    commit: int = 0
    event: int = 0
    events: int = 0
    xid: int = 0
    time_us: int = 0
    seen: SeenTransactions | None = None
    snapshot: str = ""  # INITIAL while a snapshot is not complete
    more: tuple[tuple[str, Any], ...] = ()  # of an incremental snapshot, of a transaction
    last: int = 0  # behind the last transaction; `commit` also moves without one

    @staticmethod
    def of(offset: dict[str, Any]) -> Place:
        processed = int(offset.get("lsn_proc", offset.get("lsn", 0)) or 0)
        seen = None
        if offset.get("snapshot_seen"):
            seen = SeenTransactions.of(str(offset["snapshot_seen"]), int(offset["snapshot_lsn"]))
        unfinished = str(offset.get("snapshot", "")) if not offset.get("snapshot_completed") else ""
        return Place(
            int(offset.get("lsn_commit") or processed),
            processed,
            int(offset.get("lsn_events_processed", 0)),
            int(offset.get("txId") or 0),
            int(offset.get("ts_usec") or 0),
            seen,
            "" if unfinished in ("", "false", "None") else unfinished,
            tuple((name, value) for name, value in sorted(offset.items()) if name.startswith(MORE)),
            int(offset.get("lsn_commit") or 0),
        )

    @property
    def last_commit(self) -> str:
        """The last commit as JSON: a text, or null where the stream has just begun."""
        return f'"{self.last}"' if self.last else "null"

    @property
    def offset(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "lsn": self.event,
            "lsn_proc": self.event,
            "lsn_commit": self.commit,
            "lsn_events_processed": self.events,
            "txId": self.xid,
            "ts_usec": self.time_us,
        }
        if self.snapshot:
            found |= {"snapshot": self.snapshot, "snapshot_completed": False}
        if self.seen is not None:
            found |= {"snapshot_seen": self.seen.text, "snapshot_lsn": self.seen.lsn}
        return found | dict(self.more)

    def has(self, xid: int, commit_lsn: int) -> bool:
        """Whether the snapshot has this transaction."""
        return self.seen is not None and self.seen.has(xid, commit_lsn)

    def after_event(self, lsn: int, xid: int) -> Place:
        return replace(
            self, event=lsn, xid=xid, events=self.events + 1 if lsn == self.event and xid == self.xid else 1
        )

    def after_commit(self, end_lsn: int, time_us: int) -> Place:
        seen = self.seen if self.seen is not None and end_lsn <= self.seen.lsn else None
        return replace(
            self, commit=end_lsn, event=end_lsn, events=0, time_us=time_us, seen=seen, last=end_lsn
        )

    def after_quiet(self, lsn: int) -> Place:
        """The log was read to there, and had nothing that is captured."""
        return replace(self.after_commit(lsn, self.time_us), last=self.last)


class Resume:
    """Says which changes of the first transaction after a restart were sent before."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._count = 0
        self._is_over = place.events == 0  # LSNs of changes may be behind commits of others

    def was_sent(self, xid: int, lsn: int) -> bool:
        if self._is_over or xid != self._place.xid:
            return False
        if lsn < self._place.event:
            return True
        if lsn == self._place.event:
            self._count += 1
            return self._count <= self._place.events
        return False

    def committed(self) -> None:
        self._is_over = True
