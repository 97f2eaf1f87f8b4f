"""Commits of Delta tables that happen once: each carries a transaction id, and repeating it changes nothing.

In: rows, a table's path, the transaction id. Out: commits. Rows are appended, merged by key, or replace what
the table holds. Does not know: zones, what rows mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.pipeline.lake.columns import DELETE, OFFSET, OP, PARTITION, SYSTEM_COLUMNS
from barnabas.pipeline.lake.delta_log import newest_version, transactions_in
from barnabas.pipeline.lake.fast_append import append_after
from barnabas.pipeline.lake.tables import Lake, TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

APP_CONF = "spark.databricks.delta.write.txnAppId"
VERSION_CONF = "spark.databricks.delta.write.txnVersion"
METADATA_CONF = "spark.databricks.delta.commitInfo.userMetadata"
PROPERTIES: Mapping[str, str] = {
    "delta.checkpointInterval": "200",
    "delta.logRetentionDuration": "interval 7 days",
    "delta.dataSkippingNumIndexedCols": "8",
}
CHANGES = {"delta.enableChangeDataFeed": "true"}
BATCH_VIEW = "_barnabas_batch"
EPOCH = 2**40  # of the lease, in the numbers of transaction ids


@dataclass(frozen=True, slots=True)
class Txn:
    """A transaction id: the writer and its number. Delta keeps the highest number of each writer.

    The number has the epoch of the lake's lease in its high bits (`fencing`)."""

    app: str
    version: int

    @classmethod
    def of(cls, app: str, epoch: int, number: int) -> Txn:
        return cls(app, epoch * EPOCH + number)


def rewriting_app(app: str) -> str:
    """The writer of commands that rewrite what the batches of a writer wrote."""
    return f"{app}/rewrite"


def rewriting(spark: SparkSession, lake: Lake, table: TableName, app: str, epoch: int) -> Txn:
    """An id for a commit of a command, which is repeated as a whole, not skipped. Its number grows with the
    table's version; commands on a table must not run side by side."""
    return Txn.of(rewriting_app(app), epoch, lake.version(spark, table) + 1)


def ensure(
    spark: SparkSession,
    path: str,
    schema: StructType,
    properties: Mapping[str, str],
    partition: Sequence[str] = (),
) -> None:
    """Create an empty table if there is none."""
    writer = spark.createDataFrame([], schema).write.format("delta").mode("ignore")
    if partition:
        writer = writer.partitionBy(*partition)
    writer.options(**{**PROPERTIES, **properties}).save(path)


def append(
    rows: DataFrame,
    path: str,
    txn: Txn | None,
    *,
    metadata: str = "",
    properties: Mapping[str, str] | None = None,
    widens: bool = False,
) -> None:
    writer = rows.write.format("delta").mode("append")
    if txn is not None:
        writer = writer.option("txnAppId", txn.app).option("txnVersion", txn.version)
    if metadata:
        writer = writer.option("userMetadata", metadata)
    if widens:
        writer = writer.option("mergeSchema", "true")
    for name, value in {**PROPERTIES, **properties}.items() if properties is not None else ():
        writer = writer.option(name, value)
    writer.save(path)


class Appender:
    """Appends of one writer, one after another. It remembers the version of its last commit to each table."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._left: dict[str, int] = {}

    def append(
        self,
        rows: DataFrame,
        path: str,
        txn: Txn,
        *,
        metadata: str = "",
        properties: Mapping[str, str] | None = None,
        widens: bool = False,
    ) -> None:
        """As `append`, but without Delta's search for the transaction id where the table cannot have it."""
        last = self._left.pop(path, None)
        if last is not None and properties is None and not widens:
            version = append_after(rows, path, last, txn.app, txn.version, metadata)
            if version is not None:
                self._left[path] = version
                return
        append(rows, path, txn, metadata=metadata, properties=properties, widens=widens)
        if self._lake.is_read_by_us:
            log, store = f"{path}/_delta_log", self._lake.store
            version = newest_version(log, store)
            if transactions_in(log, version, store) == [(txn.app, txn.version)]:
                self._left[path] = version


@contextmanager
def as_transaction(spark: SparkSession, txn: Txn) -> Iterator[None]:
    """Let SQL statements commit with this id: they take it from the session."""
    spark.conf.set(APP_CONF, txn.app)
    spark.conf.set(VERSION_CONF, str(txn.version))
    try:
        yield
    finally:
        spark.conf.unset(APP_CONF)
        spark.conf.unset(VERSION_CONF)


def merge(
    rows: DataFrame, path: str, keys: Sequence[str], columns: Sequence[str], txn: Txn, *, mirrors: bool
) -> None:
    """Merge rows by key; a row with `_op` d deletes its key. `mirrors`: keys without a row are deleted
    too."""
    spark = rows.sparkSession
    rows.createOrReplaceTempView(BATCH_VIEW)
    same_key = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in keys)
    assignments = ", ".join(f"t.`{name}` = s.`{name}`" for name in columns)
    names = ", ".join(f"`{name}`" for name in columns)
    values = ", ".join(f"s.`{name}`" for name in columns)
    business = [name for name in columns if name not in SYSTEM_COLUMNS]
    equal = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in business)
    # A partial replay may bring rows that are older than those of the table.
    newer = f"(t.`{PARTITION}` <> s.`{PARTITION}` OR t.`{OFFSET}` <= s.`{OFFSET}`)"
    condition = f"NOT ({equal})" if mirrors else newer
    statement = f"""
        MERGE INTO delta.`{path}` t USING {BATCH_VIEW} s ON {same_key}
        WHEN MATCHED AND s.`{OP}` = '{DELETE}' AND {newer if not mirrors else "true"} THEN DELETE
        WHEN MATCHED AND s.`{OP}` <> '{DELETE}' AND {condition} THEN UPDATE SET {assignments}
        WHEN NOT MATCHED AND s.`{OP}` <> '{DELETE}' THEN INSERT ({names}) VALUES ({values})
        {"WHEN NOT MATCHED BY SOURCE THEN DELETE" if mirrors else ""}"""
    with as_transaction(spark, txn):
        spark.sql(statement)
    spark.catalog.dropTempView(BATCH_VIEW)


def overwrite(
    rows: DataFrame, path: str, txn: Txn | None = None, *, where: str = "", metadata: str = ""
) -> None:
    writer = rows.write.format("delta").mode("overwrite")
    if txn is not None:
        writer = writer.option("txnAppId", txn.app).option("txnVersion", txn.version)
    writer = writer.option("replaceWhere", where) if where else writer.option("overwriteSchema", "true")
    if metadata:
        writer = writer.option("userMetadata", metadata)
    writer.save(path)


def delete(spark: SparkSession, path: str, where: str, txn: Txn | None) -> None:
    with as_transaction(spark, txn) if txn is not None else nullcontext():
        spark.sql(f"DELETE FROM delta.`{path}` WHERE {where}")


def add_columns(spark: SparkSession, path: str, schema: StructType) -> list[str]:
    """Add the columns that the table lacks; their names."""
    there = {name.lower() for name in spark.read.format("delta").load(path).columns}
    new = [each for each in schema.fields if each.name.lower() not in there]
    if new:
        columns = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in new)
        spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({columns})")
    return [each.name for each in new]
