"""The fastest possible Python source and sink for Spark: the bounds for ours.

In: the number and size of rows. Out: a source that returns the same prepared Arrow batch repeatedly, and a
sink that only counts rows: no broker, no decoding, nothing that could be faster in Python. Does not know:
topics, how it is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "bare"
PARTITIONS = 2
BYTES_A_BATCH = 4 * 1024 * 1024  # the size of our source's batches
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)


class BareReader(DataSourceReader):
    def __init__(self, rows: int, size: int) -> None:
        self._rows = rows
        self._size = size

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(self._rows // PARTITIONS)] * PARTITIONS

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = self._batch(min(partition.value, BYTES_A_BATCH // self._size))
        left: int = partition.value
        while left > 0:
            yield batch if left >= batch.num_rows else batch.slice(0, left)
            left -= batch.num_rows

    def _batch(self, count: int) -> pa.RecordBatch:
        import numpy as np
        import pyarrow as pa

        numbers = pa.array(np.arange(count))
        columns = {
            "key": pa.array([b"%d" % n for n in range(count)], pa.binary()),
            "value": pa.array([b"x" * self._size] * count, pa.binary()),
            "topic": pa.array(["read-1000-none"] * count),
            "partition": pa.array(np.zeros(count, np.int32)),
            "offset": numbers,
            "timestamp": numbers.cast(pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array(np.zeros(count, np.int32)),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


@dataclass
class Counted(WriterCommitMessage):
    rows: int


class BareWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Counted(sum(batch.num_rows for batch in iterator))


class BareSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        return BareReader(int(self.options["rows"]), int(self.options["size"]))

    def writer(self, schema: Any, overwrite: bool) -> BareWriter:
        return BareWriter()


def register(spark: Any) -> None:
    """Send this module to the workers with the source, because they may not be able to import it."""
    by_value: Any = cloudpickle.register_pickle_by_value
    by_value(sys.modules[__name__])
    spark.dataSource.register(BareSource)
