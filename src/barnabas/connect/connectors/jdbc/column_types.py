"""Columns of databases as Connect's fields, and rows as Arrow arrays.

In: columns of a catalogue, rows of a driver. Out: a schema as Confluent's source gives it, a column of
structs.
The conversion goes column by column. Does not know: queries, positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from barnabas.connect.connectors.databases.catalogue import ColumnInfo, SqlType
from barnabas.connect.connectors.databases.days import FAR_MS, Moment, is_far
from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL_CONTEXT,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Column,
    Field,
    Schema,
    Type,
    array,
    decimal,
)
from barnabas.connect.plugins import ConnectError

UNLIMITED_SCALE = 18  # digits behind the point of NUMERIC columns that declare none
DIGITS_OF_INT64 = 18
SIMPLE = {
    SqlType.BOOLEAN: BOOLEAN,
    SqlType.TINYINT: INT8,
    SqlType.SMALLINT: INT16,
    SqlType.INTEGER: INT32,
    SqlType.BIGINT: INT64,
    SqlType.REAL: FLOAT32,
    SqlType.DOUBLE: FLOAT64,
    SqlType.TEXT: STRING,
    SqlType.BINARY: BYTES,
    SqlType.DATE: DATE,
    SqlType.TIME: TIME,
}
UNSIGNED = {SqlType.TINYINT: INT16, SqlType.SMALLINT: INT32, SqlType.INTEGER: INT64}
TIMESTAMPS = (SqlType.TIMESTAMP, SqlType.TIMESTAMP_ZONED)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UTC_ZONES = (UTC, ZoneInfo("UTC"))
Values = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Mapping:
    """How types are mapped: `numeric.mapping`, `timestamp.granularity`, `db.timezone`."""

    numeric: str = "none"
    granularity: str = "connect_logical"
    zone: tzinfo = UTC

    def zone_of(self, column: ColumnInfo) -> tzinfo:
        """The zone of a column's values that come without one."""
        return UTC if column.type is SqlType.TIMESTAMP_ZONED else self.zone


def field_schema(column: ColumnInfo, mapping: Mapping) -> Schema:
    """The schema of a column's values."""
    if column.type is SqlType.ARRAY:
        inner = replace(column, type=column.item or SqlType.TEXT, nullable=True)
        found = array(field_schema(inner, mapping))
    elif column.type in TIMESTAMPS:
        found = timestamp_schema(mapping.granularity)
    elif column.type is SqlType.NUMERIC:
        found = numeric_schema(column, mapping.numeric)
    elif column.type is SqlType.DECIMAL:
        found = decimal_schema(column)
    else:
        found = (UNSIGNED if column.unsigned else {}).get(column.type, SIMPLE[column.type])
    return found.as_optional() if column.nullable else found


def timestamp_schema(granularity: str) -> Schema:
    if granularity == "connect_logical":
        return TIMESTAMP
    return INT64 if granularity.endswith("long") else STRING


def decimal_schema(column: ColumnInfo) -> Schema:
    scale = UNLIMITED_SCALE if column.scale is None else column.scale
    return decimal(scale, precision=column.precision or None)


def numeric_schema(column: ColumnInfo, mapping: str) -> Schema:
    """NUMERIC columns as `numeric.mapping` says."""
    precision, scale = column.precision, column.scale
    if mapping == "none":
        return decimal_schema(column)
    if scale is not None and precision and scale <= 0 and precision <= DIGITS_OF_INT64:
        return INT64 if precision > 9 else INT32 if precision > 4 else INT16 if precision > 2 else INT8
    if mapping == "best_fit_eager_double" and (scale is None or scale > 0):
        return FLOAT64
    if mapping == "best_fit" and (scale is None or (scale > 0 and precision <= DIGITS_OF_INT64)):
        return FLOAT64
    return decimal_schema(column)


@dataclass(frozen=True, slots=True)
class TableShape:
    """The columns of a table or query with the schema of its records."""

    columns: tuple[ColumnInfo, ...]
    schema: Schema
    key_schema: Schema | None
    mapping: Mapping

    @staticmethod
    def of(
        name: str | None, columns: Sequence[ColumnInfo], mapping: Mapping, *, keyed: bool = False
    ) -> TableShape:
        fields = tuple(Field(each.name, field_schema(each, mapping)) for each in columns)
        keys = sorted((each for each in columns if each.key_position), key=lambda each: each.key_position)
        key = None
        if keyed and keys:
            parts = tuple(Field(each.name, field_schema(each, mapping)) for each in keys)
            key = Schema(type=Type.STRUCT, fields=parts)
        return TableShape(tuple(columns), Schema(type=Type.STRUCT, name=name, fields=fields), key, mapping)

    def values(self, rows: Sequence[Sequence[Any]]) -> Column:
        """Rows as one column of structs."""
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in self.columns]
        arrays = [
            column_array(info, values, one.schema, self.mapping)
            for info, values, one in zip(self.columns, columns, self.schema.fields, strict=True)
        ]
        kind = self.schema.arrow
        return Column(
            self.schema,
            pa.StructArray.from_arrays(arrays, fields=[kind.field(i) for i in range(kind.num_fields)]),
        )

    def keys(self, values: Column) -> Column:
        """The primary keys of these values; nulls where there is none."""
        if self.key_schema is None:
            return Column.nulls(len(values))
        kind = self.key_schema.arrow
        parts = [values.data.field(name) for name in self.key_schema.field_names]
        data = pa.StructArray.from_arrays(parts, fields=[kind.field(i) for i in range(kind.num_fields)])
        return Column(self.key_schema, data)


