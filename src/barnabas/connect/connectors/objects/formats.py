"""Formats of files: Parquet, Avro, JSON lines, CSV, lines of text, bytes.

In: columns of one schema. Out: the bytes of a whole file, and the way back. Does not know: names of files.
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.connect.connectors.objects.avro_schemas import avro_schema
from barnabas.connect.data import BYTES, STRING, Column, Schema, Type
from barnabas.connect.plugins import ConnectError

EXTENSIONS = {
    "parquet": ".parquet",
    "avro": ".avro",
    "json": ".json",
    "csv": ".csv",
    "string": ".txt",
    "bytearray": ".bin",
}
EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Format:
    """How files are written. `codec` is that of Parquet or Avro, `gzipped` is for the formats of lines."""

    name: str
    codec: str = ""
    gzipped: bool = False

    @property
    def extension(self) -> str:
        if self.name == "parquet" and self.codec not in ("", "none"):
            return f".{self.codec}.parquet"
        return EXTENSIONS[self.name] + (".gz" if self.gzipped else "")

    def encode(self, columns: Sequence[Column]) -> bytes:
        """A file of these values. Columns have the same schema; the first names it."""
        schema = columns[0].schema
        if self.name in ("parquet", "avro", "csv") and (schema is None or schema.type is not Type.STRUCT):
            kind = "no schema" if schema is None else f"a schema of type {schema.type}"
            raise ConnectError(
                f"format {self.name} needs structs with a schema, but values have {kind}: use a converter"
                " with schemas (JSON with schemas.enable=true, Avro), or format.class JSON"
            )
        data: bytes = getattr(self, f"_{self.name}")(columns, schema)
        return gzip.compress(data, mtime=0) if self.gzipped else data

    def _parquet(self, columns: Sequence[Column], schema: Schema) -> bytes:
        out = io.BytesIO()
        pq.write_table(table_of(columns), out, compression=self.codec or "none")
        return out.getvalue()

    def _csv(self, columns: Sequence[Column], schema: Schema) -> bytes:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(schema.field_names)
        for column in columns:
            for value in column.pylist():
                writer.writerow(["" if one is None else csv_cell(one) for one in value.values()])
        return out.getvalue().encode()

    def _avro(self, columns: Sequence[Column], schema: Schema) -> bytes:
        import fastavro

        out = io.BytesIO()
        rows = (value for column in columns for value in column.pylist())
        fastavro.writer(out, fastavro.parse_schema(avro_schema(schema)), rows, codec=self.codec or "null")
        return out.getvalue()

    def _json(self, columns: Sequence[Column], schema: Schema | None) -> bytes:
        return b"".join(orjson.dumps(plain(v)) + b"\n" for column in columns for v in column.pylist())

    def _string(self, columns: Sequence[Column], schema: Schema | None) -> bytes:
        return "".join(f"{value}\n" for column in columns for value in column.pylist()).encode()

    def _bytearray(self, columns: Sequence[Column], schema: Schema | None) -> bytes:
        values = [value for column in columns for value in column.pylist()]
        if not all(isinstance(value, bytes) for value in values):
            raise ConnectError("format bytearray needs bytes: set value.converter to ByteArrayConverter")
        return b"".join(value + b"\n" for value in values)

    def decode(self, data: bytes) -> Column:
        """The values of a file."""
        if self.gzipped:
            data = gzip.decompress(data)
        if self.name == "parquet":
            table = pq.read_table(io.BytesIO(data)).combine_chunks()
            rows = table.to_struct_array().combine_chunks()
            return Column(Schema.of_arrow(rows.type), rows)
        if self.name == "avro":
            import fastavro

            rows = pa.array(list(fastavro.reader(io.BytesIO(data))))
            return Column(Schema.of_arrow(rows.type), rows)
        if self.name == "csv":
            return Column(None, [dict(row) for row in csv.DictReader(io.StringIO(data.decode()))])
        lines = data.removesuffix(b"\n").split(b"\n") if data else []
        if self.name == "json":
            return Column(None, [orjson.loads(line) for line in lines])
        return (
            Column.of([line.decode() for line in lines], STRING)
            if self.name == "string"
            else Column.of(lines, BYTES)
        )


def table_of(columns: Sequence[Column]) -> pa.Table:
    schema = columns[0].schema
    assert schema is not None
    kind = pa.schema(list(schema.arrow))
    return pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(column.data.flatten(), schema=kind) for column in columns], kind
    )


def csv_cell(value: Any) -> Any:
    found = plain(value)
    return orjson.dumps(found).decode() if isinstance(found, dict | list) else found


def plain(value: Any) -> Any:
    """A value as Connect's JSON without schemas has it: times as numbers, bytes in base64."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return int(value.astimezone(UTC).timestamp() * 1000)
    if isinstance(value, date):
        return (value - EPOCH).days
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return value
