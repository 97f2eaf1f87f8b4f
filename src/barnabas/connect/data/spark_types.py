"""Connect's schemas as Spark types, and back. Spark is imported only when asked.

Spark has no time of day: Time becomes an integer of milliseconds. Decimals have 38 digits at most.
"""

from __future__ import annotations

from typing import Any

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
    STRING,
    TIMESTAMP,
    TIMESTAMP_NAME,
    Field,
    Schema,
    Type,
    array,
    decimal,
    mapping,
)

DIGITS = 38


def spark_type(schema: Schema) -> Any:
    from pyspark.sql import types

    logical = schema.logical
    if logical == DECIMAL_NAME:
        if not 0 <= schema.scale <= DIGITS:
            raise DataError(f"Spark has no decimals with scale {schema.scale}: 0 to {DIGITS} are possible")
        digits = int(schema.parameters.get("connect.decimal.precision", DIGITS))
        return types.DecimalType(max(min(digits, DIGITS), schema.scale), schema.scale)
    if logical == DATE_NAME:
        return types.DateType()
    if logical == TIMESTAMP_NAME:
        return types.TimestampType()
    if schema.type is Type.STRUCT:
        return types.StructType(
            [
                types.StructField(
                    one.name, spark_type(one.schema), one.schema.optional or one.schema.default is not None
                )
                for one in schema.fields
            ]
        )
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return types.ArrayType(spark_type(schema.value), schema.value.optional)
    if schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        return types.MapType(spark_type(schema.key), spark_type(schema.value), schema.value.optional)
    return {
        Type.INT8: types.ByteType,
        Type.INT16: types.ShortType,
        Type.INT32: types.IntegerType,
        Type.INT64: types.LongType,
        Type.FLOAT32: types.FloatType,
        Type.FLOAT64: types.DoubleType,
        Type.BOOLEAN: types.BooleanType,
        Type.STRING: types.StringType,
        Type.BYTES: types.BinaryType,
    }[schema.type]()


def schema_of_spark(spark: Any, name: str | None = None) -> Schema:
    kind = type(spark).__name__
    if kind == "StructField":
        schema = schema_of_spark(spark.dataType)
        return schema.as_optional() if spark.nullable else schema
    if kind == "StructType":
        fields = tuple(Field(one.name, schema_of_spark(one)) for one in spark.fields)
        return Schema(type=Type.STRUCT, name=name, fields=fields)
    if kind == "ArrayType":
        item = schema_of_spark(spark.elementType)
        return array(item.as_optional() if spark.containsNull else item)
    if kind == "MapType":
        value = schema_of_spark(spark.valueType)
        return mapping(
            schema_of_spark(spark.keyType), value.as_optional() if spark.valueContainsNull else value
        )
    if kind == "DecimalType":
        return decimal(spark.scale, precision=spark.precision)
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]
    raise DataError(f"Spark's type {spark} has no counterpart among Connect's types")


PRIMITIVES = {
    "ByteType": INT8,
    "ShortType": INT16,
    "IntegerType": INT32,
    "LongType": INT64,
    "FloatType": FLOAT32,
    "DoubleType": FLOAT64,
    "BooleanType": BOOLEAN,
    "StringType": STRING,
    "VarcharType": STRING,
    "CharType": STRING,
    "BinaryType": BYTES,
    "DateType": DATE,
    "TimestampType": TIMESTAMP,
    "TimestampNTZType": TIMESTAMP,
}


COUNTERPARTS["spark"] = spark_type
COUNTERPARTS["of_spark"] = schema_of_spark
