"""Files: lines of JSON, CSV and text, rows of Parquet and Avro, and binary files with their metadata.

In: the source, and the manifest of files that raw has. Out: slices of new files, oldest first; a file that
was modified counts as new. A file that cannot be read is set aside with its reason; the others are read. The
driver holds at most some ten thousand names: where there are more files, executors list them and compare
them with the manifest. Does not know: schemas, what is done with rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

from barnabas.engine.errors import SourceUnavailable, brief
from barnabas.engine.secrets import Text, revealed
from barnabas.pipeline.lake.tables import STORE_SETTINGS, Lake
from barnabas.pipeline.sources import line_numbers, media
from barnabas.pipeline.sources.file_manifest import FileManifest
from barnabas.pipeline.sources.listing import FoundFile, ListedPlace, found_files, listed_on_executors
from barnabas.pipeline.sources.pacing import Pacing
from barnabas.pipeline.sources.source_slice import METADATA, RAW_DDL, Position, SourceSlice, Stamp, stamped
from barnabas.pipeline.spec.model import FileKind, FilesSource, Merging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

log = logging.getLogger("barnabas.pipeline")
FILES_PER_BATCH_MAX = 1000
BYTES_PER_BATCH_MAX = 2**30
LISTED_HERE_MAX = 10_000  # names on the driver; more files are listed by executors
JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
METADATA_DDL = f"{RAW_DDL}, metadata string"


class FilesReader:
    def __init__(
        self,
        spark: SparkSession,
        source: FilesSource,
        lake: Lake,
        store: Mapping[str, Text] | None = None,
    ) -> None:
        self._spark = spark
        self._source = source
        self._store = {
            name: value for name, value in (store or {}).items() if name.startswith(STORE_SETTINGS)
        }
        self._manifest = FileManifest(spark, lake, source.name)
        self._is_open = False
        self._pacing = Pacing(source.bandwidth_bytes_s)
        self._read_or_known: set[tuple[str, int]] = set()  # of the files that are there now
        self._is_compared = False  # with the manifest: whatever else is listed is new
        self._waiting: list[FoundFile] = []
        self._has_more = False
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
        chosen = [new[0]] if self._carefully else self._one_batch(new)
        facts = {"files": [each.path for each in chosen], "found": chosen}
        count = int((position or {}).get("files", 0)) + len(chosen)

        def read(stamp: Stamp) -> DataFrame:
            facts["batch"] = stamp.batch
            return self._read(chosen, stamp)

        return SourceSlice(read, {"files": count}, Merging.INSERT_NEW, facts=facts)

    def goal(self) -> Position | None:
        return None

    def has_reached(self, position: Position, goal: Position | None) -> bool:
        return False  # read until there is no new file

    def lag(self, position: Position | None) -> int | None:
        """Files, not rows; None if there are too many to count."""
        waiting = len(self._new())
        return None if self._has_more else waiting

    def done(self, source_slice: SourceSlice, bytes_read: int) -> None:
        found: list[FoundFile] = source_slice.facts["found"]
        self._manifest.add(found, int(source_slice.facts.get("batch", 0)))
        self._read_or_known.update(each.identity for each in found)
        read = {each.identity for each in found}
        self._waiting = [each for each in self._waiting if each.identity not in read]
        self._pacing.was_read(sum(each.size for each in found), 0)
        if self._manifest.is_due:
            self._manifest.prune(listed_on_executors(self._spark, self._place()))

    def look_again(self) -> None:
        """Compare with the lake again: another run may have read files."""
        self._is_open = self._is_compared = False
        self._waiting = []

    def failed(self, source_slice: SourceSlice, error: BaseException) -> None:
        """One of these files cannot be read: find out which one, and set it aside."""
        self.look_again()
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

    def _place(self) -> ListedPlace:
        source = self._source
        return ListedPlace(source.path, source.pattern, source.recursive, revealed(self._store))

    def _new(self) -> list[FoundFile]:
        """New files, oldest first: all of them, or as many as the driver holds."""
        if not self._waiting:
            try:
                self._waiting = self._listed()
            except Exception as error:
                raise SourceUnavailable(
                    f"source {self._source.name} cannot be listed: {brief(error)}"
                ) from error
        return self._waiting

    def _listed(self) -> list[FoundFile]:
        place = self._place()
        if not self._is_open:
            self._manifest.catch_up()
            self._is_open = True
        if place.is_ours:
            here = list(islice(found_files(place), LISTED_HERE_MAX + 1))
            if len(here) <= LISTED_HERE_MAX:
                return self._new_of(here)
        self._is_compared = False
        self._read_or_known.clear()
        listed = listed_on_executors(self._spark, place)
        found = self._manifest.oldest_unread(listed, LISTED_HERE_MAX)
        self._has_more = len(found) == LISTED_HERE_MAX
        return [each for each in found if each.identity not in self.set_aside]

    def _new_of(self, here: list[FoundFile]) -> list[FoundFile]:
        self._has_more = False
        there = {each.identity for each in here}
        self._read_or_known &= there
        self.set_aside = {name: why for name, why in self.set_aside.items() if name in there}
        skipped = self._read_or_known | set(self.set_aside)
        new = [each for each in here if each.identity not in skipped]
        if new and not self._is_compared:
            known = self._manifest.known(new)
            self._read_or_known |= known
            new = [each for each in new if each.identity not in known]
        self._is_compared = True
        return sorted(new, key=lambda each: (each.modified_ms, each.path))

    def _one_batch(self, new: list[FoundFile]) -> list[FoundFile]:
        budget = BYTES_PER_BATCH_MAX
        if self._source.bandwidth_bytes_s is not None:
            budget = min(budget, int(self._source.bandwidth_bytes_s))
        chosen: list[FoundFile] = []
        for each in new[:FILES_PER_BATCH_MAX]:
            if chosen and sum(file.size for file in chosen) + each.size > budget:
                break
            chosen.append(each)
        return chosen

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
            return stamped(self._structured(self._spark.read.parquet(*paths), has_numbers=True), stamp)
        if self._source.settings.get("multiLine", "").lower() == "true":
            reader = self._spark.read.options(**self._source.settings)
            rows = reader.csv(paths) if kind is FileKind.CSV else reader.json(paths)
            return stamped(self._structured(rows), stamp)
        return stamped(self._lines(paths), stamp)

    def _lines(self, paths: list[str]) -> DataFrame:
        from pyspark.sql import functions as F

        lines = numbered(self._spark.read.text(paths).select("value", *file_columns()))
        if self._source.kind is FileKind.CSV and self._source.settings.get("header", "").lower() == "true":
            lines = lines.where("offset > 1")
        if self._source.kind is not FileKind.TEXT:
            lines = lines.where("trim(value) <> ''")
        return raw_rows(lines, F.col("value").cast("binary"))

    def _structured(self, rows: DataFrame, *, has_numbers: bool = False) -> DataFrame:
        """`has_numbers`: Spark knows the number of each row in its file."""
        from pyspark.sql import functions as F

        value = F.to_json(F.struct(*[F.col(f"`{name}`") for name in rows.columns]), JSON_OPTIONS)
        columns = [value.alias("value"), *file_columns()]
        if has_numbers:
            found = rows.select(*columns, (F.col("_metadata.row_index") + 1).alias("offset"))
        else:
            found = numbered(rows.select(*columns))
        return raw_rows(found, F.col("value").cast("binary"))


def file_columns() -> list[Column]:
    from pyspark.sql import functions as F

    return [
        F.col("_metadata.file_path").alias("topic"),
        F.col("_metadata.file_modification_time").alias("timestamp"),
        F.col("_metadata.file_block_start").alias("block"),
    ]


def numbered(rows: DataFrame) -> DataFrame:
    """`offset` is the number of the line or row in its file, from 1 (`line_numbers`)."""
    return rows.select("value", "topic", "timestamp", "block").mapInArrow(
        line_numbers.numbered, line_numbers.DDL
    )


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
