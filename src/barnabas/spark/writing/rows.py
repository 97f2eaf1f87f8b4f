"""A table's rows as the kernel of writing reads them: bytes, and the place and size of every value.

In: Arrow columns (key, value, topic, partition, timestamp, headers). Out: numpy arrays over the same memory,
rows by topic, and rows cut into pieces of a batch's size.
Does not know: partitions, batches, Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.spark.writing import writing_kernel as kernel

EMPTY = np.empty(0, np.int64)
NO_BYTES = np.empty(0, np.uint8)


class RowError(Exception):
    """A row cannot be written; the message names its key and the cause."""


class Undelivered(RowError):
    """Brokers did not take a row in time: a later attempt may work."""


class Column:
    """The bytes of a column, and the place and size of each value; a size of -1 is a null."""

    __slots__ = ("at", "data", "sizes")

    def __init__(self, array: pa.Array) -> None:
        is_large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
        width: Any = np.int64 if is_large else np.int32
        valid, offsets, data = array.buffers()  # text and bytes are kept alike
        count = len(array)
        if count == 0:
            self.at = self.sizes = EMPTY
            self.data = NO_BYTES
            return
        self.at, self.sizes = np.empty(count, np.int64), np.empty(count, np.int64)
        kernel.find_values(np.frombuffer(offsets, width)[array.offset :], self.at, self.sizes)
        if valid is not None and array.null_count:
            kernel.mark_nulls(np.frombuffer(valid, np.uint8), array.offset, self.sizes)
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
        self.sizes = np.empty(self.count, np.int64)
        kernel.record_sizes(self.keys.sizes, self.values.sizes, self.sizes)
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

    def pieces(self, some: Any, batch_bytes: int) -> Iterator[tuple[Any, int]]:
        """Some rows in the order given, cut so that each piece has at most as many bytes as a batch may have,
        and how many those are."""
        if not len(some):
            return
        stops, totals = np.empty(len(some), np.int64), np.empty(len(some), np.int64)
        count = kernel.cut_rows(self.sizes, some, batch_bytes, stops, totals)
        start = 0
        for stop, total in zip(stops[:count].tolist(), totals[:count].tolist(), strict=True):
            yield some[start:stop], total
            start = stop


def one(table: pa.Table, name: str) -> pa.Array | None:
    """A column in one piece, None when there is none."""
    if name not in table.column_names:
        return None
    column = table.column(name)
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], column.type)])
