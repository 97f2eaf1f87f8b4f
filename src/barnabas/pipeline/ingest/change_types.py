"""Values of Debezium's change events as columns of Spark: dates, times, decimals and booleans.

In: the token of a column in an event (a VARIANT), the name of its type where the event or the pipeline's file
gives one, the connector that wrote the event, the declared type. Out: the value; null where the token does
not fit, so that the event is malformed. MySQL writes booleans as 0 and 1, dates as days, DATETIME as
milliseconds or microseconds, DECIMAL as bytes of the unscaled number in base64. Does not know: envelopes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from barnabas.pipeline.spec.change_types import (
    DECIMAL_BYTES,
    DECIMAL_TEXT,
    MICROSECONDS,
    MILLISECONDS,
    NANOSECONDS,
    UNITS,
    UNITS_OF_CONNECTORS,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

CONVERTED = (BooleanType, DateType, TimestampType, TimestampNTZType, DecimalType)
# Columns of a row, in the schema that an event carries.
COLUMN_DDL = "struct<field:string,name:string,type:string,parameters:struct<scale:string>>"
FIELDS_DDL = f"array<struct<field:string,fields:array<{COLUMN_DDL}>>>"
FIRST_MICROSECOND = -62_135_596_800_000_000  # 0001-01-01
LAST_MICROSECOND = 253_402_300_799_999_999  # 9999-12-31
DIGITS_OF_8_BYTES = 16
TWO_TO_64 = 1 << 64


def needs_conversion(schema: StructType) -> bool:
    return any(isinstance(each.dataType, CONVERTED) for each in schema.fields)


def read_schema(schema: StructType) -> StructType:
    """The columns as they are parsed first: tokens where the declared type does not tell what is written."""
    return StructType(
        [
            StructField(each.name, VariantType() if isinstance(each.dataType, CONVERTED) else each.dataType)
            for each in schema.fields
        ]
    )


def column_facts(event_schema: Column) -> Column:
    """Names and types of the row's columns, from the schema that an event carries; null without one."""
    fields = F.try_variant_get(event_schema, "$.fields", FIELDS_DDL)
    rows = F.filter(fields, lambda each: each["field"] == "after")
    return F.get(rows, F.lit(0))["fields"]


def fact(facts: Column, column: str) -> Column:
    return F.get(F.filter(facts, lambda each: each["field"] == column), F.lit(0))


def named_type(fact: Column, declared: str) -> Column:
    """The name of a column's type: the event's, else that of the pipeline's file."""
    return F.coalesce(fact["name"], fact["type"], F.lit(declared or None).cast("string"))


def is_given(token: Column) -> Column:
    return token.isNotNull() & ~F.is_variant_null(token)


def converted(token: Column, fact: Column, declared: str, connector: Column, type: DataType) -> Column:
    """The value of a token; null where there is none, and where it is not of that type."""
    name = named_type(fact, declared)
    kind, text = F.schema_of_variant(token), F.try_variant_get(token, "$", "string")
    is_whole = kind == "BIGINT"
    number = text.try_cast("bigint")
    if isinstance(type, BooleanType):
        return F.when(kind == "BOOLEAN", text.try_cast("boolean")).when(is_whole, number != 0)
    if isinstance(type, DateType):
        days = F.when(number.between(-719_162, 2_932_896), number.cast("int"))  # years 1 to 9999
        return F.when(is_whole, F.date_add(F.lit("1970-01-01").cast("date"), days)).when(
            kind == "STRING", text.try_cast("date")
        )
    if isinstance(type, DecimalType):
        scale = F.coalesce(fact["parameters"]["scale"].try_cast("int"), F.lit(type.scale))
        return decimal(token, name, scale, type)
    time = F.timestamp_micros(microseconds(number, unit_of(name, connector)))
    return F.when(is_whole, time.cast(type)).when(kind == "STRING", text.try_cast(type))


def unit_of(name: Column, connector: Column) -> Column:
    found = F.lit(None).cast("string")
    for known, unit in UNITS_OF_CONNECTORS.items():
        found = F.when(connector == known, F.lit(unit)).otherwise(found)
    for known, unit in UNITS.items():
        found = F.when(name == known, F.lit(unit)).otherwise(found)
    return found


def microseconds(number: Column, unit: Column) -> Column:
    """Within the years that a timestamp can have; null outside of them: the unit is another one then."""
    scaled = (
        F.when(unit == MILLISECONDS, F.try_multiply(number, F.lit(1000)))
        .when(unit == MICROSECONDS, number)
        .when(unit == NANOSECONDS, F.floor(number / F.lit(1000).cast("decimal(4,0)")).cast("bigint"))
    )
    return F.when(scaled.between(FIRST_MICROSECOND, LAST_MICROSECOND), scaled)


def decimal(token: Column, name: Column, scale: Column, type: DecimalType) -> Column:
    """Numbers are themselves, as with `decimal.handling.mode=double`. Texts with a point are numbers
    (`string`), others the bytes of the unscaled number (`precise`, the default). Digits without a point may
    be either: they need a name."""
    kind, text = F.schema_of_variant(token), F.try_variant_get(token, "$", "string")
    is_text = (name == DECIMAL_TEXT) | text.contains(".")
    is_bytes = (name == DECIMAL_BYTES) | ~text.rlike("^[+-]?[0-9]+$")
    of_any_scale = F.try_variant_get(token, "$.value", "string")
    own_scale = F.try_variant_get(token, "$.scale", "int")
    return (
        F.when(kind.startswith("OBJECT"), with_point(unscaled(of_any_scale), own_scale).try_cast(type))
        .when(kind != "STRING", text.try_cast(type))
        .when(F.coalesce(is_text, F.lit(False)), text.try_cast(type))
        .when(F.coalesce(is_bytes, F.lit(False)), with_point(unscaled(text), scale).try_cast(type))
    )


def unscaled(text: Column) -> Column:
    """The whole number, big-endian with its sign, whose bytes are written in base64. At most 16 bytes."""
    digits = F.hex(F.try_to_binary(text, F.lit("base64")))
    sign = F.when(F.substring(digits, 1, 1) >= "8", F.lit("F")).otherwise(F.lit("0"))
    wide = F.concat(F.repeat(sign, F.lit(2 * DIGITS_OF_8_BYTES) - F.length(digits)), digits)
    high = F.conv(F.substring(wide, 1, DIGITS_OF_8_BYTES), 16, -10).try_cast("decimal(38,0)")
    low = F.conv(F.substring(wide, 1 + DIGITS_OF_8_BYTES, DIGITS_OF_8_BYTES), 16, 10).try_cast(
        "decimal(20,0)"
    )
    found = F.try_add(F.try_multiply(high, F.lit(str(TWO_TO_64)).cast("decimal(20,0)")), low)
    return F.when(F.length(digits).between(2, 2 * DIGITS_OF_8_BYTES), found)


def with_point(whole: Column, scale: Column) -> Column:
    """A whole number as text, with a point before its last digits."""
    digits = F.abs(whole).cast("string")
    padded = F.lpad(digits, F.greatest(F.length(digits), scale + 1), F.lit("0"))
    before = F.substr(padded, F.lit(1), F.length(padded) - scale)
    behind = F.substr(padded, F.length(padded) - scale + 1, F.greatest(scale, F.lit(0)))
    text = F.concat(F.when(whole < 0, F.lit("-")).otherwise(F.lit("")), before, F.lit("."), behind)
    return F.when(scale.between(0, 38), text)
