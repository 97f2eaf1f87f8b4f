"""Files of parts in the lake: executors write them, the store reads them in pieces, the layers delete them.

In: the lake's root and Spark's settings for it; a frame. Out: `PartFiles`; record batches of bounded size.
A folder's name says which part it holds, so that a layer recognises folders of parts that the store has, also
those of processes that were killed. Does not know: views' SQL, the store's tables.

    <lake>/_barnabas/parts/<view>/<kind>-<after>-<upto>-<made at, ms>-<random>/part-….parquet
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import dataset, fs, parquet

from barnabas.engine.delta.log import URL
from barnabas.engine.secrets import revealed
from barnabas.pipeline.lake.tables import Lake
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.views.parts import PartFiles, PartRows, ViewState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH_ROWS = 65_536
READAHEAD = 2  # record batches, and files, that are read before they are asked for
KEPT_MS_MAX = 24 * 3600 * 1000
NAME = re.compile(r"(batch|speed)-(-?\d+)-(\d+)-(\d+)-[0-9a-f]+")
S3 = ("s3", "s3a")
S3_SETTINGS = {
    "spark.hadoop.fs.s3a.endpoint": "endpoint_override",
    "spark.hadoop.fs.s3a.endpoint.region": "region",
    "spark.hadoop.fs.s3a.access.key": "access_key",
    "spark.hadoop.fs.s3a.secret.key": "secret_key",
    "spark.hadoop.fs.s3a.session.token": "session_token",
}


class PartsMissing(ValueError):
    """Files of a part are gone, or are not where parts lie."""


@dataclass(frozen=True, slots=True)
class PartFolder:
    """Content of a folder's name."""

    kind: str
    after: int
    upto: int
    made_ms: int

    @classmethod
    def parse(cls, name: str) -> PartFolder | None:
        found = NAME.fullmatch(name)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]), int(found[4]))

    def is_done(self, state: ViewState | None, now_ms: int) -> bool:
        """Whether no store will read the folder: it has the part, or is beyond it, or a day has passed."""
        if now_ms - self.made_ms > KEPT_MS_MAX:
            return True
        if state is None:
            return False
        if self.kind == "batch":
            return self.upto < state.horizon.version
        return self.upto < state.position.version


class LakeParts:
    """The folder of parts in a lake."""

    def __init__(self, lake: Lake, settings: Mapping[str, str] | None = None) -> None:
        self.root = lake.own_path("parts")
        self._files, self._base = file_system(self.root, settings or {})

    def write(self, frame: DataFrame, view: str, kind: str, after: int, upto: int) -> PartFiles:
        """Let the executors write a part; each partition becomes a file."""
        name = f"{kind}-{after}-{upto}-{int(time.time() * 1000)}-{secrets.token_hex(4)}"
        folder = f"{quote(view, safe='')}/{name}"
        frame.write.mode("error").parquet(f"{self.root}/{folder}")
        found = self._files.get_file_info(fs.FileSelector(f"{self._base}/{folder}"))
        names = sorted(each.base_name for each in found if each.base_name.endswith(".parquet"))
        paths = [f"{self._base}/{folder}/{each}" for each in names]
        rows = sum(parquet.read_metadata(path, filesystem=self._files).num_rows for path in paths)
        return PartFiles(folder, tuple(names), rows)

    def batches(self, part: PartRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows in pieces, with the columns and types of the schema. ValueError if they do not fit."""
        if isinstance(part, pa.Table):
            yield from fitted(part, schema).to_batches(max_chunksize=BATCH_ROWS)
            return
        for batch in self._scanned(part):
            yield from fitted(pa.Table.from_batches([batch]), schema).to_batches()

    def _scanned(self, part: PartFiles) -> Iterator[pa.RecordBatch]:
        paths = [self._path(part, name) for name in part.names]
        form = dataset.ParquetFileFormat(read_options={"coerce_int96_timestamp_unit": "us"})
        try:
            found = dataset.dataset(paths, format=form, filesystem=self._files)
            scanner = found.scanner(
                batch_size=BATCH_ROWS, batch_readahead=READAHEAD, fragment_readahead=READAHEAD
            )
            yield from (batch for batch in scanner.to_batches() if batch.num_rows)
        except FileNotFoundError as problem:
            raise PartsMissing(f"files of a part are gone: {problem}") from None

    def _path(self, part: PartFiles, name: str) -> str:
        view, _, folder = part.folder.partition("/")
        if view in ("", ".", "..") or PartFolder.parse(folder) is None or "/" in name or ".." in name:
            raise PartsMissing(f"{part.folder}/{name} is not a file of a part")
        return f"{self._base}/{part.folder}/{name}"

    def delete(self, part: PartRows) -> None:
        if isinstance(part, PartFiles):
            self._delete(f"{self._base}/{part.folder}")

    def sweep(self, view: str, state: ViewState | None) -> int:
        """Delete folders of a view that no store will read; how many there were."""
        base = f"{self._base}/{quote(view, safe='')}"
        now_ms = int(time.time() * 1000)
        swept = 0
        for each in self._files.get_file_info(fs.FileSelector(base, allow_not_found=True)):
            folder = PartFolder.parse(each.base_name)
            if folder is not None and folder.is_done(state, now_ms):
                self._delete(each.path)
                swept += 1
        return swept

    def _delete(self, path: str) -> None:
        try:
            self._files.delete_dir(path)
        except FileNotFoundError:
            pass


class NoParts(LakeParts):
    """Parts without a lake: rows travel with them."""

    def __init__(self) -> None:
        pass

    def _scanned(self, part: PartFiles) -> Iterator[pa.RecordBatch]:
        raise PartsMissing(f"{part.folder}: this store was opened without a lake")


def lake_parts(pipeline: Pipeline) -> LakeParts:
    """The folder to which executors write large parts, and from which the store reads them."""
    return LakeParts(pipeline.lake_location, lake_settings(pipeline))


def lake_settings(pipeline: Pipeline) -> dict[str, str]:
    """Spark's settings of a lake behind a URL, with their secrets; nothing for a folder."""
    if pipeline.lake_location.is_local:
        return {}
    settings = pipeline.spark.settings
    return revealed({name: value for name, value in settings.items() if name in S3_SETTINGS})


def file_system(root: str, settings: Mapping[str, str]) -> tuple[Any, str]:
    """The file system of a folder or URL, and the path in it."""
    if URL.match(root) is None:
        return fs.LocalFileSystem(), root
    scheme, _, rest = root.partition("://")
    if scheme not in S3:
        found, path = fs.FileSystem.from_uri(root)
        return found, str(path)
    given: dict[str, Any] = {name: settings[key] for key, name in S3_SETTINGS.items() if settings.get(key)}
    endpoint = str(given.get("endpoint_override", ""))
    if endpoint.startswith("http://"):
        given["scheme"] = "http"
    return fs.S3FileSystem(**given), rest


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the schema's columns and types; ValueError if they do not fit."""
    try:
        return rows.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise ValueError(f"a part does not have the columns of its view: {problem}") from None
