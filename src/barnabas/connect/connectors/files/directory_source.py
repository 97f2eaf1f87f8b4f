"""A directory of files as records: CSV, JSON, Parquet, Avro, text or whole files, each file once.

The rows are read by Spark's executors. Settings have the names of the spool directory connectors; options of
Spark's readers come behind `csv.`, `json.` or `parquet.`. Offsets: `{"file": path}` -> size and time. A file
is ready when it has not changed for `file.minimum.age.ms`. Where files stay, one that changes later is not
read again; where they are cleaned up, a new file of the same name is.
"""

from __future__ import annotations

import logging
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from barnabas.connect.config import ConfigDef, at_least, non_empty, one_of, regex
from barnabas.connect.data import Schema
from barnabas.connect.plugins import ConnectError, Connector, OffsetReader, Slice, SourceContext, SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = logging.getLogger(__name__)
FORMATS = ("csv", "json", "parquet", "avro", "text", "binary")
FILES_MAX = 100_000  # of a directory


class Found(NamedTuple):
    path: Path
    size: int
    modified_ms: int

    def is_of(self, offset: Mapping[str, Any]) -> bool:
        """Whether it is the file that the offset was stored for."""
        return offset.get("size") == self.size and offset.get("modified") == self.modified_ms


def found_at(path: Path) -> Found | None:
    """The file at a path; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return Found(path.absolute(), status.st_size, status.st_mtime_ns // 1_000_000)


class DirectorySource(SparkSource):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        settings = context.settings
        self._folder = Path(settings.text("input.path"))
        self._pattern = re.compile(settings.text("input.file.pattern"))
        self._format = settings.text("input.format")
        self._age_ms = settings.integer("file.minimum.age.ms")
        self._files_max = settings.integer("batch.max.files")
        self._cleanup = settings.text("cleanup.policy")
        self._finished = settings.text("finished.path")
        self.poll_interval_s = settings.integer("empty.poll.wait.ms") / 1000
        if not self._folder.is_dir():
            raise ConnectError(f"input.path: {self._folder} is no directory")

    def plan(self, spark: SparkSession, offsets: OffsetReader) -> Slice | None:
        ready = self._ready()
        stored = offsets.read([{"file": str(each.path)} for each in ready])
        known = [(each, offset) for each, offset in zip(ready, stored, strict=True) if offset is not None]
        again = set()
        if self._cleanup != "NONE":
            for each, offset in known:
                if each.is_of(offset):
                    self._clean_up(each.path, offset)  # a crash came between the offset and this
                else:
                    again.add(each.path)
        gone = {each.path for each, _ in known} - again
        new = [each for each in ready if each.path not in gone][: self._files_max]
        if not new:
            return None
        frame, schema = self._frame(spark, [str(each.path) for each in new])
        positions = [
            ({"file": str(each.path)}, {"size": each.size, "modified": each.modified_ms}) for each in new
        ]
        return Slice(frame, positions, value_schema=schema, topic=self.context.settings.text("topic"))

    def commit(self, positions: Any) -> None:
        """Files whose rows are written may go, if the policy says so."""
        for partition, offset in positions:
            self._clean_up(Path(partition["file"]), offset)

    def _clean_up(self, path: Path, offset: Mapping[str, Any]) -> None:
        """Remove a file that was written, but not another one that has taken its name since."""
        found = found_at(path) if self._cleanup != "NONE" else None
        if found is None or not found.is_of(offset):
            return
        if self._cleanup == "DELETE":
            path.unlink(missing_ok=True)
            return
        folder = Path(self._finished)
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / path.name
        if target.exists():  # a former file of this name
            target = folder / f"{path.name}.{found.modified_ms}"
        shutil.move(path, target)

    def _ready(self) -> list[Found]:
        """Files that are complete, in the order of their time and name."""
        found, now_ms = [], time.time() * 1000
        walk = (
            self._folder.rglob("*")
            if self.context.settings.flag("input.path.walk.recursively")
            else self._folder.iterdir()
        )
        for path in walk:
            if path.name.startswith((".", "_")) or not self._pattern.fullmatch(path.name):
                continue
            each = found_at(path)
            if each is not None and path.is_file() and now_ms - each.modified_ms >= self._age_ms:
                found.append(each)
            if len(found) > FILES_MAX:
                raise ConnectError(
                    f"{self._folder} has more than {FILES_MAX} files: set cleanup.policy, or use folders"
                )
        return sorted(found, key=lambda each: (each.modified_ms, str(each.path)))

    def _frame(self, spark: SparkSession, paths: list[str]) -> tuple[DataFrame, Schema | None]:
        from pyspark.sql import functions as sql

        key = self.context.settings.text("key.field")
        if self._format == "binary":
            files = spark.read.format("binaryFile").load(paths)
            return files.select(sql.col("path").alias("key"), sql.col("content").alias("value")), None
        if self._format == "text":
            return spark.read.text(paths).select("value"), None
        rows = avro_rows(spark, paths) if self._format == "avro" else self._rows(spark, paths)
        if not rows.columns:
            raise ConnectError(
                f"{paths[0]} has no columns: give `schema`, or check input.format={self._format}"
            )
        if key and key not in rows.columns:
            raise ConnectError(f"key.field: {key!r} is not among the columns {', '.join(rows.columns)}")
        schema = Schema.of_spark(rows.schema, self.context.settings.text("topic"))
        columns = [sql.struct(*[sql.col(f"`{name}`") for name in rows.columns]).alias("value")]
        return rows.select(*([sql.col(f"`{key}`").alias("key")] if key else []), *columns), schema

    def _rows(self, spark: SparkSession, paths: list[str]) -> DataFrame:
        settings = self.context.settings
        reader = spark.read.format(self._format)
        given = {name: value or "" for name, value in settings.prefixed(f"{self._format}.").items()}
        if self._format == "csv":
            given.setdefault("header", given.pop("first.row.as.header", "true"))
            given.setdefault("mode", "FAILFAST")
            if "separator.char" in given:  # the spool connectors give a number
                given["sep"] = chr(int(given.pop("separator.char")))
        ddl = settings.text("schema")
        if ddl:
            reader = reader.schema(ddl)
        elif self._format == "csv":
            given.setdefault("inferSchema", "true")
        return reader.options(**given).load(paths)


def avro_rows(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Rows of Avro files; all files of a slice must have the columns of the first."""
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    first = pa.Table.from_pylist(avro_records(paths[0]))
    schema = first.schema

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from pa.Table.from_pylist(avro_records(path), schema=schema).to_batches(10_000)

    names = spark.createDataFrame([(path,) for path in paths], "path string").repartition(max(1, len(paths)))
    return names.mapInArrow(read, from_arrow_schema(schema))


