"""The contract of tasks that are Spark jobs: rows stay on executors.

A source plans one slice after the other; a sink is given a bounded range of its topics as one DataFrame. The
runtime converts, transforms, produces and commits around them. Does not know: sessions, converters, groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.plugins.contexts import OffsetReader, SinkContext, SourceContext
from barnabas.connect.plugins.tasks import Positions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.connect.data import Schema

Ranges = Mapping[TopicPartition, tuple[int, int]]  # first offset, offset behind the last

# Finds records that a sink cannot take: from a pa.Table of one topic, with columns and types of the sink's
# frame, to the rows that do not fit, each with the reason. Executors call it, so it is pickled.
RecordCheck = Callable[[Any], Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows of a source as a lazy DataFrame, and the positions that are reached when they are written.

    Columns of the frame: `value`, optionally `key`, `topic`, `partition`, `timestamp`, `headers` (array of
    key and value). `topic` here is for frames without that column. Schemas None: taken from the frame's types
    (a missing key column is a null key).
    """

    frame: DataFrame
    positions: Positions = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    topic: str | None = None
    rows: int | None = None  # how many, if the source knows without counting


class SparkSource:
    """Reads a table or a store in bulk."""

    context: SourceContext
    poll_interval_s: float = 5.0  # how long the runtime waits after a plan without a slice

    def start(self, context: SourceContext) -> None:
        self.context = context

    def plan(self, spark: SparkSession, offsets: OffsetReader) -> Slice | None:
        """The next slice, or None if there is nothing new. The runtime writes it before it asks again."""
        raise NotImplementedError

    def commit(self, positions: Positions) -> None:
        """The slice that ends at these positions is written and its offsets are stored."""

    def stop(self) -> None:
        """Close what `start` opened."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The records that a DataFrame of a sink holds. A batch tried again has the same number and ranges."""

    connector: str
    task: int
    number: int
    ranges: Ranges
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    topic: str = ""  # of all rows of the frame
    part: int = 0  # records of several topics come as several parts, one for each topic
    parts: int = 1
    config: Mapping[str, str] = field(default_factory=dict, repr=False)  # passwords may be among them

    @property
    def end(self) -> dict[TopicPartition, int]:
        """The offsets that are reached when this batch is written."""
        return {where: end for where, (_, end) in self.ranges.items()}


class SparkSink:
    """Writes DataFrames: columns `topic`, `partition`, `offset`, `timestamp`, `key`, `value`, `headers`."""

    context: SinkContext

    def start(self, context: SinkContext) -> None:
        self.context = context

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Make these rows durable before it returns. RetriableError: the same batch comes again."""
        raise NotImplementedError

    def record_check(self, spark: SparkSession) -> RecordCheck | None:
        """The function that finds records of the next batch which cannot be written; None: all can be.

        The runtime asks before each batch. Such records are not in the frame: executors give them to
        `errors.*`, as those that a converter refuses (KIP-610)."""
        return None

    def open(self, spark: SparkSession, topics: Sequence[str]) -> None:
        """Records of these topics will come: after the start, and whenever partitions are assigned anew."""

    def last_batch(self) -> tuple[int, Ranges] | None:
        """The last batch that the sink's data holds, as a whole or in part: its number and ranges; -1 if it
        holds none. For sinks that are exactly once by these numbers: a batch whose offsets were not committed
        comes again with its number and ranges, and the sink skips what is there. None: the sink keeps no
        numbers."""
        return None

    def stop(self) -> None:
        """Close what `start` opened."""
