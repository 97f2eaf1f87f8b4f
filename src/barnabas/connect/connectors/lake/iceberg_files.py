"""Data files of an Iceberg table, written on executors: rows in, descriptions of files out.

The files belong to the table when the driver has committed their descriptions; files of tasks that failed
stay behind unused. Does not know: catalogs, commits.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from barnabas.connect.connectors.lake.iceberg_types import fitted_batch

FILE_COLUMN = "file"
BUFFER_BYTES = 128 << 20  # of rows that become files together


class FileWriter:
    """The function for mapInArrow: writes the rows of a partition and returns their files."""

    def __init__(
        self, metadata: str, properties: Mapping[str, str], location: str, name: str, any_case: bool
    ) -> None:
        self._metadata = metadata
        self._properties = dict(properties)
        self._location = location
        self._name = name
        self._any_case = any_case

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[Any] = []
        size = 0
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch)
                size += batch.nbytes
            if size >= BUFFER_BYTES:
                yield self._written(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._written(waiting)

    def _written(self, batches: list[Any]) -> pa.RecordBatch:
        rows = pa.Table.from_batches(batches)
        files = write_files(
            self._metadata, self._properties, self._location, rows, self._name, any_case=self._any_case
        )
        return pa.RecordBatch.from_arrays([pa.array(map(pickle.dumps, files), pa.binary())], [FILE_COLUMN])


def write_files(
    metadata: str, properties: Mapping[str, str], location: str, rows: pa.Table, name: str, *, any_case: bool
) -> list[Any]:
    """Write rows as files of the table that `metadata` describes."""
    from pyiceberg.io import load_file_io
    from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
    from pyiceberg.table.metadata import TableMetadataUtil

    table = TableMetadataUtil.parse_raw(metadata)
    there = schema_to_pyarrow(table.schema(), include_field_ids=False)
    fit = fitted_batch(rows, there, name, any_case=any_case)
    io = load_file_io(dict(properties), location)
    return list(_dataframe_to_data_files(table_metadata=table, df=fit, io=io, write_uuid=uuid.uuid4()))
