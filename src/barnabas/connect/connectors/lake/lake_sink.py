"""The lake sink: batches of records become commits of Delta tables, each exactly once, on executors.

Each table keeps the number of the last batch in its transaction ids, beside the rows: a batch that comes
again is skipped. The ranges of a batch are metadata of its commit. A task that starts fences its tables, so
that a former task which still runs cannot commit. There is one task: executors share the work.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from barnabas.connect.config import ConfigDef
from barnabas.connect.connectors.lake.batch_notes import note_of, noted_in, ranges_in
from barnabas.connect.connectors.lake.lake_check import LakeCheck
from barnabas.connect.connectors.lake.lake_constraints import Broken, broken_by, is_violation
from barnabas.connect.connectors.lake.lake_failures import lake_failures
from barnabas.connect.connectors.lake.lake_rows import (
    DELETES,
    TableRows,
    known_columns,
    nullable,
    table_rows,
)
from barnabas.connect.connectors.lake.lake_settings import definitions, lake_errors
from barnabas.connect.connectors.lake.lake_types import fitted_to, missing_in, with_missing
from barnabas.connect.plugins import (
    SINK,
    Batch,
    ConnectError,
    Connector,
    RetriableError,
    SinkContext,
    SparkSink,
)
from barnabas.connect.plugins.spark import Ranges, RecordCheck
from barnabas.engine.delta import commits, log_store
from barnabas.engine.delta.fencing import fence, last_number
from barnabas.engine.delta.log import URL, newest_version
from barnabas.engine.errors import NeedsDecision
from barnabas.engine.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger("barnabas.connect")

HISTORY_MAX = 1000  # commits in which the ranges of the last batch are looked for
FENCES_MAX = 20  # commits in which the fence of a new table is looked for
S3 = "spark.hadoop.fs.s3a."
VIEW = "_barnabas_connect_rows"
PROPERTIES: Mapping[str, str] = {}


class LakeSink(SparkSink):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._settings = context.settings
        self._epoch = 0
        self._last: tuple[int, Ranges] = (-1, {})
        self._topics: set[str] = set()
        self._fenced: set[str] = set()  # paths of tables
        self._broken: dict[str, Broken] = {}  # by topic, for the batch that comes again
        self._checked: dict[str, StructType | None] | None = None  # by path, for the last check
        root = self._settings.text("lake.path").rstrip("/")
        self._root = root if URL.match(root) else str(Path(root).expanduser().absolute())

    def path_of(self, topic: str) -> str:
        return f"{self._root}/{self._settings.text('table.name.format').replace('${topic}', topic)}"

    def app_of(self, topic: str) -> str:
        """The writer of a topic's batches in its table: one for each topic that shares a table."""
        own = "" if "${topic}" in self._settings.text("table.name.format") else f"/{topic}"
        return f"connect-{self.context.connector}{own}"

    def apps_of(self, path: str) -> list[str]:
        return sorted({self.app_of(topic) for topic in self._topics if self.path_of(topic) == path})

    # -- what the tables hold ------------------------------------------------------------------------------

    def open(self, spark: SparkSession, topics: Sequence[str]) -> None:
        """Find the last batch in the tables, then fence them against tasks that were before this one."""
        with lake_failures(f"{self._root} cannot be opened"):
            self._open(spark, topics)

    def _open(self, spark: SparkSession, topics: Sequence[str]) -> None:
        if not self._fenced:
            check_s3(spark, self._root)
        self._topics |= set(topics)
        held: dict[str, dict[str, int]] = {}
        for path in sorted({self.path_of(topic) for topic in self._topics}):
            if exists(spark, path):
                held[path] = {app: max(last_number(spark, path, app), 0) for app in self.apps_of(path)}
        numbers = [each for some in held.values() for each in some.values()]
        self._epoch = 1 + max((each // commits.EPOCH for each in numbers), default=0)
        self._last = (-1, {})
        for path, by_app in held.items():
            noted = ""
            for app, number in by_app.items():
                low = number % commits.EPOCH - 1
                found = self._noted(spark, path, app, low) if low >= 0 else ""
                if low > self._last[0]:
                    self._last = (low, ranges_in(found))
                noted = found or noted
            fence(spark, path, list(by_app), self._epoch, noted)
        self._fenced = set(held)

    def _noted(self, spark: SparkSession, path: str, app: str, number: int) -> str:
        """The metadata of the commit of a batch."""
        for text in history(spark, path, HISTORY_MAX):
            found = noted_in(text)
            if found.get("app") == app and found.get("batch") == number:
                return str(text)
        return ""

    def _claim(self, spark: SparkSession, path: str) -> None:
        """Fence a table that was made after `open`. A former task may make it, too: the one whose fence is
        there first goes on, the other opens the tables again and sees what is there."""
        if path in self._fenced:
            return
        apps, token = self.apps_of(path), json.dumps({"fence": uuid.uuid4().hex})
        if max(last_number(spark, path, app) for app in apps) < 0:
            fence(spark, path, apps, self._epoch, token)
            if token in history(spark, path, FENCES_MAX):
                self._fenced.add(path)
                return
        raise RetriableError(f"the table {path} has commits of another task: what it wrote is looked at")

    def last_batch(self) -> tuple[int, Ranges] | None:
        return self._last

    # -- writing -------------------------------------------------------------------------------------------

    def record_check(self, spark: SparkSession) -> RecordCheck:
        from pyspark.sql.pandas.types import to_arrow_schema

        self._checked, tables = {}, {}
        for topic in sorted(self._topics):
            path = self.path_of(topic)
            with lake_failures(f"{path} cannot be read"):
                there = schema_of(spark, path) if exists(spark, path) else None
            self._checked[path] = there
            if there is not None:
                tables[topic] = to_arrow_schema(there, timezone="UTC")
        return LakeCheck.of(tables, self._settings, self._broken)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        path, has_values = self.path_of(batch.topic), batch.value_schema is not None
        with lake_failures(f"{path} cannot be written"):
            if has_values or LakeCheck.of({}, self._settings).deletes:
                try:
                    self._write(frame, batch, path, has_values=has_values)
                except Exception as error:
                    if not is_violation(error):
                        raise
                    self._refuse_broken(frame, batch.topic, path, error)
        self._broken.pop(batch.topic, None)

    def _refuse_broken(self, frame: DataFrame, topic: str, path: str, error: Exception) -> None:
        """The batch comes again without the records that break a constraint of the table."""
        found = broken_by(frame, self._settings, path, schema_of(frame.sparkSession, path))
        known = self._broken.setdefault(topic, {})
        if found.keys() <= known.keys():
            raise error
        known.update(found)
        raise RetriableError(f"{len(found)} records break a constraint of {path}") from error

    def _write(self, frame: DataFrame, batch: Batch, path: str, *, has_values: bool) -> None:
        spark = frame.sparkSession
        rows = table_rows(frame, self._settings, has_values=has_values)
        wanted = columns_only(rows)
        is_there = exists(spark, path)
        self._check_is_current(spark, batch.topic, path, is_there=is_there)
        if not is_there:
            if not has_values:
                return  # nothing to delete
            self._create(spark, path, wanted, rows)
        self._claim(spark, path)
        rows = self._evolved(spark, path, wanted, rows)
        app = self.app_of(batch.topic)
        txn = commits.Txn.of(app, self._epoch, batch.number + 1)
        noted = note_of(app, batch.number, batch.ranges)
        if self._settings.text("insert.mode") == "upsert":
            merge(spark, path, rows, txn, noted)
        else:
            commits.append(rows.frame, path, txn, metadata=noted)

    def _check_is_current(self, spark: SparkSession, topic: str, path: str, *, is_there: bool) -> None:
        """RetriableError if records were checked against other columns than the table has now."""
        is_new = topic not in self._topics  # a transform named it
        self._topics.add(topic)
        if self._checked is None or (is_new and not is_there):
            return
        if is_new or self._checked.get(path) != (schema_of(spark, path) if is_there else None):
            raise RetriableError(f"the table {path} is new or has other columns: records are checked again")

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
        there = schema_of(spark, path)
        new = missing_in(there, wanted)
        if new and not self._settings.flag("auto.evolve"):
            rows = known_columns(rows, there)  # the others are null in all records that were not refused
        elif new:
            evolved = with_missing(there, wanted)
            commits.append(spark.createDataFrame([], evolved), path, None, widens=True)
            log.info("%s got %s", path, ", ".join(new))
            there = evolved
        return fitted_to(rows, there, path)


def check_s3(spark: SparkSession, root: str) -> None:
    """ConnectError if the store would let a task and its successor replace each other's commits."""
    setting = log_store.SETTING.format(scheme=root.partition("://")[0])
    if is_remote(spark) or not log_store.is_s3(root) or spark.conf.get(setting, "") != log_store.CLASS:
        return  # a log store of the user's choice
    settings = {name: value for name, value in spark.conf.getAll.items() if name.startswith(S3)}
    try:
        log_store.check_store(f"{root}/_barnabas/probe", settings)
    except NeedsDecision as error:
        raise ConnectError(str(error)) from error


def exists(spark: SparkSession, path: str) -> bool:
    from pyspark.errors import AnalysisException

    if not URL.match(path):
        return newest_version(f"{path}/_delta_log") >= 0  # a folder without a commit is left by a kill
    try:
        spark.read.format("delta").load(path).schema  # noqa: B018 (reading it fails where there is no table)
    except AnalysisException:
        return False
    return True


def schema_of(spark: SparkSession, path: str) -> StructType:
    return spark.read.format("delta").load(path).schema


def history(spark: SparkSession, path: str, most: int) -> list[str | None]:
    """The metadata of the last commits, the newest first."""
    rows = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT {most}").select("userMetadata").collect()
    return [row[0] for row in rows]


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