def column_array(info: ColumnInfo, values: Values, schema: Schema, mapping: Mapping) -> pa.Array:
    found = at_once(info, values, schema, mapping)
    if found is not None:
        return found
    try:
        convert = converter(info, schema, mapping)
        given = values if convert is None else [None if each is None else convert(each) for each in values]
        return pa.array(given, schema.arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, ArithmeticError) as error:
        raise ConnectError(
            f"the column {info.name} ({info.native or info.type}) has a value that does not fit"
            f" {schema.type}: {error}; {advice(info)}"
        ) from error


def at_once(info: ColumnInfo, values: Values, schema: Schema, mapping: Mapping) -> pa.Array | None:
    """Values of a driver that Arrow takes just as their converter gives them; None: they go one by one."""
    is_time = info.type in TIMESTAMPS and mapping.granularity == "connect_logical"
    if is_time:
        first = next((each for each in values if each is not None), None)
        if not isinstance(first, datetime) or (
            first.tzinfo is None and mapping.zone_of(info) not in UTC_ZONES
        ):
            return None
    elif schema.logical is not None or schema.type not in (Type.STRING, Type.FLOAT64):
        return None
    try:
        return pa.array(values, schema.arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, ArithmeticError):
        return None


def converter(info: ColumnInfo, schema: Schema, mapping: Mapping) -> Callable[[Any], Any] | None:
    """The conversion of a driver's value into one that Arrow takes; None: Arrow takes them as they are."""
    if info.type is SqlType.ARRAY:
        assert schema.value is not None
        inner = converter(replace(info, type=info.item or SqlType.TEXT), schema.value, mapping)
        return lambda items: [each if each is None or inner is None else inner(each) for each in flat(items)]
    if info.type in TIMESTAMPS:
        return lambda value: timestamp(value, mapping.zone_of(info), mapping.granularity)
    if schema.logical is not None and schema.type is Type.BYTES:
        scale = Decimal(1).scaleb(-schema.scale)
        return lambda value: exact(value, scale)
    if schema.type is Type.STRING:
        return as_text
    if schema.type is Type.FLOAT64 or schema.type is Type.FLOAT32:
        return float
    if schema.type is Type.BOOLEAN:
        return bool
    if schema.type is Type.BYTES:
        return bytes
    if info.type is SqlType.TIME:
        return day_time
    if info.type is SqlType.DATE:
        return day
    if info.type in (SqlType.NUMERIC, SqlType.DECIMAL):
        return int
    if info.native == "bit":
        return int.from_bytes
    return None


def exact(value: Any, scale: Decimal) -> Decimal:
    """A decimal of this scale; digits that do not fit are an error, not rounded."""
    given = Decimal(str(value)) if not isinstance(value, Decimal) else value
    if not given.is_finite():
        raise ValueError(f"{given} is no number of a fixed scale")
    found = given.quantize(scale, context=DECIMAL_CONTEXT)
    if found != given:
        raise ValueError(f"{given} has more than {-int(scale.as_tuple().exponent)} digits behind the point")
    return found


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def day_time(value: Any) -> time:
    """A time of the day, cut to milliseconds. MySQL's driver gives durations."""
    if isinstance(value, str):
        value = time.fromisoformat(value)
    if isinstance(value, timedelta):
        if not timedelta(0) <= value < timedelta(days=1):
            raise ValueError(f"{value} is no time of a day")
        value = (datetime.min + value).time()
    return value.replace(tzinfo=None, microsecond=value.microsecond // 1000 * 1000)  # type: ignore[no-any-return]


def moment(value: Any, zone: tzinfo) -> datetime:
    """A point in time; values without a zone are in `db.timezone`."""
    if isinstance(value, int | float):  # SQLite: milliseconds
        return EPOCH + timedelta(milliseconds=value)
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return value.replace(tzinfo=zone) if value.tzinfo is None else value  # type: ignore[no-any-return]


def timestamp(value: Any, zone: tzinfo, granularity: str) -> Any:
    """A timestamp as its schema has it. PostgreSQL's ends of time and years that Python does not have are
    milliseconds, as its driver for Java gives them."""
    if granularity == "connect_logical" and isinstance(value, str):
        if value in FAR_MS:
            return FAR_MS[value]
        if is_far(value):
            return Moment.of(value).total // 1000
    return stamped(moment(value, zone), granularity)


def day(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return Moment.of(value).day if is_far(value) else date.fromisoformat(value)


def flat(items: Any) -> Iterator[Any]:
    """The items of an array. Arrays of several dimensions have one list, row after row: their column has the
    same type as one of one dimension."""
    for each in items:
        if isinstance(each, list):
            yield from flat(each)
        else:
            yield each


def advice(info: ColumnInfo) -> str:
    if info.type in (SqlType.NUMERIC, SqlType.DECIMAL):
        return "numeric.mapping, or a query with CAST, chooses another type"
    if info.native in ("date", "datetime", "timestamp"):
        return (
            "a query with CAST chooses another type, and zeroDateTimeBehavior=CONVERT_TO_NULL in"
            " connection.url reads MySQL's zero dates as null"
        )
    return "a query with CAST chooses another type"


def stamped(value: datetime, granularity: str) -> Any:
    if granularity == "connect_logical":
        return value
    micros = (value - EPOCH) // timedelta(microseconds=1)
    if granularity.endswith("iso_datetime_string"):
        text = value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{text}000Z" if granularity.startswith("nanos") else f"{text}Z"
    number = micros * 1000 if granularity.startswith("nanos") else micros
    return number if granularity.endswith("long") else str(number)
