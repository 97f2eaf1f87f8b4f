"""Offsets of the connector in Debezium's form: a file and a place, events and rows to leave out, GTIDs. Pure.

`file` and `pos` are where the transaction begins whose changes come next; `event` and `row` say how much of
it was sent. A snapshot that is not complete has no place to go on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from barnabas.connect.connectors.debezium.incremental import STORED


@dataclass(frozen=True, slots=True)
class Place:
    file: str = ""
    pos: int = 0
    event: int = 0  # events of the transaction that were sent, from its BEGIN on
    row: int = 0  # rows of the next event that were sent
    gtids: str = ""  # all that were complete before this transaction
    server_id: int = 0
    time_s: int = 0
    snapshot: str = ""  # INITIAL while a snapshot is not complete
    more: tuple[tuple[str, Any], ...] = ()  # of an incremental snapshot, of transactions

    @staticmethod
    def of(offset: dict[str, Any]) -> Place:
        unfinished = offset.get("snapshot") if not offset.get("snapshot_completed") else ""
        text = "" if str(unfinished).lower() in ("none", "", "false") else str(unfinished)
        return Place(
            str(offset.get("file") or ""),
            int(offset.get("pos") or 0),
            int(offset.get("event") or 0),
            int(offset.get("row") or 0),
            str(offset.get("gtids") or "").replace("\n", ""),
            int(offset.get("server_id") or 0),
            int(offset.get("ts_sec") or 0),
            text,
            tuple((name, value) for name, value in sorted(offset.items()) if name.startswith(MORE)),
        )

    @property
    def offset(self) -> dict[str, Any]:
        found: dict[str, Any] = {"ts_sec": self.time_s, "file": self.file, "pos": self.pos}
        if self.gtids:
            found["gtids"] = self.gtids
        if self.snapshot:
            found |= {"snapshot": self.snapshot, "snapshot_completed": False}
        if self.event or self.row:
            found |= {"row": self.row, "event": self.event}
        if self.server_id:
            found["server_id"] = self.server_id
        return found | dict(self.more)

    def begun(self, file: str, pos: int) -> Place:
        return replace(self, file=file, pos=pos, event=0, row=0)

    def after_row(self, event: int, row: int, *, is_last: bool) -> Place:
        return replace(self, event=event + is_last, row=0 if is_last else row)

    def committed(self, file: str, pos: int, gtids: str) -> Place:
        return replace(self, file=file, pos=pos, event=0, row=0, gtids=gtids)

    @property
    def order(self) -> tuple[str, int]:
        """Places compare by this within one server. Names of files grow with their numbers."""
        return self.file, self.pos


MORE = (*STORED, "transaction_")


def purged(found: Place | None) -> str:
    """The text for a place whose log the server has deleted."""
    place = found or Place()
    return (
        f"the server no longer has the log behind {place.file}:{place.pos} {place.gtids}:"
        " take snapshot.mode=when_needed, or reset the offsets of this connector"
    )


def with_gtid(gtids: str, gtid: str) -> str:
    """A set with one more. MariaDB's sets have the last number of each domain, MySQL's have intervals."""
    if not gtid:
        return gtids
    if gtid.count("-") == 2 and ":" not in gtid:
        domains = {each.split("-")[0]: each for each in gtids.split(",") if each}
        domains[gtid.split("-")[0]] = gtid
        return ",".join(domains[each] for each in sorted(domains, key=int))
    source, _, number = gtid.rpartition(":")
    sources = dict(each.partition(":")[::2] for each in gtids.split(",") if each)
    spans = [
        tuple(map(int, (each.split("-") * 2)[:2])) for each in sources.get(source, "").split(":") if each
    ]
    spans.append((int(number), int(number)))
    merged: list[list[int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    sources[source] = ":".join(str(low) if low == high else f"{low}-{high}" for low, high in merged)
    return ",".join(f"{name}:{span}" for name, span in sorted(sources.items()))
