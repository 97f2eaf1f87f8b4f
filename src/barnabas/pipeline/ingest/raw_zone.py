"""The raw zone: bytes as the source gave them. Each commit also holds the source's position behind its rows.

In: rows and the position behind them. Out: one commit with both; after a restart the newest checkpoint.
Does not know: what is in the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from barnabas.engine.errors import CommitConflict, ForeignLake
from barnabas.pipeline.ingest import table_properties
from barnabas.pipeline.ingest.audit_mark import AuditMark
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.tables import Lake, TableName, Zone
from barnabas.pipeline.sources.source_slice import Position
from barnabas.pipeline.spec.model import Merging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " metadata string, source string, batch bigint, ingested_at timestamp"
)
PROPERTIES = {
    "delta.appendOnly": "true",
    table_properties.STATISTICS: table_properties.raw_statistics(),
    **commits.CHANGES,
}
COLUMNS = tuple(part.split()[0] for part in DDL.split(", "))
COORDINATES = ("topic", "partition", "offset")
CHECKPOINT_FORMAT = 1
HISTORY_SHORT = 30


@dataclass(frozen=True, slots=True)
class RawCheckpoint:
    """The statement of a batch's commit about its source.

    `newest` is the newest event time so far. Lateness is decided by the one before the batch. `references`
    are the versions of the tables that rules refer to: a batch that is finished later is judged by them.
    `audit`: how far the audit had counted; None if the pipeline does not count."""

    pipeline: str
    source: str
    batch: int
    position: Position | None
    merging: Merging = Merging.INSERT_NEW
    newest: str | None = None
    newest_before: str | None = None
    references: Mapping[str, int] = field(default_factory=dict)
    audit: AuditMark | None = None

    def text(self) -> str:
        return json.dumps(
            {
                "barnabas": CHECKPOINT_FORMAT,
                "pipeline": self.pipeline,
                "source": self.source,
                "batch": self.batch,
                "position": self.position,
                "merging": str(self.merging),
                "newest": self.newest,
                "newest_before": self.newest_before,
                "references": dict(self.references),
                **({"audit": self.audit.to_json()} if self.audit is not None else {}),
            }
        )

    @classmethod
    def parse(cls, text: str | None) -> RawCheckpoint | None:
        try:
            found: Any = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(found, dict) or found.get("barnabas") != CHECKPOINT_FORMAT:
            return None
        return cls(
            found["pipeline"],
            found["source"],
            found["batch"],
            found["position"],
            Merging(found["merging"]),
            found["newest"],
            found["newest_before"],
            found.get("references", {}),
            AuditMark.of_json(found.get("audit")),
        )

    def following(
        self,
        position: Position,
        merging: Merging,
        newest: datetime | None,
        references: Mapping[str, int] | None = None,
        audit: AuditMark | None = None,
    ) -> RawCheckpoint:
        latest = max((each for each in (self.newest, newest and newest.isoformat()) if each), default=None)
        return replace(
            self,
            batch=self.batch + 1,
            position=position,
            merging=merging,
            newest=latest,
            newest_before=self.newest,
            references=references or {},
            audit=audit,
        )


class RawZone:
    def __init__(self, spark: SparkSession, lake: Lake, pipeline: str, source: str, epoch: int = 0) -> None:
        self._epoch = epoch
        self._spark = spark
        self._lake = lake
        self._pipeline = pipeline
        self._source = source
        self.table = TableName(Zone.RAW, source)
        self.path = lake.path(self.table)
        self._appender = commits.Appender(lake)

    def newest_checkpoint(self) -> RawCheckpoint | None:
        """The checkpoint of the last batch; None if the source was never read."""
        if not self._lake.exists(self._spark, self.table):
            return None
        for limit in (f"LIMIT {HISTORY_SHORT}", ""):
            history = self._spark.sql(f"DESCRIBE HISTORY delta.`{self.path}` {limit}")
            checkpoints = [RawCheckpoint.parse(row[0]) for row in history.select("userMetadata").collect()]
            found = [checkpoint for checkpoint in checkpoints if checkpoint is not None]
            if found:
                # Commits of maintenance repeat the checkpoint; a batch may have committed in between.
                newest = max(found, key=lambda checkpoint: checkpoint.batch)
                self._check(newest)
                return newest
        raise ForeignLake(
            f"{self.path} was not written by Barnabas: its commits hold no position; choose another lake"
        )

    def _check(self, checkpoint: RawCheckpoint) -> None:
        if (checkpoint.pipeline, checkpoint.source) != (self._pipeline, self._source):
            raise ForeignLake(
                f"{self.path} belongs to source {checkpoint.source} of pipeline {checkpoint.pipeline},"
                f" not to source {self._source} of pipeline {self._pipeline}: choose another lake,"
                " or use the old names"
            )

    def begin(self, position: Position | None) -> RawCheckpoint:
        """The checkpoint before the first batch. A position is kept by the commit of an empty table."""
        checkpoint = RawCheckpoint(self._pipeline, self._source, 0, position)
        if position is not None:
            self.write(self._spark.createDataFrame([], DDL), checkpoint)
        return checkpoint

    def write(self, rows: DataFrame, checkpoint: RawCheckpoint) -> None:
        """Commit a batch. CommitConflict if raw has it already, because another run reads the same source."""
        before = self._lake.version(self._spark, self.table)
        properties = PROPERTIES if before < 0 else None
        txn = self.txn(checkpoint.batch)
        self._appender.append(rows, self.path, txn, metadata=checkpoint.text(), properties=properties)
        if self._lake.version(self._spark, self.table) == before:
            raise CommitConflict(
                f"batch {checkpoint.batch} of source {self._source} was written by another run:"
                " stop one of the two"
            )

    def txn(self, batch: int) -> commits.Txn:
        return commits.Txn.of(f"{self._pipeline}/{self._source}/raw", self._epoch, batch)

    def rows(self, batch: int) -> DataFrame:
        """The rows of a batch, in any order."""
        return self._lake.read(self._spark, self.table).where(f"batch = {int(batch)}")
