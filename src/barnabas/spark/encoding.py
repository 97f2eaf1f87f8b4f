"""Rows become record batches, each for one partition of one topic.

In: Arrow columns (key, value, topic, partition, timestamp, headers). Out: batches without a producer, in the
order of rows. Keys choose their partition as Kafka's own clients do; rows without a key go together to one
partition after the other. Does not know: connections, transactions, Spark.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.records.batch import (
    ATTRIBUTES_AT,
    BATCH_OVERHEAD,
    CRC_AT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from barnabas.records.compression import Compression
from barnabas.records.crc32c import crc32c
from barnabas.spark import writing_kernel as kernel
from barnabas.spark.cluster import Place
from barnabas.spark.packing import Packing

CHECKSUM = Struct(">I")
PARTITIONS_SMALL_MAX = 2**16  # so few are sorted by counting
EMPTY = np.empty(0, np.int64)
NO_BYTES = np.empty(0, np.uint8)


class RowError(Exception):
    """A row cannot be written; the message names its key and the cause."""


@dataclass(slots=True)
class Encoded:
    """A batch that waits for a producer's id and sequence."""

    place: Place
    buffer: memoryview  # the whole batch, its header still empty
    count: int
    base_timestamp: int
    max_timestamp: int
    compression: int
    rows: Any  # which rows of the table: to cut it in two when it is too large

    def sealed(
        self, producer_id: int, producer_epoch: int, sequence: int, *, transactional: bool
    ) -> memoryview:
        """The batch with its header: no copy, so it may be sealed again only when it is not under way."""
        HEADER.pack_into(
            self.buffer,
            0,
            0,
            len(self.buffer) - LOG_OVERHEAD,
            NO_PARTITION_LEADER_EPOCH,
            MAGIC,
            0,
            self.compression | (TRANSACTIONAL_FLAG if transactional else 0),
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            producer_id,
            producer_epoch,
            sequence,
            self.count,
        )
        CHECKSUM.pack_into(self.buffer, CRC_AT, crc32c(self.buffer[ATTRIBUTES_AT:]))
        return self.buffer

    def sealed_alone(self) -> memoryview:
        return self.sealed(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, transactional=False)


class Column:
    """The bytes of a column, and the place and size of each value; a size of -1 is a null."""

    __slots__ = ("at", "data", "sizes")

    def __init__(self, array: pa.Array) -> None:
        is_large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
        width: Any = np.int64 if is_large else np.int32
        array = array.cast(pa.large_binary() if is_large else pa.binary())
        _, offsets, data = array.buffers()
        count = len(array)
        if count == 0:
            self.at = self.sizes = EMPTY
            self.data = NO_BYTES
            return
        bounds = np.frombuffer(offsets, width)[array.offset : array.offset + count + 1].astype(np.int64)
        self.at = bounds[:-1]
        self.sizes = np.diff(bounds)
        if array.null_count:
            self.sizes[np.asarray(array.is_null())] = -1
        self.data = np.frombuffer(data, np.uint8) if data is not None and data.size else NO_BYTES

    @classmethod
    def of_nulls(cls, count: int) -> Column:
        found = cls.__new__(cls)
        found.at, found.sizes, found.data = np.zeros(count, np.int64), np.full(count, -1, np.int64), NO_BYTES
        return found

    def value(self, row: int) -> bytes | None:
        size = int(self.sizes[row])
        return None if size < 0 else self.data[self.at[row] : self.at[row] + size].tobytes()


class Headers:
    __slots__ = ("keys", "offsets", "values")

    def __init__(self, array: pa.Array | None) -> None:
        if array is None:
            self.offsets = EMPTY
            self.keys = self.values = Column.of_nulls(0)
            return
        # Nulls must not have entries of their own, and the offsets must belong to the entries.
        array = pa.concat_arrays([array]) if array.offset else array
        self.offsets = np.asarray(array.offsets).astype(np.int64)
        entries = array.values
        self.keys, self.values = Column(entries.field(0)), Column(entries.field(1))


