"""The records of a task's batch, in the order in which Kafka Streams takes them.

In: ranges of offsets, one for each partition of the task. Out: records, by offset within a partition; between
partitions the one whose next record is the oldest comes first. Does not know: what is done with records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import Fetcher, OffsetRange
from barnabas.streams.spark.task_port import InputRecord

COLUMNS = ("key", "value", "offset", "timestamp", "headers")
US_A_MS = 1000


def read_in_order(
    cluster: WorkerCluster, ranges: Iterable[OffsetRange], timeout_ms: int
) -> Iterator[tuple[str, InputRecord]]:
    """Records with the topic that they come from."""
    parts = [(each.topic, read_range(cluster, each, timeout_ms)) for each in ranges if each.stop > each.start]
    if len(parts) == 1:
        topic, records = parts[0]
        return ((topic, record) for record in records)
    return merged(parts)


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


def read_range(
    cluster: WorkerCluster, asked: OffsetRange, timeout_ms: int, *, fails_on_loss: bool = True
) -> list[InputRecord]:
    fetcher = Fetcher(cluster, asked, fails_on_loss=fails_on_loss, timeout_ms=timeout_ms)
    table = Table(asked.topic, asked.partition, COLUMNS)
    found: list[InputRecord] = []
    for chunk in fetcher.chunks():
        batch = table.batch(chunk, asked.start, asked.stop)
        keys, values, offsets, times, headers = (batch.column(name) for name in COLUMNS)
        milliseconds = (times.cast("int64").to_numpy(zero_copy_only=False) // US_A_MS).tolist()
        pairs: Any = (
            (
                tuple((each["key"], each["value"]) for each in some) if some else ()
                for some in headers.to_pylist()
            )
            if headers.null_count < len(headers)
            else [()] * len(headers)
        )
        partitions = [asked.partition] * len(keys)
        found += map(
            InputRecord,
            keys.to_pylist(),
            values.to_pylist(),
            milliseconds,
            pairs,
            partitions,
            offsets.to_pylist(),
        )
    return found
