"""A table of the lake by version.

In: a session, the lake, the table. Out: rows as of a version (time travel), changes between two versions
(change data feed), and the newest version. Does not know: views, refined tables.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from barnabas.engine.delta.log import commit_text, transactions_in
from barnabas.pipeline.lake.tables import Lake, TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE = "_change_type"
CHANGE_COLUMNS = (CHANGE, "_commit_version", "_commit_timestamp")
INSERT = "insert"
COMMITS_READ_MAX = 1_000


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a table, and when it was committed."""

    version: int
    at: datetime


class SourceTable:
    """A table of the lake as a sequence of versions."""

    def __init__(self, spark: SparkSession, lake: Lake, table: TableName) -> None:
        self._spark = spark
        self._lake = lake
        self.table = table
        self._identity = ""
        self._seen = -1
        self._committed: TableVersion | None = None  # the version that was asked for last

    def current(self) -> TableVersion | None:
        """The newest version; None if the table does not exist."""
        version = self._lake.version(self._spark, self.table)
        if version < 0:
            return None
        if version < self._seen:
            self.forget()  # the table was deleted and made again
        self._seen = version
        if self._committed is None or self._committed.version != version:
            self._committed = TableVersion(version, self.committed_at(version))
        return self._committed

    def committed_at(self, version: int) -> datetime:
        for action in self._commit(version) or ():
            if info := action.get("commitInfo"):
                stamp = info.get("inCommitTimestamp", info.get("timestamp"))
                if stamp is not None:
                    return datetime.fromtimestamp(stamp / 1000, UTC)
        name = self._lake.identifier(self.table)
        limit = f"LIMIT {self._seen - version + 1}" if self._seen >= version else ""
        history = self._spark.sql(f"DESCRIBE HISTORY {name} {limit}")
        rows = history.where(f"version = {version}").select("timestamp")
        found = rows.selectExpr("unix_millis(timestamp)").first()
        return datetime.fromtimestamp(found[0] / 1000, UTC) if found else datetime.now(UTC)

    def identity(self) -> str:
        """Delta's id of the table; a table that was deleted and made again has another id."""
        if not self._identity:
            row = self._spark.sql(f"DESCRIBE DETAIL {self._lake.identifier(self.table)}").select("id").first()
            self._identity = str(row[0]) if row else ""
        return self._identity

    def forget(self) -> None:
        """Read the identity again the next time."""
        self._identity, self._committed = "", None

    def rows(self, version: int) -> DataFrame:
        return self._lake.read(self._spark, self.table, version)

    def changes(self, after: int, upto: int) -> DataFrame:
        """Changes in (after, upto], with `_change_type`."""
        reader = self._spark.read.format("delta").option("readChangeFeed", "true")
        reader = reader.option("startingVersion", after + 1).option("endingVersion", upto)
        return reader.load(self._lake.path(self.table))

    def changed_rows(self, after: int, upto: int) -> DataFrame:
        """Rows before and after each change in (after, upto], without the columns of the feed."""
        return self.changes(after, upto).drop(*CHANGE_COLUMNS)

    def only_adds(self, after: int, upto: int) -> bool | None:
        """Whether (after, upto] only added rows; None if commits are gone, or only Spark can read them."""
        if upto - after > COMMITS_READ_MAX:
            return None
        for version in range(after + 1, upto + 1):
            actions = self._commit(version)
            if actions is None:
                return None
            for action in actions:
                if "cdc" in action or action.get("remove", {}).get("dataChange"):
                    return False
        return True

    def is_commit(self, version: int, app: str, number: int) -> bool:
        """Whether this transaction made the version; False if only Spark can read the log."""
        if not self._lake.is_read_by_us:
            return False
        return transactions_in(self._log, version, self._lake.store) == [(app, number)]

    def _commit(self, version: int) -> list[dict[str, Any]] | None:
        """The actions of a commit; None if it is gone, or only Spark can read the log."""
        if not self._lake.is_read_by_us:
            return None
        text = commit_text(self._log, version, self._lake.store)
        try:
            return None if text is None else [json.loads(line) for line in text.splitlines() if line]
        except ValueError:
            return None

    @property
    def _log(self) -> str:
        return f"{self._lake.path(self.table)}/_delta_log"
