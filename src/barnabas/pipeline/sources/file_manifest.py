"""The manifest of a source of files: which files raw has, so that nobody has to look through raw.

In: files that were read, with the number of their batch; raw's rows. Out: a Delta table in the lake's own
folder. It may lag behind raw, never run ahead: at the next start `catch_up` adds the files of batches that it
lacks, found by raw's column `batch`. Files that are gone are pruned. Does not know: how files are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.tables import Lake, TableName, Zone
from barnabas.pipeline.sources.listing import FoundFile, canonical

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = "files"
DDL = "path string, modified_ms bigint, batch bigint"
WRITTEN_MAX = 1000  # files that wait to be written; fewer commits, and a start looks through fewer batches
PRUNE_EVERY = 50  # commits
VACUUM_HOURS = 168


class FileManifest:
    def __init__(self, spark: SparkSession, lake: Lake, source: str) -> None:
        self._spark = spark
        self._lake = lake
        self._raw = TableName(Zone.RAW, source)
        self.path = lake.own_path(FOLDER, source)
        self._unwritten: list[tuple[str, int, int]] = []
        self._commits = 0

    def catch_up(self) -> None:
        """Add the files that raw has and the manifest lacks: what a crash left out, or all at first."""
        from pyspark.sql import functions as F

        self._unwritten = []
        commits.ensure(self._spark, self.path, self._spark.createDataFrame([], DDL).schema, {})
        if not self._lake.exists(self._spark, self._raw):
            return
        newest = self.files().agg(F.max("batch")).first()
        after = -1 if newest is None or newest[0] is None else int(newest[0])
        rows = self._lake.read(self._spark, self._raw).where(f"batch > {after}")
        found = rows.groupBy("topic", "timestamp").agg(F.max("batch").alias("batch"))
        found = found.select(
            canonical(F.col("topic")).alias("path"),
            F.unix_millis("timestamp").alias("modified_ms"),
            "batch",
        )
        # Files that are missing are few, and most starts find none: one job instead of two.
        found = found.cache()
        try:
            if not found.isEmpty():
                commits.append(found, self.path, None)
        finally:
            found.unpersist()

    def files(self) -> DataFrame:
        return self._spark.read.format("delta").load(self.path)

    def known(self, found: Sequence[FoundFile]) -> set[tuple[str, int]]:
        """Path and time of those of these files that were read; `found` has a few thousand at most."""
        self.flush()
        asked = self._spark.createDataFrame(
            [each.identity for each in found], "path string, modified_ms bigint"
        )
        rows = self.files().join(asked, ["path", "modified_ms"], "left_semi").distinct().collect()
        return {(row["path"], row["modified_ms"]) for row in rows}

    def oldest_unread(self, listed: DataFrame, most: int) -> list[FoundFile]:
        """The oldest files that were not read. The comparison is made by executors."""
        from pyspark.sql import functions as F

        self.flush()
        read = self.files().select(F.col("path").alias("key"), "modified_ms")
        unread = listed.join(read, ["key", "modified_ms"], "left_anti")
        oldest = unread.orderBy("modified_ms", "path").limit(most)
        return [FoundFile(*row) for row in oldest.select("path", "modified_ms", "size", "key").collect()]

    def add(self, found: Sequence[FoundFile], batch: int) -> None:
        self._unwritten += [(*each.identity, batch) for each in found]
        if len(self._unwritten) >= WRITTEN_MAX:
            self.flush()

    def flush(self) -> None:
        if not self._unwritten:
            return
        rows = self._spark.createDataFrame(self._unwritten, DDL)
        commits.append(rows.coalesce(1), self.path, None)
        self._unwritten = []
        self._commits += 1

    @property
    def is_due(self) -> bool:
        """Whether it should be pruned."""
        return self._commits >= PRUNE_EVERY

    def prune(self, listed: DataFrame) -> None:
        """Forget files that are gone, and compact. The newest batch stays: `catch_up` begins behind it."""
        from pyspark.sql import functions as F

        self._commits = 0
        there = listed.select(F.col("key").alias("path"), "modified_ms")
        newest = self.files().agg(F.max("batch")).first()
        last = -1 if newest is None or newest[0] is None else int(newest[0])
        kept = self.files().join(there.withColumn("there", F.lit(True)), ["path", "modified_ms"], "left")
        kept = kept.where(F.col("there") | (F.col("batch") >= last)).select("path", "modified_ms", "batch")
        commits.overwrite(kept.distinct(), self.path)
        self._spark.sql(f"VACUUM delta.`{self.path}` RETAIN {VACUUM_HOURS} HOURS")
