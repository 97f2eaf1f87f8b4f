"""The raw zone: bytes as they came. Its commits also hold how far the source was read.

In: rows, the position behind them. Out: one commit with both, so that neither is without the other; and the
newest mark after a restart. Does not know: what is in the bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from barnabas.pipeline.engine.errors import ForeignLake, Interrupted
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.tables import Lake, Table, Zone
from barnabas.pipeline.sources.source_slice import Position
from barnabas.pipeline.spec.model import Merging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " metadata string, source string, batch bigint, ingested_at timestamp"
)
PROPERTIES = {"delta.appendOnly": "true", **commits.CHANGES}
COLUMNS = tuple(part.split()[0] for part in DDL.split(", "))
COORDINATES = ("topic", "partition", "offset")
FORMAT = 1
HISTORY_SHORT = 30


@dataclass(frozen=True, slots=True)
class Mark:
    """What the commit of a batch says. `newest` are event times: what is late is judged by the one before."""

    pipeline: str
    source: str
    batch: int
    position: Position | None
    merging: Merging = Merging.FIRST
    newest: str | None = None
    newest_before: str | None = None

    def text(self) -> str:
        return json.dumps(
            {
                "barnabas": FORMAT,
                "pipeline": self.pipeline,
                "source": self.source,
                "batch": self.batch,
                "position": self.position,
                "merging": str(self.merging),
                "newest": self.newest,
                "newest_before": self.newest_before,
            }
        )

    @classmethod
    def parse(cls, text: str | None) -> Mark | None:
        try:
            found: Any = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(found, dict) or found.get("barnabas") != FORMAT:
            return None
        return cls(
            found["pipeline"],
            found["source"],
            found["batch"],
            found["position"],
            Merging(found["merging"]),
            found["newest"],
            found["newest_before"],
        )

    def following(self, position: Position, merging: Merging, newest: datetime | None) -> Mark:
        latest = max((each for each in (self.newest, newest and newest.isoformat()) if each), default=None)
        return replace(
            self,
            batch=self.batch + 1,
            position=position,
            merging=merging,
            newest=latest,
            newest_before=self.newest,
        )


class RawZone:
    def __init__(self, spark: SparkSession, lake: Lake, pipeline: str, source: str) -> None:
        self._spark = spark
        self._lake = lake
        self._pipeline = pipeline
        self._source = source
        self.table = Table(Zone.RAW, source)
        self.path = lake.path(self.table)
        self._appender = commits.Appender(lake.is_local)

    def newest_mark(self) -> Mark | None:
        """None where nothing was ever read."""
        if not self._lake.exists(self._spark, self.table):
            return None
        for limit in (f"LIMIT {HISTORY_SHORT}", ""):
            history = self._spark.sql(f"DESCRIBE HISTORY delta.`{self.path}` {limit}")
            marks = [Mark.parse(row[0]) for row in history.select("userMetadata").collect()]
            found = [mark for mark in marks if mark is not None]
            if found:
                # Maintenance repeats the mark it saw; a batch may have come while it worked.
                newest = max(found, key=lambda mark: mark.batch)
                self._check(newest)
                return newest
        raise ForeignLake(
            f"{self.path} was not written by this platform: its commits hold no position; choose another lake"
        )

    def _check(self, mark: Mark) -> None:
        if (mark.pipeline, mark.source) != (self._pipeline, self._source):
            raise ForeignLake(
                f"{self.path} belongs to the source {mark.source} of pipeline {mark.pipeline}, this is"
                f" {self._source} of {self._pipeline}: choose another lake, or the name it had"
            )

    def begin(self, position: Position | None) -> Mark:
        """Where reading begins. A position that must be kept is kept by the commit of an empty table."""
        mark = Mark(self._pipeline, self._source, 0, position)
        if position is not None:
            self.write(self._spark.createDataFrame([], DDL), mark)
        return mark

    def write(self, rows: DataFrame, mark: Mark) -> None:
        """Interrupted where the batch is there already: another run reads the same source."""
        before = self._lake.version(self._spark, self.table)
        properties = PROPERTIES if before < 0 else None
        txn = self.txn(mark.batch)
        self._appender.append(rows, self.path, txn, metadata=mark.text(), properties=properties)
        if self._lake.version(self._spark, self.table) == before:
            raise Interrupted(
                f"batch {mark.batch} of source {self._source} was written by another run:"
                " two at once are one too many"
            )

    def txn(self, batch: int) -> commits.Txn:
        return commits.Txn(f"{self._pipeline}/{self._source}/raw", batch)

    def rows(self, batch: int) -> DataFrame:
        """A batch, in the order in which it was read."""
        found = self._lake.read(self._spark, self.table).where(f"batch = {int(batch)}")
        return found.orderBy(*COORDINATES)
