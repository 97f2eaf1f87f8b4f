"""Columns of SQL as Connect's schemas, and back: the formats of a registry have their rules for those.

Every type is optional. Structs and maps get names where a format needs them. Columns that come from a schema
have upper-case names, as in ksqlDB. Does not know: bytes, registries.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number
from typing import Any

from barnabas.connect import data as connect
from barnabas.connect.data.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Field, Type
from barnabas.sql.formats.contract import BadBytes, BadRow, by_any_case
from barnabas.sql.formats.values import days_of, fitted_decimal, int_in_range, long_in_range, millis_of
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
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
)

Convert = Callable[[Any], Any]
PRECISION, PRECISION_DEFAULT = "connect.decimal.precision", 64

PLAIN: dict[SqlType, connect.Schema] = {
    BOOLEAN: connect.OPTIONAL_BOOLEAN,
    INTEGER: connect.OPTIONAL_INT32,
    BIGINT: connect.OPTIONAL_INT64,
    DOUBLE: connect.OPTIONAL_FLOAT64,
    STRING: connect.OPTIONAL_STRING,
    BYTES: connect.OPTIONAL_BYTES,
    DATE: connect.OPTIONAL_DATE,
    TIME: connect.OPTIONAL_TIME,
    TIMESTAMP: connect.OPTIONAL_TIMESTAMP,
}
OF_TYPE: dict[Type, SqlType] = {
    Type.INT8: INTEGER,
    Type.INT16: INTEGER,
    Type.INT32: INTEGER,
    Type.INT64: BIGINT,
    Type.FLOAT32: DOUBLE,
    Type.FLOAT64: DOUBLE,
    Type.BOOLEAN: BOOLEAN,
    Type.STRING: STRING,
    Type.BYTES: BYTES,
}
OF_LOGICAL = {DATE_NAME: DATE, TIME_NAME: TIME, TIMESTAMP_NAME: TIMESTAMP}


def schema_of(kind: SqlType, *, name: str | None = None, text_keys_required: bool = False) -> connect.Schema:
    """Connect's schema of a type. `name` is that of a struct or map; inner ones get `<name>_<field>`."""

    def made(kind: SqlType, name: str | None) -> connect.Schema:
        if isinstance(kind, Decimal):
            return connect.decimal(kind.scale, precision=kind.precision, optional=True)
        if isinstance(kind, Array):
            return connect.array(made(kind.item, name), optional=True)
        if isinstance(kind, Map):
            key = connect.STRING if text_keys_required and kind.key == STRING else made(kind.key, name)
            value = made(kind.value, f"{name}_MapValue" if name else None)
            return connect.Schema(type=Type.MAP, key=key, value=value, optional=True, name=name)
        if isinstance(kind, Struct):
            fields = tuple(
                Field(field, made(inner, f"{name}_{field}" if name else None)) for field, inner in kind.fields
            )
            return connect.Schema(type=Type.STRUCT, fields=fields, optional=True, name=name)
        return PLAIN[kind]

    return made(kind, name)


def record_of(
    columns: Sequence[tuple[str, SqlType]], *, name: str | None, nested: bool, text_keys_required: bool
) -> connect.Schema:
    """The struct of columns. `nested`: inner structs and maps are named after it."""
    fields = tuple(
        Field(
            column,
            schema_of(
                kind,
                name=f"{name}_{column}" if nested and name else None,
                text_keys_required=text_keys_required,
            ),
        )
        for column, kind in columns
    )
    return connect.Schema(type=Type.STRUCT, fields=fields, name=name)


def type_of(schema: connect.Schema) -> SqlType:
    """The type of SQL for a schema. Connect's own errors (DataError) tell what has none."""
    if schema.logical == DECIMAL_NAME:
        return Decimal(int(schema.parameters.get(PRECISION, PRECISION_DEFAULT)), schema.scale)
    if schema.logical is not None:
        return OF_LOGICAL[schema.logical]
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return Array(type_of(schema.value))
    if schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        return Map(type_of(schema.key), type_of(schema.value))
    if schema.type is Type.STRUCT:
        return Struct(tuple((one.name.upper(), type_of(one.schema)) for one in schema.fields))
    return OF_TYPE[schema.type]


# ---------------------------------------------------------------------------------- SQL's values to Connect's


