"""Compressed transactions of MySQL (`binlog_transaction_compression`): the events inside of one event.

In: the body of a TRANSACTION_PAYLOAD event. Out: its events one by one, so that a large transaction is never
in memory as a whole. Does not know: what events mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from barnabas.connect.connectors.mysql_cdc.binlog import HEADER_BYTES, Event, event_of, packed
from barnabas.connect.plugins import ConnectError

END_OF_FIELDS, SIZE, ALGORITHM = 0, 1, 2
ZSTD, NONE = 0, 255
SIZE_PLACE = 9  # of an event's size in its header


def events_inside(outer: Event) -> Iterator[Event]:
    """The events of a compressed transaction. They have the place of the event that holds them."""
    algorithm, size, start = fields_of(outer.body)
    stream = opened(outer.body[start : start + size], algorithm)
    while header := stream.read(HEADER_BYTES):
        (length,) = struct.unpack_from("<I", header, SIZE_PLACE)
        found = event_of(header + stream.read(length - HEADER_BYTES), checksum=False)
        yield found._replace(end=outer.end, size=outer.size)


def fields_of(body: bytes) -> tuple[int, int, int]:
    """The algorithm, the size of the compressed bytes, and where they begin."""
    algorithm, size, place = NONE, 0, 0
    while True:
        kind, place = packed(body, place)
        if kind == END_OF_FIELDS:
            return algorithm, size or len(body) - place, place
        length, place = packed(body, place)
        if kind == ALGORITHM:
            algorithm, _ = packed(body, place)
        elif kind == SIZE:
            size, _ = packed(body, place)
        place += length


def opened(data: bytes, algorithm: int) -> Any:
    import pyarrow as pa

    if algorithm not in (ZSTD, NONE):
        raise ConnectError(f"the log has a transaction that is compressed by algorithm {algorithm}, not zstd")
    reader = pa.BufferReader(data)
    return reader if algorithm == NONE else pa.CompressedInputStream(reader, "zstd")
