"""Files: lines of JSON, CSV and text, rows of Parquet and Avro, and binary files with their metadata.

In: the source, and the raw zone, which shows the files that were read. Out: slices of new files; a file
that was modified counts as new. A file that cannot be read is set aside with its reason; the others are
read. Does not know: schemas, what is done with rows.
"""

from __future__ import annotations

import fnmatch
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from barnabas.engine.errors import SourceUnavailable, brief
from barnabas.pipeline.lake.tables import URL, Lake, TableName, Zone
from barnabas.pipeline.sources import media
from barnabas.pipeline.sources.pacing import Pacing
from barnabas.pipeline.sources.source_slice import METADATA, RAW_DDL, Position, SourceSlice, Stamp, stamped
from barnabas.pipeline.spec.model import FileKind, FilesSource, Merging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

log = logging.getLogger("barnabas.pipeline")
FILES_PER_BATCH_MAX = 1000
BYTES_PER_BATCH_MAX = 2**30
UNFINISHED = (".tmp", ".inprogress", ".part", "._COPYING_", ".crc")
JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
METADATA_DDL = f"{RAW_DDL}, metadata string"


class FoundFile(NamedTuple):
    path: str
    modified_ms: int
    size: int

    @property
    def identity(self) -> tuple[str, int]:
        return plain(self.path), self.modified_ms


def plain(path: str) -> str:
    """The canonical form of a path: Spark writes paths with and without slashes and escapes."""
    return unquote(re.sub(r"^file:/+", "/", path))


