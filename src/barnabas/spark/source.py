"""The data source `barnabas`: what Spark asks of a Python source, answered by the planner and the fetcher.

In: options, offsets of checkpoints, partitions to read. Out: Arrow record batches. Planning runs in a Python
process of the driver that lives as long as the query; reading runs in the workers of executors.
Does not know: the protocol, how records are decoded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.spark import worker
from barnabas.spark.basics.cluster import shared_cluster
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.decoding import Decoding, ddl_of
from barnabas.spark.options import SourceOptions, source_options
from barnabas.spark.planner import Planner
from barnabas.spark.planning import limited
from barnabas.spark.positions import Offsets, from_checkpoint, to_checkpoint
from barnabas.spark.progress import metrics_of
from barnabas.spark.reading.batches import Unreadable
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import Fetcher, OffsetRange
from barnabas.spark.sink_options import sink_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME = "barnabas"
ROWS_A_BATCH = 100_000


class BarnabasSource(DataSource):
    """`spark.read.format("barnabas")` and its three relatives."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        # Whether it is a stream matters only for checks that the readers repeat.
        options = source_options(self.options, streaming=True, checks_positions=False)
        return ddl_of(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = source_options(self.options, streaming=False)
        return BatchReader(options, Decoding(options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = source_options(self.options, streaming=True)
        return StreamReader(options, Decoding(options, schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from barnabas.spark.sink import BatchWriter, check_target

        if overwrite:
            raise OptionError('topics cannot be overwritten: write with .mode("append")')
        options = sink_options(self.options, schema)
        check_target(options)
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from barnabas.spark.sink import StreamWriter

        if overwrite:
            raise OptionError(
                'topics cannot be overwritten: use .outputMode("append") or .outputMode("update")'
            )
        return StreamWriter(sink_options(self.options, schema))


class Range(InputPartition):
    """The range that one task reads."""

    def __init__(self, asked: OffsetRange) -> None:
        super().__init__(asked)


def read_range(
    options: SourceOptions, decoding: Decoding, asked: OffsetRange | None
) -> Iterator[pa.RecordBatch]:
    if asked is None:  # what Spark makes of a plan without partitions
        return
    unreadable = Unreadable(asked.place, fails=options.fails_on_corrupt_records)
    fetcher = Fetcher(
        shared_cluster(options.client),
        asked,
        fails_on_loss=options.fails_on_data_loss,
        timeout_ms=options.poll_timeout_ms,
        unreadable=unreadable,
    )
    table = Table(asked.topic, asked.partition, decoding.raw_columns, unreadable)
    readings = [
        each.reading(shared_cluster(options.client), asked)
        for each in options.interceptors.make(options.client)
    ]
    for chunk in fetcher.chunks():
        batch = table.batch(chunk, chunk.first, asked.stop)
        for each in readings:
            each.read(batch)
        for start in range(0, batch.num_rows, ROWS_A_BATCH):
            yield decoding.apply(batch.slice(start, ROWS_A_BATCH), asked.place)
    for each in readings:
        each.ended()
    worker.settle()


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, decoding: Decoding) -> None:
        self._options = options
        self._decoding = decoding

    def partitions(self) -> Sequence[InputPartition]:
        planner = Planner(self._options)
        places = planner.places()
        start = planner.resolve(self._options.starting, places)
        end = planner.resolve(self._options.ending, places)
        for at, offsets in ((self._options.starting, start), (self._options.ending, end)):
            if at.offsets is not None:
                planner.check_bounds(at.option, offsets)
        planner.check_order(start, end)
        return [Range(each) for each in planner.ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from read_range(self._options, self._decoding, partition.value)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, decoding: Decoding) -> None:
        self._options = options
        self._decoding = decoding
        self._planner = Planner(options)
        self._target: Offsets | None = None  # what Trigger.AvailableNow reads up to
        self._last_latest: Offsets | None = None
        self._last_end: Offsets = {}
        self._last_trigger = time.monotonic()

    def initialOffset(self) -> dict[str, Any]:
        options = self._options
        start = self._planner.resolve(options.starting, self._planner.places())
        if options.starting.offsets is not None:
            self._planner.check_bounds(options.starting.option, start)
        return to_checkpoint(start)

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.offsets_per_trigger_max is not None:
            return ReadMaxRows(options.offsets_per_trigger_max)
        if options.offsets_per_trigger_min is not None:
            return ReadMinRows(options.offsets_per_trigger_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._planner.latest(self._planner.places())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        self._last_end = self._end_of_batch(from_checkpoint(start), limit)
        return to_checkpoint(self._last_end)

    def _end_of_batch(self, begin: Offsets, limit: ReadLimit) -> Offsets:
        latest = self._target
        if latest is None:
            latest = self._planner.latest(self._planner.places())
        self._last_latest = latest
        options = self._options
        if isinstance(limit, ReadAllAvailable) and options.offsets_per_trigger_max is None:
            return latest
        if isinstance(limit, ReadMinRows | ReadMaxRows) and self._waits(begin, latest):
            return begin
        self._last_trigger = time.monotonic()
        rows_max = options.offsets_per_trigger_max
        if not isinstance(limit, ReadMaxRows) or rows_max is None:
            return latest
        new = [place for place in latest if place not in begin]
        return limited({**begin, **self._planner.earliest(new)}, latest, limit.max_rows)

    def _waits(self, begin: Offsets, latest: Offsets) -> bool:
        """Whether there is too little for a batch (`minOffsetsPerTrigger`) and time for more to come."""
        least = self._options.offsets_per_trigger_min
        if least is None or self._target is not None:
            return False
        available = sum(max(latest[place] - begin.get(place, 0), 0) for place in latest)
        waited_ms = (time.monotonic() - self._last_trigger) * 1000
        return available < least and waited_ms < self._options.trigger_delay_max_ms

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Offsets for the query's progress only, so they may say more: how far the batch stays behind."""
        if self._last_latest is None:
            return None
        return {**to_checkpoint(self._last_latest), **metrics_of(self._last_end, self._last_latest)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        ranges = self._planner.ranges(from_checkpoint(start), from_checkpoint(end))
        return [Range(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from read_range(self._options, self._decoding, partition.value)
