"""Data files of an Iceberg table without the rows of some keys, rewritten on executors.

In: descriptions of files, the keys of a batch. Out: the files that hold such rows, each with the files of its
other rows. A file is read in pieces: first the key columns, then, if there is such a row, all of it. The new
files are in the place of the old ones when the driver has committed. Does not know: catalogs, commits.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connectors.lake.iceberg_files import BUFFER_BYTES, write_files
from barnabas.connect.connectors.lake.key_sets import KeySet

SCAN_DDL = "scan binary"
REPLACED_DDL = "old binary, new binary"
REPLACED_ARROW = pa.schema([("old", pa.binary()), ("new", pa.binary())])


@dataclass(frozen=True)
class FileRewriter:
    """The function for mapInArrow: takes scans of files, returns those that it replaced."""

    metadata: str
    properties: Mapping[str, str] = field(repr=False)
    location: str
    name: str
    keys: bytes  # a stream of Arrow
    any_case: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keys: KeySet | None = None
        for batch in batches:
            for scan in batch.column(0):
                keys = keys or KeySet(pa.ipc.open_stream(self.keys).read_all())
                file, deletes = pickle.loads(scan.as_py())
                files = self._rewritten(file, deletes, keys)
                if files is not None:
                    row = {"old": pickle.dumps(file), "new": pickle.dumps(files)}
                    yield pa.RecordBatch.from_pylist([row], schema=REPLACED_ARROW)

    def _rewritten(self, file: Any, deletes: Any, keys: KeySet) -> list[Any] | None:
        """The files of the other rows; None if the file has no row of the keys."""
        if not any(batch in keys for batch in self._scanned(file, deletes, tuple(keys.schema.names))):
            return None
        files: list[Any] = []
        waiting: list[pa.Table] = []
        size = 0
        for batch in self._scanned(file, deletes, ()):
            kept = batch.filter(pc.invert(keys.mask(batch)))
            if kept.num_rows:
                waiting.append(kept)
                size += kept.nbytes
            if size >= BUFFER_BYTES:
                files += self._written(waiting)
                waiting, size = [], 0
        return files + (self._written(waiting) if waiting else [])

    def _scanned(self, file: Any, deletes: Any, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Rows of a file in pieces; of all columns if none are named."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io import load_file_io
        from pyiceberg.io.pyarrow import ArrowScan, _read_all_delete_files
        from pyiceberg.table import FileScanTask
        from pyiceberg.table.metadata import TableMetadataUtil

        table = TableMetadataUtil.parse_raw(self.metadata)
        schema = table.schema()
        chosen = schema.select(*columns) if columns else schema
        io = load_file_io(dict(self.properties), self.location)
        task = FileScanTask(file, delete_files=deletes)
        scan = ArrowScan(table, io, chosen, AlwaysTrue())
        # `to_record_batches` holds all rows of a file at once.
        pieces = scan._record_batches_from_scan_tasks_and_deletes([task], _read_all_delete_files(io, [task]))
        for batch in pieces:
            yield pa.Table.from_batches([batch])

    def _written(self, rows: list[pa.Table]) -> list[Any]:
        whole = pa.concat_tables(rows, promote_options="permissive")
        return write_files(
            self.metadata, self.properties, self.location, whole, self.name, any_case=self.any_case
        )


def stream_of(keys: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.schema) as writer:
        writer.write_table(keys)
    found: bytes = sink.getvalue().to_pybytes()
    return found
