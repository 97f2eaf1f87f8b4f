"""A range of topics as DataFrames, one for each topic.

In: ranges of offsets. Out: a decoded range, kept by Spark until it is written, whose frames can be read more
than once without fetching again. Does not know: groups, sinks.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.data import Schema
from barnabas.connect.jobs.decoding import HEADERS_DDL, PACKETS, Decoding, Unpacking
from barnabas.connect.jobs.pieces import Piece
from barnabas.connect.jobs.reports import Report
from barnabas.connect.jobs.schemas import Packet, Shapes, cut_ranges, shapes_of
from barnabas.connect.plugins.spark import Ranges, RecordCheck
from barnabas.engine.session import parallelism
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.planning import split
from barnabas.spark.reading.fetcher import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ROWS_A_PIECE = 10_000  # a range is not cut into smaller pieces than that
FIXED = "topic string, `partition` int, `offset` bigint, timestamp timestamp"


@dataclass(slots=True)
class DecodedRange:
    """Packets of a range, persisted. `release` frees them."""

    packets: DataFrame
    ranges: dict[TopicPartition, tuple[int, int]]  # cut where schemas do not fit
    shapes: Shapes
    reports: list[Report]

    def frame(self, topic: str) -> DataFrame:
        """The rows of a topic: topic, partition, offset, timestamp, key, value, headers."""
        from pyspark.sql import functions as sql
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = frame_schema(*self.shapes.by_topic[topic])
        arrow: Any = to_arrow_schema(schema, timezone="UTC")
        cuts = {(where.topic, where.partition): offset for where, offset in self.shapes.cuts.items()}
        mine = self.packets.filter(sql.col("topic") == topic)
        for (source, partition), offset in cuts.items():
            is_here = (sql.col("source") == source) & (sql.col("partition") == partition)
            mine = mine.filter(~is_here | (sql.col("first") < offset))
        return mine.select("source", "partition", "data").mapInArrow(Unpacking(arrow, cuts), schema)

    def release(self) -> None:
        self.packets.unpersist()


def frame_schema(key: Schema | None, value: Schema | None) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    fixed = cast("StructType", StructType.fromDDL(FIXED))
    headers = cast("StructType", StructType.fromDDL(f"headers {HEADERS_DDL}"))
    sides = [
        StructField(name, StringType() if schema is None else schema.spark, True)
        for name, schema in (("key", key), ("value", value))
    ]
    return StructType([*fixed.fields, *sides, *headers.fields])


def decode(
    spark: SparkSession,
    piece: Piece,
    client: ClientSettings,
    ranges: Ranges,
    topic_ids: Mapping[str, bytes],
    check: RecordCheck | None = None,
    sink: str = "",
) -> DecodedRange:
    """Fetch and decode a range on executors, without the records that the sink's check refuses."""
    wanted = [
        OffsetRange(where.topic, topic_ids.get(where.topic, bytes(16)), where.partition, first, end)
        for where, (first, end) in sorted(ranges.items())
    ]
    rows = sum(each.stop - each.start for each in wanted)
    pieces = split(wanted, max(1, min(parallelism(spark), rows // ROWS_A_PIECE)), None)
    decoding = Decoding(piece, client, tuple(pieces), check, sink)
    numbers = spark.range(0, len(pieces), 1, max(1, len(pieces)))
    packets = numbers.mapInArrow(decoding, PACKETS).persist()
    try:
        found = packets.drop("data").collect()
    except BaseException:
        packets.unpersist()
        raise
    shapes = shapes_of(
        Packet(
            TopicPartition(row["source"], row["partition"]),
            row["first"],
            row["topic"],
            row["count"],
            *pickle.loads(row["shape"]),
        )
        for row in found
        if row["report"] is None
    )
    reports = [Report.read(row["report"]) for row in found if row["report"] is not None]
    return DecodedRange(packets, cut_ranges(ranges, shapes.cuts), shapes, reports)
