"""Connect's schemas as Arrow types, and back.

Logical types have Arrow types of their own: Decimal is `decimal128(38, scale)`, Date `date32`,
Time `time32[ms]`, Timestamp `timestamp[ms, UTC]`. Decimals that need more than 38 digits say so by the
parameter `connect.decimal.precision` and become `decimal256`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

from barnabas.connect.data.errors import DataError
from barnabas.connect.data.schema import (
    BOOLEAN,
    BYTES,
    COUNTERPARTS,
    DATE,
    DATE_NAME,
    DECIMAL_NAME,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
    Field,
    Schema,
    Type,
    array,
    decimal,
    mapping,
)

DIGITS, DIGITS_MAX = 38, 76
PRIMITIVES = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
LOGICAL = {DATE_NAME: pa.date32(), TIME_NAME: pa.time32("ms"), TIMESTAMP_NAME: pa.timestamp("ms", "UTC")}


def arrow_type(schema: Schema) -> pa.DataType:
    logical = schema.logical
    if logical == DECIMAL_NAME:
        return decimal_type(schema)
    if logical is not None:
        return LOGICAL[logical]
    if schema.type is Type.STRUCT:
        return pa.struct([arrow_field(one) for one in schema.fields])
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return pa.list_(pa.field("item", schema.value.arrow, nullable=schema.value.optional))
    if schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        return pa.map_(
            schema.key.arrow, pa.field("value", schema.value.arrow, nullable=schema.value.optional)
        )
    return PRIMITIVES[schema.type]


def arrow_field(one: Field) -> pa.Field:
    # A required field with a default may be null in a struct: readers then see the default, as in Java.
    nullable = one.schema.optional or one.schema.default is not None
    return pa.field(one.name, one.schema.arrow, nullable=nullable)


def decimal_type(schema: Schema) -> pa.DataType:
    scale = schema.scale
    digits = int(schema.parameters.get("connect.decimal.precision", DIGITS))
    if digits > DIGITS_MAX or abs(scale) > DIGITS_MAX:
        raise DataError(
            f"decimals of {digits} digits and scale {scale} are too long: {DIGITS_MAX} is the most"
        )
    if digits > DIGITS or abs(scale) > DIGITS:
        return pa.decimal256(DIGITS_MAX, scale)
    return pa.decimal128(DIGITS, scale)


def schema_of_arrow(arrow: pa.DataType | pa.Field, name: str | None = None) -> Schema:
    if isinstance(arrow, pa.Field):
        schema = schema_of_arrow(arrow.type, name)
        return schema.as_optional() if arrow.nullable else schema
    if kinds.is_dictionary(arrow):
        return schema_of_arrow(arrow.value_type, name)
    if kinds.is_struct(arrow):
        parts = [arrow.field(index) for index in range(arrow.num_fields)]
        fields = tuple(Field(part.name, schema_of_arrow(part)) for part in parts)
        return Schema(type=Type.STRUCT, name=name, fields=fields)
    if kinds.is_list(arrow) or kinds.is_large_list(arrow) or kinds.is_fixed_size_list(arrow):
        return array(schema_of_arrow(arrow.value_field))
    if kinds.is_map(arrow):
        return mapping(schema_of_arrow(arrow.key_type), schema_of_arrow(arrow.item_field))
    if kinds.is_decimal(arrow):
        return decimal(arrow.scale, precision=arrow.precision)
    for test, schema in TESTS:
        if test(arrow):
            return schema
    raise DataError(f"Arrow's type {arrow} has no counterpart among Connect's types")


TESTS = (
    (kinds.is_boolean, BOOLEAN),
    (kinds.is_int8, INT8),
    (lambda one: kinds.is_int16(one) or kinds.is_uint8(one), INT16),
    (lambda one: kinds.is_int32(one) or kinds.is_uint16(one), INT32),
    (lambda one: kinds.is_int64(one) or kinds.is_uint32(one), INT64),
    (kinds.is_uint64, decimal(0, precision=20)),
    (lambda one: kinds.is_float32(one) or kinds.is_float16(one), FLOAT32),
    (kinds.is_float64, FLOAT64),
    (lambda one: kinds.is_string(one) or kinds.is_large_string(one) or kinds.is_string_view(one), STRING),
    (
        lambda one: (
            kinds.is_binary(one)
            or kinds.is_large_binary(one)
            or kinds.is_fixed_size_binary(one)
            or kinds.is_binary_view(one)
        ),
        BYTES,
    ),
    (kinds.is_date, DATE),
    (kinds.is_time, TIME),
    (kinds.is_timestamp, TIMESTAMP),
    (kinds.is_null, OPTIONAL_STRING),
)


COUNTERPARTS["arrow"] = arrow_type
COUNTERPARTS["of_arrow"] = schema_of_arrow
