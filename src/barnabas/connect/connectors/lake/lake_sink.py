"""The lake sink: batches of records become commits of Delta tables, each exactly once, on executors.

Each table keeps the number of the last batch in its transaction ids, beside the rows: a batch that comes
again is skipped. The ranges of a batch are metadata of its commit. A task that starts fences its tables, so
that a former task which still runs cannot commit. There is one task: executors share the work.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from barnabas.connect.config import ConfigDef
from barnabas.connect.connectors.lake.batch_notes import note_of, noted_in, ranges_in
from barnabas.connect.connectors.lake.lake_failures import lake_failures
from barnabas.connect.connectors.lake.lake_rows import DELETES, TableRows, nullable, table_rows
from barnabas.connect.connectors.lake.lake_settings import definitions, lake_errors
from barnabas.connect.connectors.lake.lake_types import fitted_to, missing_in, with_missing
from barnabas.connect.plugins import (
    SINK,
    Batch,
    ConnectError,
    Connector,
    SinkContext,
    SparkSink,
)
from barnabas.connect.plugins.spark import Ranges
from barnabas.engine.delta import commits
from barnabas.engine.delta.fencing import fence, last_number
from barnabas.engine.delta.log import URL, newest_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger("barnabas.connect")

HISTORY_MAX = 1000  # commits in which the ranges of the last batch are looked for
VIEW = "_barnabas_connect_rows"
PROPERTIES: Mapping[str, str] = {}


class LakeSink(SparkSink):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._settings = context.settings
        self._epoch = 0
        self._last: tuple[int, Ranges] = (-1, {})
        root = self._settings.text("lake.path").rstrip("/")
        self._root = root if URL.match(root) else str(Path(root).expanduser().absolute())

    @property
    def _app(self) -> str:
        return f"connect-{self.context.connector}"

    def path_of(self, topic: str) -> str:
        return f"{self._root}/{self._settings.text('table.name.format').replace('${topic}', topic)}"

    # -- what the tables hold ------------------------------------------------------------------------------

    def open(self, spark: SparkSession, topics: Sequence[str]) -> None:
        """Find the last batch in the tables, then fence them against tasks that were before this one."""
        with lake_failures(f"{self._root} cannot be opened"):
            self._open(spark, topics)

    def _open(self, spark: SparkSession, topics: Sequence[str]) -> None:
        held: dict[str, int] = {}
        for path in sorted({self.path_of(topic) for topic in topics}):
            if exists(spark, path):
                held[path] = max(last_number(spark, path, self._app), 0)
        self._epoch = 1 + max((each // commits.EPOCH for each in held.values()), default=0)
        self._last = (-1, {})
        for path, number in held.items():
            low = number % commits.EPOCH - 1
            noted = self._noted(spark, path, low) if low >= 0 else ""
            if low > self._last[0]:
                self._last = (low, ranges_in(noted))
            fence(spark, path, [self._app], self._epoch, noted)

    def _noted(self, spark: SparkSession, path: str, number: int) -> str:
        """The metadata of the commit of a batch."""
        rows = (
            spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT {HISTORY_MAX}").select("userMetadata").collect()
        )
        for row in rows:
            found = noted_in(row[0])
            if found.get("app") == self._app and found.get("batch") == number:
                return str(row[0])
        return ""

    def last_batch(self) -> tuple[int, Ranges] | None:
        return self._last

    # -- writing -------------------------------------------------------------------------------------------

    def write(self, frame: DataFrame, batch: Batch) -> None:
        spark, path = frame.sparkSession, self.path_of(batch.topic)
        rows = table_rows(frame, self._settings)
        wanted = columns_only(rows)
        with lake_failures(f"{path} cannot be written"):
            if not exists(spark, path):
                self._create(spark, path, wanted, rows)
            rows = self._evolved(spark, path, wanted, rows)
            txn = commits.Txn.of(self._app, self._epoch, batch.number + 1)
            noted = note_of(self._app, batch.number, batch.ranges)
            if self._settings.text("insert.mode") == "upsert":
                merge(spark, path, rows, txn, noted)
            else:
                commits.append(rows.frame, path, txn, metadata=noted)

    def _create(self, spark: SparkSession, path: str, schema: StructType, rows: TableRows) -> None:
        if not self._settings.flag("auto.create"):
            raise ConnectError(f"there is no table at {path}, and auto.create is false")
        by = self._settings.entries("lake.partition.by")
        missing = [each for each in by if each not in rows.columns]
        if missing:
            raise ConnectError(
                f"lake.partition.by names {', '.join(missing)}: columns are {', '.join(rows.columns)}"
            )
        commits.ensure(spark, path, nullable(schema, rows.keys), PROPERTIES, by)

    def _evolved(self, spark: SparkSession, path: str, wanted: StructType, rows: TableRows) -> TableRows:
        """Add columns and fields that the table lacks; rows in the types of the table."""
        there = spark.read.format("delta").load(path).schema
        new = missing_in(there, wanted)
        if new:
            if not self._settings.flag("auto.evolve"):
                raise ConnectError(f"the table {path} has no {', '.join(new)}, and auto.evolve is false")
            evolved = with_missing(there, wanted)
            commits.append(spark.createDataFrame([], evolved), path, None, widens=True)
            log.info("%s got %s", path, ", ".join(new))
            there = evolved
        return fitted_to(rows, there, path)


def exists(spark: SparkSession, path: str) -> bool:
    from pyspark.errors import AnalysisException

    if not URL.match(path):
        return newest_version(f"{path}/_delta_log") >= 0  # a folder without a commit is left by a kill
    try:
        spark.read.format("delta").load(path).schema  # noqa: B018 (reading it fails where there is no table)
    except AnalysisException:
        return False
    return True


def columns_only(rows: TableRows) -> StructType:
    return rows.frame.select(*[f"`{name}`" for name in rows.columns]).schema


def merge(spark: SparkSession, path: str, rows: TableRows, txn: commits.Txn, noted: str) -> None:
    """Upsert and delete by key, as one commit with the transaction id."""
    rows.frame.createOrReplaceTempView(VIEW)
    same_key = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in rows.keys)
    others = [name for name in rows.columns if name not in rows.keys]
    sets = ", ".join(f"t.`{name}` = s.`{name}`" for name in others or rows.keys)
    names = ", ".join(f"`{name}`" for name in rows.columns)
    values = ", ".join(f"s.`{name}`" for name in rows.columns)
    statement = f"""
        MERGE INTO delta.`{path}` t USING {VIEW} s ON {same_key}
        WHEN MATCHED AND s.`{DELETES}` THEN DELETE
        WHEN MATCHED THEN UPDATE SET {sets}
        WHEN NOT MATCHED AND NOT s.`{DELETES}` THEN INSERT ({names}) VALUES ({values})"""
    spark.conf.set(commits.METADATA_CONF, noted)
    try:
        with commits.as_transaction(spark, txn):
            spark.sql(statement)
    finally:
        spark.conf.unset(commits.METADATA_CONF)
        spark.catalog.dropTempView(VIEW)


class LakeSinkConnector(Connector):
    KIND = SINK
    CONFIG: ClassVar[ConfigDef] = definitions()
    task = LakeSink

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return lake_errors(config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """One task, however many are allowed: executors share the rows, and one writer numbers batches."""
        return [dict(self.context.config)]


class DeltaSinkConnector(LakeSinkConnector):
    pass
