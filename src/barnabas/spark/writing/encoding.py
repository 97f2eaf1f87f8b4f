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

from barnabas.client.core.topology import TopicPartition
from barnabas.records.batch import (
    ATTRIBUTES_AT,
    BATCH_OVERHEAD,
    CRC_AT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from barnabas.records.compression import Compression
from barnabas.records.crc32c import crc32c
from barnabas.spark.writing import writing_kernel as kernel
from barnabas.spark.writing.packing import Packing
from barnabas.spark.writing.rows import RowError, Rows

CHECKSUM = Struct(">I")


@dataclass(slots=True)
class Encoded:
    """A batch that waits for a producer's id and sequence."""

    where: TopicPartition
    buffer: memoryview  # the whole batch, its header still empty
    count: int
    base_timestamp: int
    max_timestamp: int
    compression: int
    rows: Any  # which rows of the table: to cut it in two when it is too large
    base_sequence: int | None = None

    def sealed(self, producer_id: int, producer_epoch: int, is_transactional: bool) -> memoryview:
        """The batch with its header: no copy, so it may be sealed again only when it is not under way."""
        HEADER.pack_into(
            self.buffer,
            0,
            0,
            len(self.buffer) - LOG_OVERHEAD,
            NO_PARTITION_LEADER_EPOCH,
            MAGIC,
            0,
            self.compression | (TRANSACTIONAL_FLAG if is_transactional else 0),
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            producer_id,
            producer_epoch,
            NO_SEQUENCE if self.base_sequence is None else self.base_sequence,
            self.count,
        )
        CHECKSUM.pack_into(self.buffer, CRC_AT, crc32c(self.buffer[ATTRIBUTES_AT:]))
        return self.buffer


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
        self._batch_bytes_of: dict[str, int] = {}  # of topics whose batches must be smaller
        self._rng = rng
        self._packing = Packing(compression, level)

    def batches(self, table: pa.Table, topic: str | None, now_ms: int) -> Iterator[Encoded]:
        """All rows of a table; `topic` is where rows go that name none."""
        rows = Rows(table, now_ms)
        for name, some in rows.by_topic(topic):
            chosen = self._partitions(rows, some, name)
            bounds = np.empty(self._partition_counts[name] + 1, np.int64)
            order = np.empty(len(some), np.int64)
            kernel.group_rows(some, chosen, bounds, order)
            bytes_max = self._batch_bytes_of.get(name, self._batch_bytes)
            parts = []
            for partition in np.flatnonzero(np.diff(bounds)).tolist():
                part = order[bounds[partition] : bounds[partition + 1]]
                parts.append((TopicPartition(name, partition), rows.pieces(part, bytes_max)))
            while parts:  # in turns: a request takes one batch of each partition
                left = []
                for place, pieces in parts:
                    found = next(pieces, None)
                    if found is not None:
                        yield self.encode(rows, place, *found)
                        left.append((place, pieces))
                parts = left

    def chosen_partitions(self, table: pa.Table, topic: str) -> Any:
        """The partition of each row, without encoding it."""
        return self._partitions(Rows(table, 0), np.arange(table.num_rows, dtype=np.int64), topic)

    def _partitions(self, rows: Rows, some: Any, topic: str) -> Any:
        count = self._partition_counts[topic]
        if rows.partitions is None:
            chosen = np.full(len(some), -1, np.int64)
        else:
            chosen = rows.partitions[some]
            too_large = np.flatnonzero(chosen >= count)
            if len(too_large):
                row = int(some[too_large[0]])
                raise RowError(
                    f"the row with key {rows.keys.value(row)!r} names partition {chosen[too_large[0]]}, "
                    f"topic {topic} has {count}"
                )
        keys = rows.keys
        if kernel.hash_keys(keys.data, keys.at, keys.sizes, some, count, chosen):
            keyless = np.flatnonzero(chosen < 0)
            start = 0
            for piece, _ in rows.pieces(some[keyless], self._batch_bytes):
                stop = start + len(piece)
                chosen[keyless[start:stop]] = self._rng.randrange(count)
                start = stop
        return chosen

    def encode(self, rows: Rows, place: TopicPartition, piece: Any, size_max: int) -> Encoded:
        """One batch of these rows, whose records take at most so many bytes."""
        is_packed = self._compression != Compression.NONE
        if is_packed:
            out = self._packing.records_room(size_max)
        else:  # Arrow's own pool gives memory that was used before
            whole = np.frombuffer(pa.allocate_buffer(BATCH_OVERHEAD + size_max), np.uint8)
            out = whole[BATCH_OVERHEAD:]
        headers = rows.headers
        first = int(rows.timestamps[piece[0]])
        arguments: list[Any] = [
            piece, rows.timestamps, first,
            rows.keys.data, rows.keys.at, rows.keys.sizes,
            rows.values.data, rows.values.at, rows.values.sizes,
            headers.offsets, headers.keys.data, headers.keys.at, headers.keys.sizes,
            headers.values.data, headers.values.at, headers.values.sizes,
            out,
        ]  # fmt: skip
        size, latest = kernel.put_records(*arguments)
        if is_packed:
            buffer = memoryview(self._packing.packed(out[:size]))
        else:
            buffer = whole.data[: BATCH_OVERHEAD + size]
        return Encoded(place, buffer, len(piece), first, latest, self._compression, (rows, piece))

    def halves(self, batch: Encoded, *, shrinks: bool = True) -> list[Encoded]:
        """The same rows in two batches. The broker found one too large, so later ones are smaller; without
        `shrinks` only a record in it is looked for."""
        rows, piece = batch.rows
        parts = [piece[: len(piece) // 2], piece[len(piece) // 2 :]]
        sizes = [int(rows.sizes[part].sum()) for part in parts]
        topic = batch.where.topic
        if shrinks:
            self._batch_bytes_of[topic] = min(
                self._batch_bytes_of.get(topic, self._batch_bytes), max(sum(sizes) // 2, 1)
            )
        return [self.encode(rows, batch.where, part, size) for part, size in zip(parts, sizes, strict=True)]
