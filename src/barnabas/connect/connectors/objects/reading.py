"""Files of all formats, read some rows at a time.

In: a file that is open for reading, its format. Out: columns of at most ROWS rows; `Rows` hands out as many
as are asked for. Does not know: names of files, topics.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.connect.connectors.objects.avro_schemas import schema_of_avro
from barnabas.connect.connectors.objects.formats import Format
from barnabas.connect.data import BYTES, STRING, Column, Schema

ROWS = 1000
CHUNK_BYTES = 1 << 20


class Rows:
    """The rows of a file from front to back. `change` makes keys or headers of each column."""

    def __init__(self, form: Format, file: Any, change: Callable[[Column], Any] | None = None) -> None:
        self._file = file
        self._columns = columns_of(form, file)
        self._change = change
        self._column: Any = None
        self._at = 0

    def ahead(self) -> int:
        """How many rows can be taken at once; 0 at the end of the file."""
        while self._column is None or self._at == len(self._column):
            found = next(self._columns, None)
            if found is None:
                return 0
            self._column, self._at = (found if self._change is None else self._change(found)), 0
        return len(self._column) - self._at

    def take(self, count: int) -> Any:
        """The next rows, at most those that are ahead."""
        first, self._at = self._at, self._at + count
        if isinstance(self._column, list):
            return self._column[first : self._at]
        return self._column.slice(first, count)

    def skip(self, count: int) -> int:
        """Leave out rows; how many there were."""
        left = count
        while left and (ahead := self.ahead()):
            self._at += min(ahead, left)
            left -= min(ahead, left)
        return count - left

    def close(self) -> None:
        self._file.close()


def columns_of(form: Format, file: Any) -> Iterator[Column]:
    if form.gzipped:
        file = gzip.GzipFile(fileobj=file)
    if form.name == "parquet":
        return of_parquet(file)
    if form.name == "avro":
        return of_avro(file)
    if form.name == "csv":
        text = io.TextIOWrapper(file, "utf-8", newline="")
        return some(csv.DictReader(text), None)
    if form.name == "json":
        return some(map(orjson.loads, lines(file, b"\n")), None)
    if form.name == "string":
        return some((line.decode() for line in lines(file, b"\n")), STRING)
    return some(lines(file, form.separator), BYTES)


def of_parquet(file: Any) -> Iterator[Column]:
    found = pq.ParquetFile(file, pre_buffer=False)
    schema = Schema.of_arrow(pa.struct(list(found.schema_arrow)))
    for batch in found.iter_batches(ROWS):
        if batch.num_rows:
            yield Column(schema, batch.to_struct_array())


def of_avro(file: Any) -> Iterator[Column]:
    import fastavro

    found = fastavro.reader(file)
    yield from some(found, schema_of_avro(found.writer_schema))


def some(values: Iterable[Any], schema: Schema | None) -> Iterator[Column]:
    rows = iter(values)
    while batch := list(islice(rows, ROWS)):
        yield Column(None, batch) if schema is None else Column.of(batch, schema)


def lines(file: Any, end: bytes) -> Iterator[bytes]:
    """Texts that `end` divides; the last one needs none."""
    rest = bytearray()
    while chunk := file.read(CHUNK_BYTES):
        searched = max(0, len(rest) - len(end) + 1)
        rest += chunk
        if rest.find(end, searched) >= 0:
            *whole, last = bytes(rest).split(end)
            yield from whole
            rest = bytearray(last)
    if rest:
        yield bytes(rest)
