"""Commits of Delta tables that happen once: each carries a transaction id, and repeating it changes nothing.

In: rows, a table's path, the transaction id. Out: commits. Does not know: which tables there are, what rows
mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
