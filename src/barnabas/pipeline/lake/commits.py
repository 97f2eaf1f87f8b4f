"""Commits of Delta tables that happen once: each carries a transaction id, and repeating it changes nothing.

In: rows, a table's path, the transaction id. Out: commits. `engine/delta` has what any writer needs; here are
merges by the platform's columns and appends of writers that follow a table. Does not know: what rows mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.engine.delta.commits import (
    APP_CONF,
    CHANGES,
    EPOCH,
    METADATA_CONF,
    PROPERTIES,
    VERSION_CONF,
    Txn,
    add_columns,
    append,
    as_transaction,
    delete,
    ensure,
    overwrite,
)
from barnabas.engine.delta.log import newest_version, transactions_in
from barnabas.pipeline.lake.columns import DELETE, OFFSET, OP, PARTITION, SYSTEM_COLUMNS
from barnabas.pipeline.lake.fast_append import append_after
from barnabas.pipeline.lake.tables import Lake, TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "APP_CONF",
    "CHANGES",
    "EPOCH",
    "METADATA_CONF",
    "PROPERTIES",
    "VERSION_CONF",
    "Appender",
    "Txn",
    "add_columns",
    "append",
    "as_transaction",
    "delete",
    "ensure",
    "merge",
    "overwrite",
    "rewriting",
    "rewriting_app",
]

BATCH_VIEW = "_barnabas_batch"


def rewriting_app(app: str) -> str:
    """The writer of commands that rewrite what the batches of a writer wrote."""
    return f"{app}/rewrite"


def rewriting(spark: SparkSession, lake: Lake, table: TableName, app: str, epoch: int) -> Txn:
    """An id for a commit of a command, which is repeated as a whole, not skipped. Its number grows with the
    table's version; commands on a table must not run side by side."""
    return Txn.of(rewriting_app(app), epoch, lake.version(spark, table) + 1)


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
