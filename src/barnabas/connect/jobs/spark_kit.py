"""A test kit for connectors that are Spark jobs: a session is all that it needs, no worker and no broker.

In: a connector class, its configuration, a session. Out: the rows of a source's slices, with offsets stored
after each; or what a sink did with rows. Does not know: converters, transforms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.data import Column, Records, Schema
from barnabas.connect.jobs.batches import frame_schema
from barnabas.connect.jobs.refusals import judged
from barnabas.connect.jobs.shaping import ShapedRecords, shaped
from barnabas.connect.jobs.source_job import columns_of
from barnabas.connect.plugins import (
    Batch,
    ConnectError,
    Connector,
    SinkContext,
    SourceContext,
    SparkSink,
    SparkSource,
)
from barnabas.connect.tasks.kit import Kit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkKit(Kit):
    """One task of a connector, started with the kit."""

    def __init__(
        self,
        connector: type[Connector],
        config: Mapping[str, str],
        spark: SparkSession,
        *,
        offsets: Sequence[tuple[Any, Any]] = (),
    ) -> None:
        super().__init__(connector, config, offsets=offsets)
        self._spark = spark
        self._number = -1
        self._next: dict[str, int] = {}
        if isinstance(self.task, SparkSource):
            self.task.start(
                SourceContext("test", 0, self._settings, self._config, self.stopping, offsets=self.offsets)
            )
        elif isinstance(self.task, SparkSink):
            self.task.start(SinkContext("test", 0, self._settings, self._config, self.stopping))
        else:
            raise ConnectError(f"{type(self.task).__name__} is no Spark job: use Kit")

    def plan(self) -> list[dict[str, Any]]:
        """The rows of the next slice as dicts, empty if there is none; its offsets are stored."""
        if not isinstance(self.task, SparkSource):
            raise ConnectError(f"{type(self.task).__name__} is no source")
        found = self.task.plan(self._spark, self.offsets)
        if found is None:
            return []
        rows = [row.asDict(recursive=True) for row in columns_of(found.frame).collect()]
        self.offsets.save(found.positions)
        self.task.commit(found.positions)
        return rows

    def write(
        self,
        topic: str,
        values: Iterable[Any],
        schema: Schema | None = None,
        *,
        keys: Sequence[Any] | None = None,
        number: int | None = None,
    ) -> Batch:
        """Give a sink a batch of one partition. `number` repeats an earlier batch. Records that the sink
        refuses are in `errant`."""
        if not isinstance(self.task, SparkSink):
            raise ConnectError(f"{type(self.task).__name__} is no sink")
        rows = list(values)
        self._number = self._number + 1 if number is None else number
        first = self._next.get(topic, 0) if number is None else 0
        end = first + len(rows)
        self._next[topic] = max(self._next.get(topic, 0), end)
        records = Records.of(
            topic,
            Column.of(rows, schema),
            Column.of(keys if keys is not None else [None] * len(rows)),
            partitions=[0] * len(rows),
            offsets=list(range(first, end)),
        )
        self.task.open(self._spark, [topic])
        for shape in self._kept(topic, records):
            (key_schema, keys_there), (value_schema, values_there) = shape.keys, shape.values
            offsets, key_list, value_list = (
                each.to_pylist() for each in (shape.records.offsets, keys_there, values_there)
            )
            data = [
                (topic, 0, offset, None, key, value, None)
                for offset, key, value in zip(offsets, key_list, value_list, strict=True)
            ]
            frame = self._spark.createDataFrame(data, frame_schema(key_schema, value_schema))
            batch = Batch(
                "test", 0, self._number, {TopicPartition(topic, 0): (first, end)}, key_schema, value_schema,
                topic, config=self._config,
            )  # fmt: skip
            self.task.write(frame, batch)
        return batch

    def _kept(self, topic: str, records: Records) -> list[ShapedRecords]:
        check = self.task.record_check(self._spark)
        if check is None:
            return [ShapedRecords(records, shaped(records.keys), shaped(records.values))]
        kept, refused = judged(check, topic, records)
        for index, text in sorted(refused.items()):
            self.errant += [(one, ConnectError(text)) for one in records.take([index]).rows()]
        return kept
