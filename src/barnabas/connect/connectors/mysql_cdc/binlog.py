"""Events of the binary log: headers and the bodies that change capture needs.

In: bytes of events, without the checksum. Out: values. Rows stay bytes: `row_values` reads them with the
columns of the table. Pure.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from uuid import UUID

HEADER_BYTES = 19
QUERY, ROTATE, FORMAT, XID, TABLE_MAP = 2, 4, 15, 16, 19
HEARTBEAT, ROWS_QUERY, GTID, ANONYMOUS_GTID, HEARTBEAT_2 = 27, 29, 33, 34, 41
XA_PREPARE, PARTIAL_UPDATE, TRANSACTION_PAYLOAD, TAGGED_GTID = 38, 39, 40, 42
MARIA_ANNOTATE, MARIA_GTID = 160, 162
MARIA_COMPRESSED = (165, 166, 167, 168, 169, 170, 171)
WRITES, UPDATES, DELETES = (23, 30, 166, 169), (24, 31, 39, 167, 170), (25, 32, 168, 171)
COMMIT_TIMES = 42  # where they are in a GTID event: flags, source, number, two numbers of its order
STANDALONE = 1  # a flag of MariaDB's GTID event: one statement without BEGIN and COMMIT
ARTIFICIAL = 0x20


class Event(NamedTuple):
    """One event. `end` is the place behind it in its file, 0 for events that are not in the file."""

    timestamp_s: int
    kind: int
    server_id: int
    size: int
    end: int
    flags: int
    body: bytes

    @property
    def start(self) -> int:
        return self.end - self.size


class Rotate(NamedTuple):
    file: str
    position: int


class Query(NamedTuple):
    thread: int
    database: str
    statement: str


class TableMap(NamedTuple):
    table_id: int
    database: str
    table: str
    types: bytes
    metadata: tuple[int, ...]  # a number for each column


class Rows(NamedTuple):
    table_id: int
    op: str  # c, u, d
    columns: int
    present: bytes  # which columns images have
    present_after: bytes
    images: bytes
    is_partial: bool = False  # new JSON values may be differences


def event_of(data: bytes, *, checksum: bool) -> Event:
    """An event of the stream. `checksum`: four bytes at its end are not its content."""
    timestamp, kind, server, size, end, flags = struct.unpack_from("<IBIIIH", data)
    stop = len(data) - 4 if checksum else len(data)
    return Event(timestamp, kind, server, size, end, flags, data[HEADER_BYTES:stop])


def has_checksum(event: Event, *, raw: bytes) -> bool:
    """Whether events behind a format description have checksums: the fifth byte from its end says so."""
    return len(raw) > HEADER_BYTES + 76 and raw[-5] == 1


def rotate_of(event: Event) -> Rotate:
    return Rotate(event.body[8:].decode(), struct.unpack_from("<Q", event.body)[0])


def query_of(event: Event) -> Query:
    thread, _, size, _, status = struct.unpack_from("<IIBHH", event.body)
    start = 13 + status
    database = event.body[start : start + size].decode("utf-8", "replace")
    return Query(thread, database, event.body[start + size + 1 :].decode("utf-8", "replace"))


def mysql_gtid(event: Event) -> str:
    """`uuid:number` of a GTID event."""
    return f"{UUID(bytes=event.body[1:17])}:{struct.unpack_from('<q', event.body, 17)[0]}"


def commit_time_us(event: Event) -> int:
    """When the transaction of a GTID event was committed first; 0 where old servers do not tell."""
    if len(event.body) < COMMIT_TIMES + 7:
        return 0
    found = int.from_bytes(event.body[COMMIT_TIMES : COMMIT_TIMES + 7], "little")
    if found >> 55:  # the time at the server where it was made follows
        found = int.from_bytes(event.body[COMMIT_TIMES + 7 : COMMIT_TIMES + 14], "little")
    return found


def maria_gtid(event: Event) -> tuple[str, bool]:
    """`domain-server-sequence` of MariaDB's GTID event, and whether it stands alone."""
    sequence, domain, flags = struct.unpack_from("<QIB", event.body)
    return f"{domain}-{event.server_id}-{sequence}", bool(flags & STANDALONE)


def packed(data: bytes, place: int) -> tuple[int, int]:
    """A length-encoded number, and the place behind it."""
    first = data[place]
    if first < 251:
        return first, place + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[place + 1 : place + 1 + size], "little"), place + 1 + size


META_BYTES = {
    4: 1, 5: 1, 15: 2, 16: 2, 17: 1, 18: 1, 19: 1, 245: 1, 246: 2, 247: 2, 248: 2, 252: 1, 253: 2, 254: 2,
    255: 1, 242: 1, 243: 1, 249: 1, 250: 1, 251: 1, 140: 2, 141: 2,
}  # fmt: skip


def table_map_of(event: Event) -> TableMap:
    body = event.body
    table_id = int.from_bytes(body[:6], "little")
    size = body[8]
    database = body[9 : 9 + size].decode()
    place = 10 + size
    size = body[place]
    table = body[place + 1 : place + 1 + size].decode()
    count, place = packed(body, place + 2 + size)
    types = body[place : place + count]
    length, place = packed(body, place + count)
    meta = body[place : place + length]
    numbers, at = [], 0
    for kind in types:
        width = META_BYTES.get(kind, 0)
        # DECIMAL, STRING, ENUM and SET have the bytes in the order of their meaning, others as a number.
        order = "big" if kind in (246, 247, 248, 254) else "little"
        numbers.append(int.from_bytes(meta[at : at + width], order))  # type: ignore[arg-type]
        at += width
    return TableMap(table_id, database, table, types, tuple(numbers))


def rows_of(event: Event) -> Rows:
    body, kind = event.body, event.kind
    place = 8
    if kind in (30, 31, 32, 39):
        place += struct.unpack_from("<H", body, 8)[0]
    count, place = packed(body, place)
    width = (count + 7) // 8
    present = after = body[place : place + width]
    place += width
    op = "c" if kind in WRITES else "u" if kind in UPDATES else "d"
    if op == "u":
        after = body[place : place + width]
        place += width
    images = body[place:]
    if kind in MARIA_COMPRESSED:
        images = uncompressed(images)
    is_partial = kind == PARTIAL_UPDATE
    return Rows(int.from_bytes(body[:6], "little"), op, count, present, after, images, is_partial)


def uncompressed(data: bytes) -> bytes:
    """MariaDB's compressed content: a byte with the algorithm and the width of the length, then zlib."""
    import zlib

    width = data[0] & 0x07
    length = int.from_bytes(data[1 : 1 + width], "big")
    reader = zlib.decompressobj()
    return reader.decompress(data[1 + width :], length)


def compressed_query(event: Event) -> Query:
    """MariaDB's compressed statement."""
    thread, _, size, _, status = struct.unpack_from("<IIBHH", event.body)
    start = 13 + status
    database = event.body[start : start + size].decode("utf-8", "replace")
    return Query(thread, database, uncompressed(event.body[start + size + 1 :]).decode("utf-8", "replace"))
