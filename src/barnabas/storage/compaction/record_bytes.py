"""Partial decoding of records for compaction: their positions, their keys, which ones are tombstones.

In: the decompressed records of a batch. Out: lists with one item for each record. Compaction reads every
record of a log at least once and needs nothing else of most of them, so these are loops over bytes without
calls.
Does not know: batches, offsets, what a key means.
"""

from collections.abc import Iterable

from barnabas.records import varint

NULL = 0x01  # the varint -1: no key, no value


class BadRecords(Exception):
    """The bytes are not the records that the batch header announces."""


def starts_of(data: bytes, count: int) -> list[int]:
    """The start of each record, followed by the end of the last one."""
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
                if size < 0:  # it would move backwards and loop forever
                    raise ValueError(f"its size is {size}")
                position += size
            add(position)
    except (IndexError, ValueError) as error:
        raise BadRecords(f"record {len(starts) - 1} of {count}: {error}") from None
    if position != len(data):
        raise BadRecords(f"{count} records end at byte {position} of {len(data)}")
    return starts


def keys_of(data: bytes, count: int) -> tuple[list[bytes | None], list[int]]:
    """The key of each record, and the positions of records without a value."""
    keys: list[bytes | None] = []
    add = keys.append
    tombstones: list[int] = []
    position = 0
    try:
        for index in range(count):
            byte = data[position]
            if byte < 0x80:
                end = position + 1 + (byte >> 1)
                position += 2  # skips the attributes, which are unused
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
    """The offset delta of each record."""
    deltas = []
    for start in starts[:-1]:
        _, position = varint.decode(data, start)
        _, position = varint.decode(data, position + 1, varint.INT64_BYTES_MAX)
        delta, _ = varint.decode(data, position)
        deltas.append(delta)
    return deltas


def timestamp_deltas_of(data: bytes, starts: Iterable[int]) -> list[int]:
    """The timestamp delta of the records that begin at `starts`."""
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
    """The same record with a timestamp delta larger by `shift`."""
    _, position = varint.decode(record, 0)
    delta, rest = varint.decode(record, position + 1, varint.INT64_BYTES_MAX)
    body = record[position : position + 1] + varint.encode(delta + shift) + record[rest:]
    return varint.encode(len(body)) + body