def avro_records(path: str) -> list[dict[str, Any]]:
    import fastavro

    with Path(path).open("rb") as file:
        return [record for record in fastavro.reader(file) if isinstance(record, dict)]


def definitions(default_format: str | None) -> ConfigDef:
    kept = ConfigDef()
    kept.define("topic", "STRING", importance="HIGH", doc="The topic of the records.", validator=non_empty())
    kept.define("input.path", "STRING", importance="HIGH", doc="The directory.", validator=non_empty())
    kept.define(
        "input.file.pattern",
        "STRING",
        ".*",
        "HIGH",
        "A regular expression that names match as a whole.",
        validator=regex(),
    )
    if default_format is None:
        kept.define(
            "input.format",
            "STRING",
            importance="HIGH",
            doc="The format of the files.",
            validator=one_of(*FORMATS),
        )
    else:
        kept.define(
            "input.format",
            "STRING",
            default_format,
            "LOW",
            "The format of the files.",
            validator=one_of(*FORMATS),
        )
    kept.define("input.path.walk.recursively", "BOOLEAN", False, "LOW", "Whether folders inside of it count.")
    kept.define(
        "schema", "STRING", "", "MEDIUM", "Columns in Spark's words, `id BIGINT, name STRING`; else inferred."
    )
    kept.define("key.field", "STRING", "", "MEDIUM", "The column that becomes the key as well.")
    kept.define(
        "file.minimum.age.ms", "LONG", 0, "LOW", "How long a file must be unchanged.", validator=at_least(0)
    )
    kept.define(
        "empty.poll.wait.ms",
        "LONG",
        500,
        "LOW",
        "How long to wait when there is no new file.",
        validator=at_least(1),
    )
    kept.define(
        "batch.max.files", "INT", 1000, "LOW", "How many files are read together.", validator=at_least(1)
    )
    kept.define(
        "cleanup.policy",
        "STRING",
        "NONE",
        "MEDIUM",
        "What becomes of files that are written.",
        validator=one_of("NONE", "DELETE", "MOVE"),
    )
    return kept.define("finished.path", "STRING", "", "MEDIUM", "Where cleanup.policy=MOVE moves them to.")


class DirectorySourceConnector(Connector):
    KIND = "source"
    CONFIG: ClassVar[ConfigDef] = definitions(None)
    task = DirectorySource

    def check(self, config: Any) -> dict[str, list[str]]:
        if config.get("cleanup.policy") == "MOVE" and not config.get("finished.path"):
            return {"finished.path": ["cleanup.policy=MOVE needs finished.path"]}
        return {}

    def exactly_once_support(self, config: Any) -> bool:
        return True


class CsvDirectorySourceConnector(DirectorySourceConnector):
    CONFIG = definitions("csv")


class JsonDirectorySourceConnector(DirectorySourceConnector):
    CONFIG = definitions("json")


class AvroDirectorySourceConnector(DirectorySourceConnector):
    CONFIG = definitions("avro")


class TextDirectorySourceConnector(DirectorySourceConnector):
    CONFIG = definitions("text")


class BinaryDirectorySourceConnector(DirectorySourceConnector):
    CONFIG = definitions("binary")