def writer_of(kind: SqlType, target: connect.Schema) -> Convert | None:
    """A function from SQL's values to those of a schema; None where they are the same. Structs take the
    schema's fields, by names in any case."""
    if kind == TIMESTAMP and target.logical == TIMESTAMP_NAME:
        return lambda value: value.replace(tzinfo=dt.UTC)
    if kind == TIMESTAMP:
        return millis_of
    if kind == DATE and target.logical != DATE_NAME:
        return days_of
    if isinstance(kind, Decimal) and target.logical == DECIMAL_NAME:
        wanted = Decimal(kind.precision, target.scale)
        return lambda value: fitted_decimal(value, wanted)
    if kind == DOUBLE:
        return float
    if isinstance(kind, Array) and target.type is Type.ARRAY and target.value is not None:
        item = writer_of(kind.item, target.value)
        return None if item is None else lambda value: [None if v is None else item(v) for v in value]
    if isinstance(kind, Map) and target.type is Type.MAP and target.value is not None:
        one = writer_of(kind.value, target.value)
        return (
            None
            if one is None
            else lambda value: {k: None if v is None else one(v) for k, v in value.items()}
        )
    if isinstance(kind, Struct) and target.type is Type.STRUCT:
        return record_writer(kind.fields, target)
    expected = schema_of(kind)
    if expected.type is not target.type and not (
        OF_TYPE.get(expected.type) is OF_TYPE.get(target.type)
        or (kind == INTEGER and target.type in (Type.INT64, Type.FLOAT64))
        or (kind == BIGINT and target.type is Type.FLOAT64)
    ):
        raise BadRow(f"a column of type {kind} cannot be written as {target.type}")
    return None


def record_writer(columns: Sequence[tuple[str, SqlType]], target: connect.Schema) -> Convert:
    """Rows to values of a struct. Fields of the schema that no column has become null."""
    names = [name for name, _ in columns]
    kinds = dict(columns)
    parts: list[tuple[str, str | None, Convert | None]] = []
    for one in target.fields:
        column = by_any_case(names, one.name)
        write = None if column is None else writer_of(kinds[column], one.schema)
        parts.append((one.name, column, write))

    def write_record(row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            field: None
            if column is None or (value := row.get(column)) is None
            else value
            if write is None
            else write(value)
            for field, column, write in parts
        }

    return write_record


# ---------------------------------------------------------------------------------- Connect's values to SQL's


def reader_of(kind: SqlType) -> Convert:
    """A function from any value of Connect that is not null to SQL's."""
    if isinstance(kind, Decimal):
        return lambda value: fitted_decimal(_number(value, kind), kind)
    if isinstance(kind, Array):
        item = reader_of(kind.item)
        return lambda value: [None if each is None else item(each) for each in _is(value, list, kind)]
    if isinstance(kind, Map):
        key, one = reader_of(kind.key), reader_of(kind.value)
        return lambda value: {
            key(name): None if each is None else one(each) for name, each in _is(value, dict, kind).items()
        }
    if isinstance(kind, Struct):
        read = record_reader(kind.fields)
        return lambda value: read(_is(value, dict, kind))
    return _READERS[kind]


def record_reader(columns: Sequence[tuple[str, SqlType]]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    parts = [(name, reader_of(kind)) for name, kind in columns]

    def read(found: Mapping[str, Any]) -> dict[str, Any]:
        names = list(found)
        row: dict[str, Any] = {}
        for name, convert in parts:
            field = name if name in found else by_any_case(names, name)
            value = None if field is None else found[field]
            try:
                row[name] = None if value is None else convert(value)
            except (ValueError, ArithmeticError, TypeError) as error:
                raise BadBytes(f"{name}: {error}") from None
        return row

    return read


def _is(value: Any, wanted: type, kind: SqlType) -> Any:
    if not isinstance(value, wanted):
        raise BadBytes(f"a {type(value).__name__} is no {kind}")
    return value


def _number(value: Any, kind: SqlType) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float | Number):
        raise BadBytes(f"a {type(value).__name__} is no {kind}")
    return Number(str(value))


def _read_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadBytes(f"a {type(value).__name__} is no INTEGER")
    return int_in_range(value)


def _read_long(value: Any) -> int:
    if isinstance(value, dt.datetime):
        return millis_of(value.replace(tzinfo=None))
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadBytes(f"a {type(value).__name__} is no BIGINT")
    return long_in_range(value)


def _read_double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadBytes(f"a {type(value).__name__} is no DOUBLE")
    return float(value)


def _read_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise BadBytes(f"a {type(value).__name__} is no STRING")


def _read_timestamp(value: Any) -> dt.datetime:
    found: dt.datetime = _is(value, dt.datetime, TIMESTAMP)
    return found.replace(tzinfo=None)


_READERS: dict[SqlType, Convert] = {
    BOOLEAN: lambda value: _is(value, bool, BOOLEAN),
    INTEGER: _read_int,
    BIGINT: _read_long,
    DOUBLE: _read_double,
    STRING: _read_text,
    BYTES: lambda value: _is(value, bytes, BYTES),
    DATE: lambda value: _is(value, dt.date, DATE),
    TIME: lambda value: _is(value, dt.time, TIME),
    TIMESTAMP: _read_timestamp,
}
