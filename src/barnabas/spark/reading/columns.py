"""Records as Arrow columns, in the shape of Spark's own Kafka connector.

In: chunks of batches. Out: Arrow record batches with key, value, topic, partition, offset, timestamp,
timestampType and, when asked for, headers; only the columns that are wanted are built. Rows outside of the
range of offsets are left out.
Does not know: connections, Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.protocol import KafkaError
from barnabas.spark.reading import kernel
from barnabas.spark.reading.batches import FAIL, Chunk, Unreadable, broken

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS = "headers"
HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
ARROW_TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    HEADERS: pa.list_(HEADER_TYPE),
}
SPARK_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key: string, value: binary>>",
}


def schema_of(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(name, ARROW_TYPES[name]) for name in columns])


class Rows:
    """Positions of the parts of every record: the result of one scan."""

    def __init__(self, chunk: Chunk, first: int, stop: int) -> None:
        size = chunk.record_count
        self.data = np.frombuffer(chunk.data, np.uint8)
        numbers = [np.empty(size, np.int64) for _ in range(8)]
        types = np.empty(size, np.int32)
        lists = (
            chunk.starts, chunk.ends, chunk.counts, chunk.base_offsets, chunk.base_timestamps,
            chunk.append_times,
        )  # fmt: skip
        batches: list[Any] = [np.array(each, np.int64) for each in lists]
        arguments: list[Any] = [self.data, *batches, first, stop, *numbers[:2], types, *numbers[2:]]
        count = kernel.scan(*arguments)
        if count == kernel.BROKEN:
            raise broken()
        self.count = int(count)
        self.timestamp_types = types[:count]
        (
            self.offsets, self.timestamps, self.key_at, self.key_sizes, self.value_at, self.value_sizes,
            self.headers_at, self.headers_end,
        ) = (each[:count] for each in numbers)  # fmt: skip


def binary(data: Any, at: Any, sizes: Any, arrow_type: pa.DataType) -> pa.Array:
    """The values copied together, once; Arrow's own pool gives memory that was used before."""
    count = len(at)
    total, nulls = kernel.measure(sizes)
    offsets_buffer, values = pa.allocate_buffer((count + 1) * 4), pa.allocate_buffer(total)
    offsets = np.frombuffer(offsets_buffer, np.int32)
    kernel.gather(data, at, sizes, offsets, np.frombuffer(values, np.uint8))
    valid = None
    if nulls:
        bits = np.zeros((count + 7) // 8, np.uint8)
        kernel.mark_valid(sizes, bits)
        valid = pa.py_buffer(bits)
    return pa.Array.from_buffers(arrow_type, count, [valid, offsets_buffer, values], nulls)


def headers(rows: Rows) -> pa.Array:
    """Null for records that have none, as Spark's connector shows them."""
    offsets = np.empty(rows.count + 1, np.int32)
    total = kernel.count_headers(rows.data, rows.headers_at, rows.headers_end, offsets)
    if total == kernel.BROKEN:
        raise broken()
    places = [np.empty(total, np.int64) for _ in range(4)]
    if kernel.scan_headers(rows.data, rows.headers_at, rows.headers_end, *places) != total:
        raise broken()
    key_at, key_sizes, value_at, value_sizes = places
    entries = pa.StructArray.from_arrays(
        [
            binary(rows.data, key_at, key_sizes, pa.string()),
            binary(rows.data, value_at, value_sizes, pa.binary()),
        ],
        fields=list(HEADER_TYPE),
    )
    is_null = pa.array(np.diff(offsets) == 0)
    return pa.ListArray.from_arrays(pa.array(offsets), entries, mask=is_null)


def repeated(text: bytes, count: int) -> pa.Array:
    size = len(text)
    offsets = np.arange(0, (count + 1) * size, size or 1, dtype=np.int32)[: count + 1]
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text * count)]
    )


class Table:
    """Makes record batches of the records of one partition."""

    def __init__(
        self, topic: str, partition: int, columns: Sequence[str], unreadable: Unreadable = FAIL
    ) -> None:
        self._unreadable = unreadable
        self._topic = topic.encode()
        self._partition = partition
        self._schema = schema_of(columns)
        self._columns = columns
        self._topics = self._partitions = pa.array(
            []
        )  # of the longest chunk so far: they say always the same

    def batch(self, chunk: Chunk, first: int, stop: int) -> pa.RecordBatch:
        """The records of a chunk with offsets in [first, stop)."""
        try:
            rows = Rows(chunk, first, stop)
            arrays = [self._array(name, rows) for name in self._columns]
            return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        except KafkaError as error:
            if len(chunk.counts) > 1:
                return self._one_by_one(chunk, first, stop)
            self._unreadable(chunk.base_offsets[0], error)
            return pa.RecordBatch.from_pylist([], schema=self._schema)

    def _one_by_one(self, chunk: Chunk, first: int, stop: int) -> pa.RecordBatch:
        """The same where one of the batches cannot be read: the others can."""
        found = [self.batch(chunk.alone(index), first, stop) for index in range(len(chunk.counts))]
        columns = pa.Table.from_batches(found).combine_chunks()
        arrays = [column.combine_chunks() for column in columns.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, name: str, rows: Rows) -> pa.Array:
        count = rows.count
        if name == "key":
            return binary(rows.data, rows.key_at, rows.key_sizes, pa.binary())
        if name == "value":
            return binary(rows.data, rows.value_at, rows.value_sizes, pa.binary())
        if name == "topic":
            if len(self._topics) < count:
                self._topics = repeated(self._topic, count)
            return self._topics.slice(0, count)
        if name == "partition":
            if len(self._partitions) < count:
                self._partitions = pa.array(np.full(count, self._partition, np.int32))
            return self._partitions.slice(0, count)
        if name == "offset":
            return pa.array(rows.offsets)
        if name == "timestamp":
            times = pa.py_buffer(rows.timestamps)
            return pa.Array.from_buffers(ARROW_TYPES["timestamp"], count, [None, times], 0)
        if name == "timestampType":
            return pa.array(rows.timestamp_types)
        return headers(rows)
