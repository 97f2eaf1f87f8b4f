"""The records of a task's batch, in the order in which Kafka Streams takes them.

In: ranges of offsets, one for each partition of the task. Out: records, by offset within a partition; between
partitions the one whose next record is the oldest comes first. Does not know: what is done with records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import Fetcher, OffsetRange
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.task_port import InputRecord

COLUMNS = ("key", "value", "offset", "timestamp", "headers")
US_A_MS = 1000
BYTES_MAX = 256 * 1024 * 1024  # of a task's batch, unpacked


def merged(parts: list[tuple[str, list[InputRecord]]]) -> Iterator[tuple[str, InputRecord]]:
    """Taking the oldest head again and again is sorting by the largest time so far in each part."""
    if not any(records for _, records in parts):
        return iter(())
    times = [
        np.maximum.accumulate(np.fromiter((record.timestamp for record in records), np.int64, len(records)))
        for _, records in parts
    ]
    order = np.argsort(np.concatenate(times), kind="stable")
    together = [(topic, record) for topic, records in parts for record in records]
    return (together[index] for index in order.tolist())


def read_parts(
    cluster: WorkerCluster,
    ranges: Sequence[OffsetRange],
    timeout_ms: int,
    bytes_max: int = BYTES_MAX,
    *,
    fails_on_loss: bool = True,
) -> tuple[list[Part], list[OffsetRange]]:
    """Records by columns, one part for each range that has some, and the ranges that were read: one that has
    more bytes than its share ends early."""
    parts, ranges_read = [], []
    share = bytes_max // max(1, len(ranges))
    for asked in ranges:
        stop = max(asked.start, asked.stop)
        if asked.stop > asked.start:
            fetcher = Fetcher(cluster, asked, fails_on_loss=fails_on_loss, timeout_ms=timeout_ms)
            table = Table(asked.topic, asked.partition, COLUMNS)
            some: list[pa.RecordBatch] = []
            size = 0
            chunks = fetcher.chunks()
            for chunk in chunks:
                some.append(table.batch(chunk, asked.start, asked.stop))
                size += chunk.bytes
                if size > share and some[-1].num_rows:
                    stop = min(stop, some[-1].column("offset")[-1].as_py() + 1)
                    break
            chunks.close()
            if some:
                parts.append(Part(asked.topic, asked.partition, together(some)))
        ranges_read.append(replace(asked, stop=stop))
    return parts, ranges_read


def together(some: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(some) == 1:
        return some[0]
    columns = pa.Table.from_batches(some).combine_chunks()
    return pa.RecordBatch.from_arrays([column.chunk(0) for column in columns.columns], schema=columns.schema)


def in_order(parts: Iterable[Part]) -> Iterator[tuple[str, InputRecord]]:
    """Records with the topic that they come from."""
    some = [(part.topic, records_of(part.records, part.partition)) for part in parts]
    if len(some) == 1:
        topic, records = some[0]
        return ((topic, record) for record in records)
    return merged(some)


def read_range(
    cluster: WorkerCluster, asked: OffsetRange, timeout_ms: int, *, fails_on_loss: bool = True
) -> list[InputRecord]:
    fetcher = Fetcher(cluster, asked, fails_on_loss=fails_on_loss, timeout_ms=timeout_ms)
    table = Table(asked.topic, asked.partition, COLUMNS)
    found: list[InputRecord] = []
    for chunk in fetcher.chunks():
        found += records_of(table.batch(chunk, asked.start, asked.stop), asked.partition)
    return found


def records_of(batch: pa.RecordBatch, partition: int) -> list[InputRecord]:
    keys, values, offsets, times, headers = (batch.column(name) for name in COLUMNS)
    milliseconds = (times.cast("int64").to_numpy(zero_copy_only=False) // US_A_MS).tolist()
    pairs: Any = (
        (tuple((each["key"], each["value"]) for each in some) if some else () for some in headers.to_pylist())
        if headers.null_count < len(headers)
        else [()] * len(headers)
    )
    partitions = [partition] * len(keys)
    return list(
        map(
            InputRecord,
            keys.to_pylist(),
            values.to_pylist(),
            milliseconds,
            pairs,
            partitions,
            offsets.to_pylist(),
        )
    )
