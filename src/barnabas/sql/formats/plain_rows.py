"""KAFKA, DELIMITED and NONE: a single value in Kafka's bytes, cells with commas, no key at all.

KAFKA coerces nothing: bytes of another length are an error. DELIMITED is CSV with RFC 4180's quotes; an empty
cell is null; a wrong number of cells is an error. Does not know: topics.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number
from typing import Any

from barnabas.sql.errors import SqlError
from barnabas.sql.formats.contract import BadBytes, BadRow, Row
from barnabas.sql.formats.values import (
    days_of,
    fitted_decimal,
    int_in_range,
    java_double,
    long_in_range,
    millis_of,
    of_days,
    of_millis_checked,
    of_time_millis,
    time_millis,
)
from barnabas.sql.metastore.schemas import Column
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Decimal,
    SqlType,
)

SHAPES = {INTEGER: struct.Struct(">i"), BIGINT: struct.Struct(">q"), DOUBLE: struct.Struct(">d")}
DELIMITERS = {"SPACE": " ", "TAB": "\t"}


class NoneRows:
    """The format of a key without columns."""

    def to_bytes(self, row: Mapping[str, Any]) -> bytes | None:
        return None

    def from_bytes(self, data: bytes) -> Row | None:
        return {}


class KafkaRows:
    """One column in the bytes of Kafka's own serializers."""

    def __init__(self, column: Column) -> None:
        self._name, self._kind = column.name, column.kind
        self._shape = SHAPES.get(column.kind)

    def to_bytes(self, row: Mapping[str, Any]) -> bytes | None:
        value = row.get(self._name)
        if value is None:
            return None
        if self._shape is not None:
            try:
                return self._shape.pack(value)
            except struct.error as error:
                raise BadRow(f"{value!r} is no {self._kind}: {error}") from None
        if self._kind == STRING:
            return str(value).encode()
        return bytes(value)

    def from_bytes(self, data: bytes) -> Row | None:
        if self._shape is not None:
            if len(data) != self._shape.size:
                raise BadBytes(
                    f"Size of data received by the deserializer of {self._kind} is {len(data)} bytes, not"
                    f" {self._shape.size}"
                )
            return {self._name: self._shape.unpack(data)[0]}
        if self._kind == STRING:
            try:
                return {self._name: data.decode()}
            except UnicodeDecodeError as error:
                raise BadBytes(f"the text is no UTF-8: {error}") from None
        return {self._name: data}


class DelimitedRows:
    """Cells in the order of the columns."""

    def __init__(self, columns: Sequence[Column], delimiter: str = ",") -> None:
        self._delimiter = delimiter_of(delimiter)
        self._columns = [(each.name, _to_cell(each.kind), _of_cell(each.kind)) for each in columns]

    def to_bytes(self, row: Mapping[str, Any]) -> bytes | None:
        cells = [
            None if (value := row.get(name)) is None else write(value) for name, write, _ in self._columns
        ]
        if all(cell is None for cell in cells) and len(cells) == 1:
            return None
        out = io.StringIO()
        csv.writer(out, delimiter=self._delimiter, lineterminator="").writerow(
            ["" if cell is None else cell for cell in cells]
        )
        return out.getvalue().encode()

    def from_bytes(self, data: bytes) -> Row | None:
        try:
            rows = list(csv.reader(io.StringIO(data.decode()), delimiter=self._delimiter, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadBytes(f"the text is not delimited: {error}") from None
        if len(rows) > 1:
            raise BadBytes(f"Expected single line, got {len(rows)}")
        cells = rows[0] if rows else [""]
        if len(cells) != len(self._columns):
            raise BadBytes(
                f"Unexpected field count, csvFields:{len(cells)} schemaFields:{len(self._columns)}"
            )
        found: Row = {}
        for (name, _, read), cell in zip(self._columns, cells, strict=True):
            try:
                found[name] = None if cell == "" else read(cell)
            except (ValueError, ArithmeticError, binascii.Error) as error:
                raise BadBytes(f"{name}: {cell!r} cannot be read: {error}") from None
        return found


def delimiter_of(text: str) -> str:
    found = DELIMITERS.get(text.upper(), text)
    if len(found) != 1:
        raise SqlError(
            f"Invalid delimiter value: '{text}'. Delimiter must be a single character or SPACE or TAB"
        )
    return found


def _to_cell(kind: SqlType) -> Callable[[Any], str]:
    known: dict[SqlType, Callable[[Any], str]] = {
        BOOLEAN: lambda value: "true" if value else "false",
        DOUBLE: java_double,
        BYTES: lambda value: base64.b64encode(value).decode(),
        DATE: lambda value: str(days_of(value)),
        TIME: lambda value: str(time_millis(value)),
        TIMESTAMP: lambda value: str(millis_of(value)),
    }
    if isinstance(kind, Decimal):
        return lambda value: format(fitted_decimal(value, kind), "f")
    return known.get(kind, str)


def _of_cell(kind: SqlType) -> Callable[[str], Any]:
    known: dict[SqlType, Callable[[str], Any]] = {
        BOOLEAN: lambda cell: cell.strip().lower() == "true",
        INTEGER: lambda cell: int_in_range(int(cell.strip())),
        BIGINT: lambda cell: long_in_range(int(cell.strip())),
        DOUBLE: lambda cell: float(cell.strip()),
        BYTES: lambda cell: base64.b64decode(cell, validate=True),
        DATE: lambda cell: of_days(int(cell)),
        TIME: lambda cell: of_time_millis(int(cell)),
        TIMESTAMP: lambda cell: of_millis_checked(int(cell)),
    }
    if isinstance(kind, Decimal):
        return lambda cell: fitted_decimal(Number(cell.strip()), kind)
    return known.get(kind, str)
