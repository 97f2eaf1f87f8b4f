"""Cast and MaskField: values of another type, values hidden."""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config import (
    REQUIRED,
    ConfigDef,
    ConfigError,
    ConfigType,
    Importance,
    Validator,
    checked,
    entries,
    invalid,
)
from barnabas.connect.convert.simple_headers import literal
from barnabas.connect.data import DECIMAL_NAME, Column, Records, Schema, Type
from barnabas.connect.data.java_text import double_texts, java_text
from barnabas.connect.transforms.contract import FieldTransform, SchemaError, both
from barnabas.connect.transforms.parts_of_columns import (
    REPLACE_NULL,
    put_together,
    require_map,
    taken_apart,
    with_null_setting,
)

BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
FLOATS = (Type.FLOAT32, Type.FLOAT64)
CASTS = (*BITS, *FLOATS, Type.BOOLEAN, Type.STRING)
MIDNIGHT = dt.date(1970, 1, 1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def check_spec(name: str, value: Any) -> None:
    if not value:
        raise ConfigError("Must specify at least one field to cast.")


@both
class Cast(FieldTransform):
    """Fields, or the whole, of another type. Numbers that do not fit wrap as Java's casts do."""

    CONFIG = with_null_setting(
        ConfigDef().define(
            "spec", ConfigType.LIST, REQUIRED, Importance.HIGH, "Pairs field:type, or one type for all.",
            validator=Validator("list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>",
                                check_spec),
        )
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self.whole: Type | None = None
        self.casts: dict[str, Type] = {}
        for one in self.settings.entries("spec"):
            name, colon, kind = one.rpartition(":")
            try:
                target = Type(kind.strip().lower())
            except ValueError:
                target = Type.BYTES
            if target not in CASTS:
                raise invalid("spec", one, f"{kind} is no type to cast to: {', '.join(CASTS)}")
            if colon:
                self.casts[name.strip()] = target
            else:
                self.whole = target
        if self.whole is not None and self.casts:
            raise invalid("spec", self.settings["spec"], "one type for the whole, or pairs, but not both")

    def column(self, column: Column, records: Records) -> Column:
        assert column.schema is not None
        if self.whole is not None:
            return Column(
                cast_schema(column.schema, self.whole), cast(column.data, column.schema, self.whole)
            )
        parts = taken_apart(column, "cast types", defaults=self.settings.flag(REPLACE_NULL))
        fields = []
        for one in column.schema.fields:
            kind = self.casts.get(one.name)
            data = parts[one.name]
            if kind is None:
                fields.append((one.name, one.schema, data))
            else:
                fields.append((one.name, cast_schema(one.schema, kind), cast(data, one.schema, kind)))
        return put_together(column, fields)

    def plain(self, value: Any, row: int, records: Records) -> Any:
        if value is None:
            return None
        if self.whole is not None:
            return cast_value(value, self.whole)
        made = dict(require_map(value, "cast types"))
        for name, kind in self.casts.items():
            made[name] = cast_value(made.get(name), kind)
        return made


def cast_schema(schema: Schema, kind: Type) -> Schema:
    default = None if schema.default is None else cast_value(schema.default, kind)
    if isinstance(default, np.float32):
        default = float(str(default))  # the digits that a float of 32 bits has
    return Schema(type=kind, optional=schema.optional, default=default)


def cast(data: Any, schema: Schema, kind: Type) -> Any:
    """A column of another type. Errors are raised for the whole column."""
    wanted = Schema(type=kind).arrow
    if schema.type in (Type.STRUCT, Type.ARRAY, Type.MAP):
        if data.null_count == len(data):
            return pa.nulls(len(data), wanted)
        kinds = ValueError if data.null_count else SchemaError  # nulls can be cast: they are found alone
        raise kinds(f"Cast transformation does not support casting from {schema.type}")
    if schema.logical is None:
        if schema.type is kind:
            return data
        if schema.type is Type.BOOLEAN or schema.type in BITS or schema.type in FLOATS:
            return cast_numbers(data, schema, kind)
        if schema.type is Type.STRING and kind in BITS:
            return pc.cast(checked_numbers(data), wanted)
        if schema.type is Type.STRING and kind is Type.BOOLEAN:
            return pc.equal(pc.utf8_lower(data), "true")
    elif schema.logical != DECIMAL_NAME and kind in BITS:
        width = schema.type
        return cast_numbers(data.cast(Schema(type=width).arrow), Schema(type=width), kind)
    values = [None if one is None else cast_value(one, kind, schema) for one in data.to_pylist()]
    return pa.array(values, wanted)


def checked_numbers(data: Any) -> Any:
    """Texts that Java parses as whole numbers, without the plus that Arrow does not read."""
    wrong = pc.invert(pc.match_substring_regex(data, r"^[+-]?[0-9]+$"))
    if pc.any(wrong).as_py():
        raise ValueError(f'For input string: "{data.filter(wrong)[0]}"')
    return pc.replace_substring_regex(data, r"^\+", "")


def cast_numbers(data: Any, schema: Schema, kind: Type) -> Any:
    if kind is Type.STRING:
        return double_texts(data) if schema.type in FLOATS else pc.cast(data, pa.string())
    mask = np.asarray(data.is_null())
    numbers = data.cast(pa.int8()) if schema.type is Type.BOOLEAN else data
    found = np.asarray(pc.coalesce(numbers, pa.scalar(0, pa.int8()).cast(numbers.type)))
    wanted = Schema(type=kind).arrow
    if kind in FLOATS:
        with np.errstate(over="ignore"):
            return pa.array(
                found.astype(np.float32 if kind is Type.FLOAT32 else np.float64), wanted, mask=mask
            )
    if schema.type in FLOATS:
        found = java_whole(found, 64 if kind in (Type.INT64, Type.BOOLEAN) else 32)
    if kind is Type.BOOLEAN:
        return pa.array(found != 0, wanted, mask=mask)
    return pa.array(found.astype(f"int{BITS[kind]}"), wanted, mask=mask)


def java_whole(numbers: Any, bits: int) -> Any:
    """Floating point to whole numbers as Java casts: towards zero, held inside of the range, NaN is 0."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    clean = np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=float(high), neginf=float(low))
    over, under = clean >= float(high), clean <= float(low)
    whole = np.where(over | under, 0, clean).astype(np.int64)
    return np.where(over, high, np.where(under, low, whole))


def cast_value(value: Any, kind: Type, schema: Schema | None = None) -> Any:
    """One value of another type, by Java's rules."""
    if value is None:
        return None
    if isinstance(value, dict | list | tuple) or (isinstance(value, bytes) and kind is not Type.STRING):
        raise ValueError(
            f"Cast transformation does not support casting from {type(value).__name__} to {kind}"
        )
    if kind is Type.STRING:
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if isinstance(value, dt.datetime | dt.date | dt.time):
            return literal(value)
        return java_text(value, schema)
    if isinstance(value, dt.datetime):
        value = (value - EPOCH) // dt.timedelta(milliseconds=1)
    elif isinstance(value, dt.date):
        value = (value - MIDNIGHT).days
    elif isinstance(value, dt.time):
        value = ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if isinstance(value, str):
        return cast_text(value, kind)
    if kind is Type.BOOLEAN:
        return value if isinstance(value, bool) else wrapped(value, 64) != 0
    if kind is Type.FLOAT64:
        return float(value)
    if kind is Type.FLOAT32:
        with np.errstate(over="ignore"):
            return np.float32(value) if schema is None else float(np.float32(value))
    return wrapped(value, BITS[kind])


def cast_text(text: str, kind: Type) -> Any:
    if kind is Type.BOOLEAN:
        return text.lower() == "true"
    if kind in FLOATS:
        if not re.fullmatch(r"\s*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)\s*", text):
            raise ValueError(f'For input string: "{text}"')
        number = float(text.strip().rstrip("fFdD") if text.strip()[-1:] in "fFdD" else text)
        return float(np.float32(number)) if kind is Type.FLOAT32 else number
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f'For input string: "{text}"')
    limit = 1 << (BITS[kind] - 1)
    if not -limit <= int(text) < limit:
        raise ValueError(f'Value out of range. Value:"{text}" Radix:10')
    return int(text)


def wrapped(value: Any, bits: int) -> int:
    if isinstance(value, float | np.floating):
        value = int(java_whole(np.array([value]), 64 if bits == 64 else 32)[0])
    number = int(value)  # decimals lose their fraction
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@both
class MaskField(FieldTransform):
    """Fields are replaced by an empty value of their type, or by a given one."""

    CONFIG = with_null_setting(
        ConfigDef()
        .define("fields", ConfigType.LIST, REQUIRED, Importance.HIGH, "Fields to mask.",
                validator=entries(may_be_empty=False))
        .define("replacement", ConfigType.STRING, None, Importance.LOW, "A value for numbers and strings.",
                validator=checked("non-empty string", bool, "String must be non-empty"))
    )  # fmt: skip

    def column(self, column: Column, records: Records) -> Column:
        assert column.schema is not None
        parts = taken_apart(column, "mask fields", defaults=self.settings.flag(REPLACE_NULL))
        names = set(self.settings.entries("fields"))
        fields = []
        for one in column.schema.fields:
            data = parts[one.name]
            if one.name in names and data.null_count < len(data):
                mask = pa.scalar(self.mask(one.schema), one.schema.arrow)
                data = pc.if_else(
                    data.is_valid(), pa.repeat(mask, len(data)), pa.nulls(len(data), one.schema.arrow)
                )
            fields.append((one.name, one.schema, data))
        return put_together(column, fields)

    def mask(self, schema: Schema) -> Any:
        given = self.settings["replacement"]
        number = schema.type in BITS or schema.type in FLOATS
        if given is not None:
            if schema.logical == DECIMAL_NAME:
                return Decimal(given)
            if schema.logical is None and (number or schema.type is Type.STRING):
                try:
                    return given if schema.type is Type.STRING else cast_text(given, schema.type)
                except ValueError as error:
                    raise SchemaError(f"Unable to convert {given} to {schema.type}: {error}") from None
            raise SchemaError(
                f"Cannot mask value of type {schema.name or schema.type} with custom replacement."
            )
        if schema.logical is not None:
            return EMPTY[schema.logical.rpartition(".")[2]]
        if schema.type in (Type.STRUCT, Type.BYTES):
            raise ValueError(f"Cannot mask value of type: {schema.type}")
        return EMPTY.get(schema.type, 0)

    def plain(self, value: Any, row: int, records: Records) -> Any:
        made = dict(require_map(value, "mask fields"))
        for name in self.settings.entries("fields"):
            found = made.get(name)
            made[name] = None if found is None else self.plain_mask(found)
        return made

    def plain_mask(self, value: Any) -> Any:
        given = self.settings["replacement"]
        if given is not None:
            if isinstance(value, str):
                return given
            if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
                raise ValueError(f"Cannot mask value of type {type(value).__name__} with custom replacement.")
            if isinstance(value, Decimal):
                return Decimal(given)
            return cast_text(given, Type.INT64 if isinstance(value, int) else Type.FLOAT64)
        for kind, mask in PLAIN_MASKS:
            if isinstance(value, kind):
                return mask
        raise ValueError(f"Cannot mask value of type: {type(value).__name__}")


EMPTY: dict[str, Any] = {
    Type.BOOLEAN: False,
    Type.STRING: "",
    Type.ARRAY: [],
    Type.MAP: [],
    "Decimal": Decimal(0),
    "Date": MIDNIGHT,
    "Time": dt.time(),
    "Timestamp": EPOCH,
}
PLAIN_MASKS: tuple[tuple[Any, Any], ...] = (
    (bool, False),
    (int, 0),
    (float, 0.0),
    (str, ""),
    (Decimal, Decimal(0)),
    (list, []),
    (dict, {}),
    (dt.datetime, EPOCH),
    (dt.date, MIDNIGHT),
    (dt.time, dt.time()),
)
