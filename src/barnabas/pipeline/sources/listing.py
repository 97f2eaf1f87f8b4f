"""Lists the files of a source: here, or on executors where there are many.

In: a place, with the settings of object stores. Out: an iterator of files; on executors a frame of them.
Neither holds more than a few thousand names. Folders and object stores are listed by us, other places by
Spark. Does not know: which files were read.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from barnabas.engine.delta.log import URL
from barnabas.engine.places.object_store import SCHEMES, open_store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

UNFINISHED = (".tmp", ".inprogress", ".part", "._COPYING_", ".crc")
HIDDEN = (".", "_")
FILE_URL = "file://"
NAMES_PER_BATCH = 5000
PARTS_MAX = 1000  # folders that are listed by tasks of their own
TASKS_MAX = 64
DDL = "path string, modified_ms bigint, size bigint, key string"


class FoundFile(NamedTuple):
    """`path` is for Spark, `key` the canonical path: Spark writes paths with escapes, and with `file:`."""

    path: str
    modified_ms: int
    size: int
    key: str

    @property
    def identity(self) -> tuple[str, int]:
        return self.key, self.modified_ms


class NoPlace(Exception):
    """The place does not exist; the message names it."""


@dataclass(frozen=True, slots=True)
class ListedPlace:
    """A folder, a file or a URL, and which names count. `store` has Spark's settings of object stores."""

    root: str
    pattern: str = ""
    recursive: bool = True
    store: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def folder(self) -> Path | None:
        """The folder of this machine; None if it is elsewhere."""
        if self.root.startswith(FILE_URL):
            return Path(unquote(self.root.removeprefix(FILE_URL)))
        return Path(self.root).expanduser().absolute() if URL.match(self.root) is None else None

    @property
    def is_ours(self) -> bool:
        """Whether it is listed without Spark."""
        return self.folder is not None or self.root.partition("://")[0] in SCHEMES

    def takes(self, name: str) -> bool:
        if name.startswith(HIDDEN) or name.endswith(UNFINISHED):
            return False
        return not self.pattern or fnmatch.fnmatch(name, self.pattern)


def found_files(place: ListedPlace) -> Iterator[FoundFile]:
    """The files of a place, in no order."""
    folder = place.folder
    if folder is None:
        yield from objects_of(place)
    elif folder.is_file():
        yield from file_of(str(folder), place, folder.name)
    elif folder.is_dir():
        yield from files_in(str(folder), place)
    else:
        raise NoPlace(f"{folder} does not exist")


def files_in(root: str, place: ListedPlace) -> Iterator[FoundFile]:
    waiting = [root]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name.startswith(HIDDEN):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if place.recursive:
                            waiting.append(entry.path)
                    else:
                        yield from file_of(entry.path, place, entry.name)
        except FileNotFoundError:
            continue  # deleted meanwhile


def file_of(path: str, place: ListedPlace, name: str) -> Iterator[FoundFile]:
    if not place.takes(name):
        return
    try:
        facts = os.stat(path)  # noqa: PTH116 (called for each of a million names)
    except OSError:
        return  # deleted meanwhile
    if facts.st_size and os.path.isfile(path):  # noqa: PTH113
        yield FoundFile(path, facts.st_mtime_ns // 1_000_000, facts.st_size, path)


def objects_of(place: ListedPlace) -> Iterator[FoundFile]:
    client, store, prefix = open_store(place.root, place.store)
    base = place.root.removesuffix(prefix)
    prefix = prefix.rstrip("/")
    for page in client.list(store, prefix=prefix or None):
        for each in page:
            path = str(each["path"])
            inner = path.removeprefix(prefix).lstrip("/") or path.rpartition("/")[2]
            *folders, name = inner.split("/")
            if any(part.startswith(HIDDEN) for part in folders) or (folders and not place.recursive):
                continue
            if each["size"] and place.takes(name):
                modified_ms = int(each["last_modified"].timestamp() * 1000)
                yield FoundFile(f"{base}{path}", modified_ms, int(each["size"]), f"{base}{path}")


def parts_of(place: ListedPlace) -> list[ListedPlace]:
    """Places that together have the files of a place: its own, and one for each folder inside of it."""
    folder = place.folder
    if folder is None or not folder.is_dir() or not place.recursive:
        return [place]
    with os.scandir(folder) as entries:
        inner = (each.path for each in entries if each.is_dir(follow_symlinks=False))
        found = [path for path in islice(inner, PARTS_MAX + 1) if not Path(path).name.startswith(HIDDEN)]
    if not found or len(found) > PARTS_MAX:
        return [place]
    return [replace(place, recursive=False), *(replace(place, root=path) for path in found)]


def listed_on_executors(spark: SparkSession, place: ListedPlace) -> DataFrame:
    """The files of a place as a frame. Its rows stay on executors until they are asked for."""
    if not place.is_ours:
        return listed_by_spark(spark, place)
    parts = parts_of(place)
    return spark.range(0, len(parts), 1, min(len(parts), TASKS_MAX)).mapInArrow(listing(parts), DDL)


def listing(parts: list[ListedPlace]) -> Any:
    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for index in batch.column(0).to_pylist():
                files = found_files(parts[index])
                while chunk := list(islice(files, NAMES_PER_BATCH)):
                    columns = [pa.array(column) for column in zip(*chunk, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, names=list(FoundFile._fields))

    return listed


def listed_by_spark(spark: SparkSession, place: ListedPlace) -> DataFrame:
    """The files of a place that only Spark can list. Its driver holds their names, in the Java machine."""
    from pyspark.sql import functions as F

    reader = spark.read.format("binaryFile")
    if place.recursive:
        reader = reader.option("recursiveFileLookup", "true")
    if place.pattern:
        reader = reader.option("pathGlobFilter", place.pattern)
    rows = reader.load(place.root).where("length > 0")
    name = F.element_at(F.split("path", "/"), -1)
    unfinished = [name.endswith(each) for each in UNFINISHED] + [name.startswith(each) for each in HIDDEN]
    for each in unfinished:
        rows = rows.where(~each)
    modified = F.unix_millis("modificationTime").alias("modified_ms")
    return rows.select("path", modified, F.col("length").alias("size"), canonical(F.col("path")).alias("key"))


def canonical(path: Column) -> Column:
    """The canonical form of a path that Spark wrote."""
    from pyspark.sql import functions as F

    # `+` is a plus sign in paths; the function is made for forms.
    return F.url_decode(F.regexp_replace(F.regexp_replace(path, "^file:/+", "/"), r"\+", "%2B"))
