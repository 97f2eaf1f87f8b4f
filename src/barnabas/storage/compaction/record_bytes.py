"""Reading just enough of a batch's records: where they lie, their keys, which of them have no value.

In: the decompressed records of a batch. Out: lists, one item a record. Compaction looks at every record of
a log at least once and needs nothing else of most of them, so this is a loop over bytes without calls. Does
not know: batches, offsets, what follows from a key.
"""

from collections.abc import Iterable

from barnabas.records import varint

NULL = 0x01  # the varint -1: no key, no value


class BadRecords(Exception):
    """Bytes that are not the records that the batch's header announces."""


def starts_of(data: bytes, count: int) -> list[int]:
    """Where each record begins, and behind them all where the last one ends."""
    starts = [0]
    add = starts.append
    position = 0
    try:
        for _ in range(count):
            byte = data[position]
            if byte < 0x80:
                position += 1 + (byte >> 1)
            elif (second := data[position + 1]) < 0x80:
                position += 2 + ((byte & 0x7F | second << 7) >> 1)
            else:
                size, position = varint.decode(data, position)
                if size < 0:  # it would lead back, again and again
                    raise ValueError(f"its size is {size}")
                position += size
            add(position)
    except (IndexError, ValueError) as error:
        raise BadRecords(f"record {len(starts) - 1} of {count}: {error}") from None
    if position != len(data):
        raise BadRecords(f"{count} records end at byte {position} of {len(data)}")
    return starts


def keys_of(data: bytes, count: int) -> tuple[list[bytes | None], list[int]]:
    """The key of each record, and which records have no value (by their place in the batch)."""
    keys: list[bytes | None] = []
    add = keys.append
    tombstones: list[int] = []
    position = 0
    try:
        for index in range(count):
            byte = data[position]
            if byte < 0x80:
                end = position + 1 + (byte >> 1)
                position += 2  # attributes follow: none are in use
            elif (second := data[position + 1]) < 0x80:
                end = position + 2 + ((byte & 0x7F | second << 7) >> 1)
                position += 3
            else:
                size, position = varint.decode(data, position)
                if size < 0:
                    raise ValueError(f"its size is {size}")
                end = position + size
                position += 1
            while data[position] >= 0x80:  # timestamp
                position += 1
            position += 1
            while data[position] >= 0x80:  # offset
                position += 1
            position += 1
            byte = data[position]
            if byte < 0x80 and not byte & 1:
                value = position + 1 + (byte >> 1)
                add(data[position + 1 : value])
            else:
                size, value = varint.decode(data, position)
                if size < 0:
                    add(None)
                else:
                    add(data[value : value + size])
                    value += size
            if data[value] == NULL:
                tombstones.append(index)
            position = end
    except (IndexError, ValueError) as error:
        raise BadRecords(f"record {len(keys)} of {count}: {error}") from None
    if position != len(data):
        raise BadRecords(f"{count} records end at byte {position} of {len(data)}")
    return keys, tombstones


def offset_deltas_of(data: bytes, starts: list[int]) -> list[int]:
    """The distance of each record's offset from the batch's first."""
    deltas = []
    for start in starts[:-1]:
        _, position = varint.decode(data, start)
        _, position = varint.decode(data, position + 1, varint.INT64_BYTES_MAX)
        delta, _ = varint.decode(data, position)
        deltas.append(delta)
    return deltas


def timestamp_deltas_of(data: bytes, starts: Iterable[int]) -> list[int]:
    """The distance of some records' timestamps from the batch's base timestamp; `starts` say of which."""
    deltas = []
    small = varint.ONE_BYTE_VALUES
    for start in starts:
        if data[start] < 0x80:
            position = start + 2  # size and attributes
        elif data[start + 1] < 0x80:
            position = start + 3
        else:
            position = varint.decode(data, start)[1] + 1
        byte = data[position]
        deltas.append(
            small[byte] if byte < 0x80 else varint.decode(data, position, varint.INT64_BYTES_MAX)[0]
        )
    return deltas


def with_timestamp_delta(record: bytes, shift: int) -> bytes:
    """A record whose distance from the base timestamp has grown by `shift`."""
    _, position = varint.decode(record, 0)
    delta, rest = varint.decode(record, position + 1, varint.INT64_BYTES_MAX)
    body = record[position : position + 1] + varint.encode(delta + shift) + record[rest:]
    return varint.encode(len(body)) + body
