"""TimestampConverter: times between text, numbers since 1970, and Connect's Date, Time and Timestamp."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config import REQUIRED, ConfigDef, ConfigType, Importance, invalid, one_of
from barnabas.connect.data import DATE, INT64, STRING, TIME, TIMESTAMP, Column, Records, Schema, Type
from barnabas.connect.data.date_formats import DateFormat
from barnabas.connect.data.schema import DATE_NAME, TIME_NAME, TIMESTAMP_NAME
from barnabas.connect.transforms.contract import FieldTransform, SchemaError, both
from barnabas.connect.transforms.parts_of_columns import (
    REPLACE_NULL,
    put_together,
    require_map,
    taken_apart,
    with_null_setting,
)

TARGETS = {"string": STRING, "unix": INT64, "Date": DATE, "Time": TIME, "Timestamp": TIMESTAMP}
PER_SECOND = {"seconds": 1, "milliseconds": 1000, "microseconds": 10**6, "nanoseconds": 10**9}
DAY_MS = 86_400_000
LONG_MAX, INT32_MAX = (1 << 63) - 1, (1 << 31) - 1


@both
class TimestampConverter(FieldTransform):
    """`field` is converted, or the whole value if there is none."""

    CONFIG = with_null_setting(
        ConfigDef()
        .define("field", ConfigType.STRING, "", Importance.HIGH, "The field; empty: the whole value.")
        .define("target.type", ConfigType.STRING, REQUIRED, Importance.HIGH, "What it becomes.",
                validator=one_of(*TARGETS))
        .define("format", ConfigType.STRING, "", Importance.MEDIUM, "The pattern of texts, in UTC.")
        .define("unix.precision", ConfigType.STRING, "milliseconds", Importance.LOW, "The unit of numbers.",
                validator=one_of("nanoseconds", "microseconds", "milliseconds", "seconds"))
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self.target = self.settings.text("target.type")
        pattern = self.settings.text("format").strip()
        if self.target == "string" and not pattern:
            reason = "a format is needed when the target is a string"
            raise invalid("format", pattern, reason)
        try:
            self.format = DateFormat(pattern) if pattern else None
        except ValueError as error:
            raise invalid("format", pattern, str(error)) from None
        self.per_second = PER_SECOND[self.settings.text("unix.precision")]

    def column(self, column: Column, records: Records) -> Column:
        assert column.schema is not None
        name = self.settings.text("field")
        if not name:
            return Column(self.schema(column.schema), self.converted(column.data, column.schema))
        parts = taken_apart(column, "converting timestamp formats", defaults=self.settings.flag(REPLACE_NULL))
        fields = [
            (one.name, self.schema(one.schema), self.converted(parts[one.name], one.schema))
            if one.name == name
            else (one.name, one.schema, parts[one.name])
            for one in column.schema.fields
        ]
        return put_together(column, fields)

    def schema(self, schema: Schema) -> Schema:
        made = TARGETS[self.target]
        return made.as_optional() if schema.optional else made

    def converted(self, data: Any, schema: Schema) -> Any:
        if schema.name not in LOGICAL and schema.type not in (Type.STRING, Type.INT64):
            raise unknown(schema)
        if data.null_count == len(data):
            return pa.nulls(len(data), TARGETS[self.target].arrow)
        return self.from_ms(self.to_ms(data, schema))

    def to_ms(self, data: Any, schema: Schema) -> Any:
        """Milliseconds since 1970 as int64."""
        if schema.name == DATE_NAME:
            return pc.multiply(data.cast(pa.int32()).cast(pa.int64()), DAY_MS)
        if schema.name == TIME_NAME:
            return data.cast(pa.int32()).cast(pa.int64())
        if schema.name == TIMESTAMP_NAME:
            return data.cast(pa.int64())
        if schema.type is Type.STRING:
            if self.format is None:
                raise SchemaError(
                    "TimestampConverter requires the format of texts that it reads: set `format`"
                )
            return self.format.times(data).cast(pa.int64())
        if schema.type is Type.INT64:
            return scaled(data, self.per_second, 1000)
        raise unknown(schema)

    def from_ms(self, ms: Any) -> Any:
        moments = ms.cast(pa.timestamp("ms", "UTC"))
        if self.target == "Timestamp":
            return moments
        if self.target == "string":
            assert self.format is not None
            return self.format.texts(moments)
        if self.target == "unix":
            return scaled(ms, 1000, self.per_second)
        numbers = np.asarray(ms.fill_null(0))
        days = np.floor_divide(numbers, DAY_MS)
        if self.target == "Date" and len(days) and np.abs(days).max() > INT32_MAX:
            raise ValueError("a time is too far away for a Date, which has 32 bits for its days")
        found = days if self.target == "Date" else numbers - days * DAY_MS
        kind = DATE.arrow if self.target == "Date" else TIME.arrow
        return pa.array(found.astype(np.int32), pa.int32(), mask=np.asarray(ms.is_null())).cast(kind)

    def plain(self, value: Any, row: int, records: Records) -> Any:
        if value is None:
            return None
        name = self.settings.text("field")
        if not name:
            return self.plain_value(value)
        made = dict(require_map(value, "converting timestamp formats"))
        made[name] = self.plain_value(made.get(name))
        return made

    def plain_value(self, value: Any) -> Any:
        if value is None:
            return None
        for kind, schema in PLAIN:
            if isinstance(value, kind) and not isinstance(value, bool):
                data = pa.array([value], schema.arrow)
                return self.converted(data, schema)[0].as_py()
        raise ValueError(f"TimestampConverter does not support {type(value).__name__} objects as timestamps")


LOGICAL = (DATE_NAME, TIME_NAME, TIMESTAMP_NAME)


def unknown(schema: Schema) -> SchemaError:
    return SchemaError(f"Schema {schema.name or schema.type} does not correspond to a known timestamp type")


PLAIN = ((str, STRING), (int, INT64), (dt.datetime, TIMESTAMP), (dt.date, DATE), (dt.time, TIME))


def scaled(data: Any, per_second: int, wanted: int) -> Any:
    """Numbers of one unit in another: rounded towards zero and held inside of 64 bits."""
    if per_second == wanted:
        return data
    if per_second > wanted:
        return pc.divide(data, per_second // wanted)
    factor = wanted // per_second
    limit = LONG_MAX // factor
    fits = pc.and_(pc.less_equal(data, limit), pc.greater_equal(data, -limit))
    if pc.all(fits).as_py() is not False:
        return pc.multiply(data, factor)
    held = pc.if_else(pc.greater(data, 0), LONG_MAX, -LONG_MAX - 1)
    return pc.if_else(fits, pc.multiply(pc.if_else(fits, data, 0), factor), held)
