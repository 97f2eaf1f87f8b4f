"""Messages of PostgreSQL's output plugin pgoutput, protocol version 1, and frames of the replication stream.

In: bytes. Out: values. Texts of columns stay texts: `types` reads them. Pure.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

POSTGRES_EPOCH_US = 946_684_800_000_000  # 2000-01-01 in microseconds since 1970
UNCHANGED = object()  # a TOASTed value that the update left alone
Tuple = tuple[object, ...]  # str, None or UNCHANGED


class RelationColumn(NamedTuple):
    name: str
    type_oid: int
    modifier: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    oid: int
    schema: str
    table: str
    identity: str  # d default, n nothing, f full, i index
    columns: tuple[RelationColumn, ...]


class Begin(NamedTuple):
    final_lsn: int
    time_us: int
    xid: int


class Commit(NamedTuple):
    lsn: int
    end_lsn: int
    time_us: int


class RowChange(NamedTuple):
    op: str  # c, u, d
    oid: int
    old: Tuple | None
    new: Tuple | None
    old_is_key: bool = False


class Truncate(NamedTuple):
    oids: tuple[int, ...]


class Origin(NamedTuple):
    """The server where the transaction was made, and its place in the log there."""

    lsn: int
    name: str


class LogicalMessage(NamedTuple):
    is_transactional: bool
    prefix: str
    content: bytes


class Frame(NamedTuple):
    """A `w` frame: a message at its place in the log."""

    lsn: int
    payload: bytes


class Keepalive(NamedTuple):
    lsn: int
    wants_reply: bool


Message = Relation | Origin | Begin | Commit | RowChange | Truncate | LogicalMessage


def frame_of(data: bytes) -> Frame | Keepalive | None:
    if data[:1] == b"w":
        return Frame(struct.unpack_from(">q", data, 1)[0], data[25:])
    if data[:1] == b"k":
        return Keepalive(struct.unpack_from(">q", data, 1)[0], data[17] == 1)
    return None


def feedback(lsn: int, now_us: int, *, wants_reply: bool = False) -> bytes:
    """A standby status update: everything before `lsn` is durable elsewhere."""
    return struct.pack(">cqqqqb", b"r", lsn, lsn, lsn, now_us - POSTGRES_EPOCH_US, wants_reply)


class Reader:
    """Reads fields of one message in order."""

    __slots__ = ("data", "place")

    def __init__(self, data: bytes, place: int = 1) -> None:
        self.data = data
        self.place = place

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        found: int = struct.unpack_from(form, self.data, self.place)[0]
        self.place += size
        return found

    def letter(self) -> str:
        self.place += 1
        return chr(self.data[self.place - 1])

    def text(self) -> str:
        end = self.data.index(0, self.place)
        found = self.data[self.place : end].decode()
        self.place = end + 1
        return found

    def row(self) -> Tuple:
        values: list[object] = []
        for _ in range(self.number(">h")):
            kind = self.letter()
            if kind == "n":
                values.append(None)
            elif kind == "u":
                values.append(UNCHANGED)
            else:
                size = self.number(">i")
                values.append(self.data[self.place : self.place + size].decode())
                self.place += size
        return tuple(values)


def decode(payload: bytes) -> Message | None:
    """A message; None for kinds that carry no changes (types)."""
    reader = Reader(payload)
    kind = payload[:1]
    if kind == b"I":
        oid = reader.number(">I")
        reader.letter()
        return RowChange("c", oid, None, reader.row())
    if kind in (b"U", b"D"):
        return changed(reader, kind)
    if kind == b"B":
        return Begin(reader.number(">q"), reader.number(">q") + POSTGRES_EPOCH_US, reader.number(">I"))
    if kind == b"C":
        reader.number(">b")
        return Commit(reader.number(">q"), reader.number(">q"), reader.number(">q") + POSTGRES_EPOCH_US)
    if kind == b"R":
        return relation(reader)
    if kind == b"O":
        return Origin(reader.number(">q"), reader.text())
    if kind == b"T":
        count = reader.number(">i")
        reader.number(">b")
        return Truncate(tuple(reader.number(">I") for _ in range(count)))
    if kind == b"M":
        flags = reader.number(">b")
        reader.number(">q")
        prefix = reader.text()
        size = reader.number(">i")
        return LogicalMessage(bool(flags & 1), prefix, payload[reader.place : reader.place + size])
    return None


def changed(reader: Reader, kind: bytes) -> RowChange:
    oid = reader.number(">I")
    letter = reader.letter()
    old, is_key = None, letter == "K"
    if letter in "KO":
        old = reader.row()
        if kind == b"D":
            return RowChange("d", oid, old, None, is_key)
        reader.letter()
    return RowChange("u", oid, old, reader.row(), is_key)


def relation(reader: Reader) -> Relation:
    oid, schema, table, identity = reader.number(">I"), reader.text(), reader.text(), reader.letter()
    columns = []
    for _ in range(reader.number(">h")):
        flags, name = reader.number(">b"), reader.text()
        columns.append(RelationColumn(name, reader.number(">I"), reader.number(">i"), bool(flags & 1)))
    return Relation(oid, schema, table, identity, tuple(columns))