class Encoder:
    def __init__(
        self,
        partition_counts: Mapping[str, int],
        *,
        compression: int,
        batch_bytes: int,
        rng: random.Random,
        level: int | None = None,
    ) -> None:
        """`partition_counts` by topic; asked for as topics come up."""
        self._partition_counts = partition_counts
        self._compression = compression
        self._batch_bytes = batch_bytes
        self._rng = rng
        self._packing = Packing(compression, level)

    def batches(self, table: pa.Table, topic: str | None, now_ms: int) -> Iterator[Encoded]:
        """All rows of a table; `topic` is where rows go that name none."""
        rows = Rows(table, now_ms)
        for name, some in rows.by_topic(topic):
            chosen = self._partitions(rows, some, name)
            is_small = self._partition_counts[name] <= PARTITIONS_SMALL_MAX
            order = np.argsort(chosen.astype(np.uint16) if is_small else chosen, kind="stable")
            bounds = np.flatnonzero(np.diff(chosen[order])) + 1
            for part in np.split(order, bounds):
                place = Place(name, int(chosen[part[0]]))
                for piece in rows.pieces(some[part], self._batch_bytes):
                    yield self.encode(rows, place, piece)

    def _partitions(self, rows: Rows, some: Any, topic: str) -> Any:
        count = self._partition_counts[topic]
        chosen = np.full(len(some), -1, np.int64) if rows.partitions is None else rows.partitions[some]
        too_large = np.flatnonzero(chosen >= count)
        if len(too_large):
            row = int(some[too_large[0]])
            raise RowError(
                f"the row with key {rows.keys.value(row)!r} names partition {chosen[too_large[0]]}, "
                f"topic {topic} has {count}"
            )
        keys = rows.keys
        kernel.hash_keys(keys.data, keys.at[some], keys.sizes[some], count, chosen)
        keyless = np.flatnonzero(chosen < 0)
        for piece in rows.pieces(some[keyless], self._batch_bytes, places=keyless):
            chosen[piece] = self._rng.randrange(count)
        return chosen

    def encode(self, rows: Rows, place: Place, piece: Any) -> Encoded:
        times = rows.timestamps[piece]
        size_max = int(rows.sizes[piece].sum())
        is_packed = self._compression != Compression.NONE
        if is_packed:
            out = self._packing.records_room(size_max)
        else:  # Arrow's own pool gives memory that was used before
            whole = np.frombuffer(pa.allocate_buffer(BATCH_OVERHEAD + size_max), np.uint8)
            out = whole[BATCH_OVERHEAD:]
        headers = rows.headers
        arguments: list[Any] = [
            piece, rows.timestamps, int(times[0]),
            rows.keys.data, rows.keys.at, rows.keys.sizes,
            rows.values.data, rows.values.at, rows.values.sizes,
            headers.offsets, headers.keys.data, headers.keys.at, headers.keys.sizes,
            headers.values.data, headers.values.at, headers.values.sizes,
            out,
        ]  # fmt: skip
        size = kernel.put_records(*arguments)
        if is_packed:
            buffer = memoryview(self._packing.packed(out[:size]))
        else:
            buffer = whole.data[: BATCH_OVERHEAD + size]
        return Encoded(
            place, buffer, len(piece), int(times[0]), int(times.max()), self._compression, (rows, piece)
        )

    def halves(self, batch: Encoded) -> list[Encoded]:
        """The same rows in two batches: the broker found one too large."""
        rows, piece = batch.rows
        middle = len(piece) // 2
        return [self.encode(rows, batch.place, part) for part in (piece[:middle], piece[middle:])]


class Rows:
    """A table's columns, as the kernel reads them."""

    def __init__(self, table: pa.Table, now_ms: int) -> None:
        table = table.combine_chunks()
        self.count = table.num_rows
        self.keys = self._column(table, "key")
        self.values = self._column(table, "value")
        self.headers = Headers(one(table, "headers"))
        self.topics = one(table, "topic")
        timestamps = one(table, "timestamp")
        if timestamps is None:
            self.timestamps = np.full(self.count, now_ms, np.int64)
        else:
            ms = timestamps.cast(pa.timestamp("us")).cast(pa.int64()).fill_null(now_ms * 1000)
            self.timestamps = np.asarray(ms) // 1000
        partitions = one(table, "partition")
        self.partitions = (
            None if partitions is None else np.asarray(partitions.fill_null(-1)).astype(np.int64)
        )
        self.sizes = np.maximum(self.keys.sizes, 0) + np.maximum(self.values.sizes, 0)
        self.sizes += kernel.BODY_OVERHEAD_MAX
        if len(self.headers.offsets):
            self.sizes += self._header_sizes()

    def _header_sizes(self) -> Any:
        headers = self.headers
        each = np.maximum(headers.keys.sizes, 0) + np.maximum(headers.values.sizes, 0) + 10
        totals = np.concatenate([[0], np.cumsum(each)])
        return totals[headers.offsets[1:]] - totals[headers.offsets[:-1]] + 5

    def _column(self, table: pa.Table, name: str) -> Column:
        array = one(table, name)
        return Column.of_nulls(table.num_rows) if array is None else Column(array)

    def by_topic(self, default: str | None) -> Iterator[tuple[str, Any]]:
        everything = np.arange(self.count)
        if self.topics is None or self.topics.null_count == self.count:
            if default is None and self.count:
                raise RowError(
                    f"the row with key {self.keys.value(0)!r} has no topic, nor is there an option"
                )
            if self.count:
                yield default or "", everything
            return
        named = self.topics if default is None else self.topics.fill_null(default)
        if named.null_count:
            row = int(np.flatnonzero(np.asarray(named.is_null()))[0])
            raise RowError(f"the row with key {self.keys.value(row)!r} has no topic, nor is there an option")
        encoded = named.dictionary_encode()
        indices = np.asarray(encoded.indices)
        for index, name in enumerate(encoded.dictionary.to_pylist()):
            yield name, np.flatnonzero(indices == index)

    def pieces(self, some: Any, batch_bytes: int, places: Any = None) -> Iterator[Any]:
        """Rows in the order given, cut so that each piece has about as many bytes as a batch may have."""
        what = some if places is None else places
        if not len(some):
            return
        totals = np.cumsum(self.sizes[some])
        start = 0
        while start < len(some):
            base = int(totals[start - 1]) if start else 0
            stop = max(int(np.searchsorted(totals, base + batch_bytes, "right")), start + 1)
            yield what[start:stop]
            start = stop


def one(table: pa.Table, name: str) -> pa.Array | None:
    """A column in one piece, None when there is none."""
    if name not in table.column_names:
        return None
    column = table.column(name)
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], column.type)])
