"""Formats of files: Parquet, Avro, JSON lines, CSV, lines of text, bytes.

In: columns of one schema. Out: the bytes of a whole file. Does not know: names of files, the way back.
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.connect.connectors.objects.avro_schemas import avro_schema
from barnabas.connect.data import Column, Schema, Type
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
    level: int = -1  # of gzip
    numeric_decimals: bool = False  # JSON: decimals are numbers, not bytes in base64
    own_extension: str = ""  # of bytes
    separator: bytes = b"\n"  # of bytes

    @property
    def extension(self) -> str:
        if self.name == "parquet" and self.codec not in ("", "none"):
            return f".{self.codec}.parquet"
        return (self.own_extension or EXTENSIONS[self.name]) + (".gz" if self.gzipped else "")

    def encode(self, columns: Sequence[Column]) -> bytes:
        """A file of these values. Columns have the same schema; the first names it."""
        out = io.BytesIO()
        encoder = FileEncoder(self, columns[0].schema, out)
        for column in columns:
            encoder.write(column)
        encoder.close()
        return out.getvalue()


def check_schema(form: Format, schema: Schema | None) -> None:
    """ConnectError if the format cannot hold values of this schema."""
    if form.name in ("parquet", "avro", "csv") and (schema is None or schema.type is not Type.STRUCT):
        kind = "no schema" if schema is None else f"a schema of type {schema.type}"
        raise ConnectError(
            f"format {form.name} needs structs with a schema, but values have {kind}: use a converter"
            " with schemas (JSON with schemas.enable=true, Avro), or format.class JSON"
        )


def check_values(form: Format, column: Column) -> None:
    """ConnectError if the format does not take one of the values."""
    check_schema(form, column.schema)
    if form.name == "bytearray" and (column.schema is None or column.schema.type is not Type.BYTES):
        check_bytes(column.pylist())


def check_bytes(values: Sequence[Any]) -> None:
    if not all(isinstance(value, bytes) for value in values):
        raise ConnectError("format bytearray needs bytes: set the converter to ByteArrayConverter")


class FileEncoder:
    """Writes one file piece by piece, so that it need not be in memory as a whole."""

    def __init__(self, form: Format, schema: Schema | None, out: Any) -> None:
        check_schema(form, schema)
        self._out: Any = gzip.GzipFile("", "wb", form.level, out, 0) if form.gzipped else out
        self._form = form
        self._writer: Any = None
        if form.name == "parquet":
            assert schema is not None
            self._kind = pa.schema(list(schema.arrow))
            self._writer = pq.ParquetWriter(self._out, self._kind, compression=form.codec or "none")
        elif form.name == "avro":
            from fastavro import parse_schema
            from fastavro.write import Writer

            assert schema is not None
            parsed = parse_schema(avro_schema(schema))
            to: Any = self._out
            self._writer = Writer(to, parsed, form.codec or "null")
        elif form.name == "csv":
            assert schema is not None
            self._out.write(csv_lines([schema.field_names]))

    def write(self, column: Column) -> None:
        if self._form.name == "parquet":
            batch = pa.RecordBatch.from_arrays(column.data.flatten(), schema=self._kind)
            self._writer.write_batch(batch)
        elif self._form.name == "avro":
            for value in column.pylist():
                self._writer.write(value)
        else:
            self._out.write(getattr(self, f"_{self._form.name}")(column.pylist()))

    def _csv(self, values: list[Any]) -> bytes:
        return csv_lines(["" if one is None else csv_cell(one) for one in value.values()] for value in values)

    def _json(self, values: list[Any]) -> bytes:
        decimals = as_number if self._form.numeric_decimals else as_base64
        return b"".join(orjson.dumps(plain(value, decimals)) + b"\n" for value in values)

    def _string(self, values: list[Any]) -> bytes:
        return "".join(f"{value}\n" for value in values).encode()

    def _bytearray(self, values: list[Any]) -> bytes:
        check_bytes(values)
        return b"".join(value + self._form.separator for value in values)

    def close(self) -> None:
        """End the file; what it was written into stays open."""
        if self._form.name == "parquet":
            self._writer.close()
        elif self._form.name == "avro":
            self._writer.flush()
        if self._form.gzipped:
            self._out.close()


def csv_lines(rows: Iterable[Iterable[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def csv_cell(value: Any) -> Any:
    found = plain(value)
    return orjson.dumps(found).decode() if isinstance(found, dict | list) else found


def as_number(value: Decimal) -> Any:
    return orjson.Fragment(format(value, "f"))


def as_base64(value: Decimal) -> str:
    """The unscaled number as Java's bytes: big-endian, two's complement."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    length = (number + (number < 0)).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(length, "big", signed=True)).decode()


def plain(value: Any, decimals: Callable[[Decimal], Any] = str) -> Any:
    """A value as Connect's JSON without schemas has it: times as numbers, bytes in base64."""
    if isinstance(value, dict):
        return {str(name): plain(one, decimals) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, decimals) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return decimals(value)
    if isinstance(value, datetime):
        return int(value.astimezone(UTC).timestamp() * 1000)
    if isinstance(value, date):
        return (value - EPOCH).days
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return value