class FilesReader:
    def __init__(self, spark: SparkSession, source: FilesSource, lake: Lake) -> None:
        self._spark = spark
        self._source = source
        self._lake = lake
        self._pacing = Pacing(source.bandwidth_bytes_s)
        self._seen: set[tuple[str, int]] | None = None
        self.set_aside: dict[tuple[str, int], str] = {}  # files that cannot be read, with the reason
        self._carefully = False  # read one file at a time, to find the one that fails

    @property
    def waits_s(self) -> float:
        return self._pacing.waits_s

    def start(self) -> Position | None:
        return None

    def next(self, position: Position | None) -> SourceSlice | None:
        if not self._pacing.may_read():
            return None
        new = self._new()
        if not new:
            self._carefully = False
            return None
        chosen = [new[0]] if self._carefully else self._some(new)
        facts = {"files": [each.path for each in chosen], "found": chosen}
        count = int((position or {}).get("files", 0)) + len(chosen)
        return SourceSlice(
            lambda stamp: self._read(chosen, stamp), {"files": count}, Merging.INSERT_NEW, facts=facts
        )

    def goal(self) -> Position | None:
        return None

    def has_reached(self, position: Position, goal: Position | None) -> bool:
        return False  # read until there is no new file

    def lag(self, position: Position | None) -> int | None:
        """Files, not rows."""
        return len(self._new())

    def done(self, source_slice: SourceSlice, bytes_read: int) -> None:
        seen = self._known()
        for each in source_slice.facts["found"]:
            seen.add(each.identity)
        self._pacing.was_read(sum(each.size for each in source_slice.facts["found"]), 0)

    def look_again(self) -> None:
        """Read the list of known files from the lake again: another run may have read files."""
        self._seen = None

    def failed(self, source_slice: SourceSlice, error: BaseException) -> None:
        """One of these files cannot be read: find out which one, and set it aside."""
        self._seen = None
        found: list[FoundFile] = source_slice.facts["found"]
        if len(found) == 1:
            self.set_aside[found[0].identity] = brief(error)
            log.warning(
                "source %s: file %s cannot be read and is set aside: %s",
                self._source.name,
                found[0].path,
                brief(error),
            )
        self._carefully = True

    # -- which ------------------------------------------------------------------------------------

    def _known(self) -> set[tuple[str, int]]:
        """Files whose rows the raw zone has."""
        if self._seen is None:
            table = TableName(Zone.RAW, self._source.name)
            seen: set[tuple[str, int]] = set()
            if self._lake.exists(self._spark, table):
                rows = self._lake.read(self._spark, table).selectExpr("topic", "unix_millis(timestamp) AS at")
                seen = {(plain(row[0]), row[1]) for row in rows.distinct().collect()}
            self._seen = seen
        return self._seen

    def _new(self) -> list[FoundFile]:
        seen = self._known()
        found = [
            each
            for each in self._listed()
            if each.identity not in seen and each.identity not in self.set_aside
        ]
        return sorted(found, key=lambda each: (each.modified_ms, each.path))

    def _some(self, new: list[FoundFile]) -> list[FoundFile]:
        budget = BYTES_PER_BATCH_MAX
        if self._source.bandwidth_bytes_s is not None:
            budget = min(budget, int(self._source.bandwidth_bytes_s))
        chosen: list[FoundFile] = []
        for each in new[:FILES_PER_BATCH_MAX]:
            if chosen and sum(file.size for file in chosen) + each.size > budget:
                break
            chosen.append(each)
        return chosen

    def _listed(self) -> list[FoundFile]:
        return self._listed_by_spark() if URL.match(self._source.path) else self._listed_here()

    def _listed_here(self) -> list[FoundFile]:
        root = Path(self._source.path).expanduser().absolute()
        if root.is_file():
            paths = [root]
        elif root.is_dir():
            paths = sorted(root.rglob("*") if self._source.recursive else root.glob("*"))
        else:
            raise SourceUnavailable(f"source {self._source.name}: {root} does not exist")
        found = []
        for path in paths:
            hidden = any(part.startswith((".", "_")) for part in path.relative_to(root).parts)
            if hidden or path.name.endswith(UNFINISHED) or not self._matches(path.name):
                continue
            try:
                facts = path.stat()
            except OSError:
                continue  # deleted meanwhile
            if path.is_file() and facts.st_size:
                found.append(FoundFile(str(path), facts.st_mtime_ns // 1_000_000, facts.st_size))
        return found

    def _listed_by_spark(self) -> list[FoundFile]:
        reader = self._spark.read.format("binaryFile")
        if self._source.recursive:
            reader = reader.option("recursiveFileLookup", "true")
        try:
            rows = reader.load(self._source.path).selectExpr(
                "path", "unix_millis(modificationTime) AS at", "length"
            )
            found = [FoundFile(row[0], row[1], row[2]) for row in rows.collect()]
        except Exception as error:
            raise SourceUnavailable(f"source {self._source.name} cannot be listed: {brief(error)}") from error
        return [each for each in found if each.size and self._matches(each.path.rpartition("/")[2])]

    def _matches(self, name: str) -> bool:
        return not self._source.pattern or fnmatch.fnmatch(name, self._source.pattern)

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, found: list[FoundFile], stamp: Stamp) -> DataFrame:
        paths = [each.path for each in found]
        kind = self._source.kind
        if kind is FileKind.BINARY:
            rows = self._spark.read.format("binaryFile").load(paths)
            return stamped(rows.mapInArrow(media.described, METADATA_DDL), stamp)
        if kind is FileKind.AVRO:
            rows = self._spark.read.format("binaryFile").load(paths)
            return stamped(rows.mapInArrow(media.avro_rows, METADATA_DDL), stamp)
        if kind is FileKind.PARQUET:
            return stamped(self._structured(self._spark.read.parquet(*paths)), stamp)
        if self._source.settings.get("multiLine", "").lower() == "true":
            reader = self._spark.read.options(**self._source.settings)
            rows = reader.csv(paths) if kind is FileKind.CSV else reader.json(paths)
            return stamped(self._structured(rows), stamp)
        return stamped(self._lines(paths), stamp)

    def _lines(self, paths: list[str]) -> DataFrame:
        from pyspark.sql import functions as F

        lines = self._spark.read.text(paths).select(
            "value", *file_columns(), F.monotonically_increasing_id().alias("_at")
        )
        lines = numbered(lines)
        if self._source.kind is FileKind.CSV and self._source.settings.get("header", "").lower() == "true":
            lines = lines.where("offset > 1")
        if self._source.kind is not FileKind.TEXT:
            lines = lines.where("trim(value) <> ''")
        return raw_rows(lines, F.col("value").cast("binary"))

    def _structured(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        value = F.to_json(F.struct(*[F.col(f"`{name}`") for name in rows.columns]), JSON_OPTIONS)
        found = rows.select(
            value.alias("value"), *file_columns(), F.monotonically_increasing_id().alias("_at")
        )
        return raw_rows(numbered(found), F.col("value").cast("binary"))


def file_columns() -> list[Column]:
    from pyspark.sql import functions as F

    return [
        F.col("_metadata.file_path").alias("topic"),
        F.col("_metadata.file_modification_time").alias("timestamp"),
    ]


def numbered(rows: DataFrame) -> DataFrame:
    """`offset` is the number of the line or row in its file, from 1."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    within = Window.partitionBy("topic").orderBy("_at")
    return rows.withColumn("offset", F.row_number().over(within).cast("bigint")).drop("_at")


def raw_rows(rows: DataFrame, value: Column) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.select(
        F.lit(None).cast("binary").alias("key"),
        value.alias("value"),
        "topic",
        F.lit(0).alias("partition"),
        "offset",
        "timestamp",
        F.lit(None).cast("string").alias(METADATA),
    )
