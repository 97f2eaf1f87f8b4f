"""How far a refined table got: each commit says which versions of its inputs it has read.

In: commits of the table. Out: a `Progress`, and its text for the next commit. A process that is killed before
a commit has changed nothing, and one that is killed after it finds here that the increment is done.
Does not know: SQL, how rows are computed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.engine.delta.log import commit_text, newest_version
from barnabas.pipeline.lake.tables import Lake, TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "barnabas.refined.1"
COMMITS_READ_MAX = 200
HISTORY_SHORT = 30


@dataclass(frozen=True, slots=True)
class Progress:
    """The SQL's fingerprint, and the identity and version of each input that the rows come from."""

    fingerprint: str
    reads: Mapping[str, int]
    identities: Mapping[str, str]

    def text(self) -> str:
        value = {"reads": dict(self.reads), "identities": dict(self.identities)}
        return json.dumps({"format": FORMAT, "fingerprint": self.fingerprint, **value}, sort_keys=True)

    @classmethod
    def parse(cls, text: str | None) -> Progress | None:
        try:
            found: Any = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            return None
        return cls(found["fingerprint"], found["reads"], found["identities"])

    def can_continue(self, before: Progress) -> bool:
        """Whether the changes after an earlier progress lead here."""
        return (
            before.fingerprint == self.fingerprint
            and before.identities == self.identities
            and all(version >= before.reads.get(name, version + 1) for name, version in self.reads.items())
        )


def fingerprint(sql: str) -> str:
    return hashlib.blake2b(sql.encode(), digest_size=12).hexdigest()


def newest_progress(spark: SparkSession, lake: Lake, table: TableName) -> Progress | None:
    """The progress that the newest commit of an update holds; None if none does. Commits of maintenance and
    fences hold none, and change no rows."""
    texts = metadata_in_log(lake, table) if lake.is_read_by_us else None
    if texts is not None:
        return next((found for text in texts if (found := Progress.parse(text)) is not None), None)
    for limit in (f"LIMIT {HISTORY_SHORT}", ""):
        history = spark.sql(f"DESCRIBE HISTORY {lake.identifier(table)} {limit}")
        for row in history.select("userMetadata").collect():
            if (found := Progress.parse(row[0])) is not None:
                return found
    return None


def metadata_in_log(lake: Lake, table: TableName) -> list[str] | None:
    """User metadata of the last commits, the newest first; None if the log's files do not reach."""
    log = f"{lake.path(table)}/_delta_log"
    newest = newest_version(log, lake.store)
    found: list[str] = []
    for version in range(newest, max(-1, newest - COMMITS_READ_MAX), -1):
        text = commit_text(log, version, lake.store)
        if text is None:
            return None
        for line in text.splitlines():
            if line.startswith('{"commitInfo"'):
                found.append(json.loads(line)["commitInfo"].get("userMetadata") or "")
        if Progress.parse(found[-1] if found else "") is not None:
            return found
    return found if newest < COMMITS_READ_MAX else None
