"""Connect's schema model as frozen values.

A schema has a type, may be optional, and may carry a name, a version, a text, parameters and a default.
Structs have fields, arrays have items (`value`), maps have keys (`key`) and values (`value`). Logical types
are schemas with one of Connect's own names: `org.apache.kafka.connect.data.Decimal`, `Date`, `Time`,
`Timestamp`.

This module knows nothing of Arrow and Spark: `arrow_types` and `spark_types` register what `Schema.arrow` and
`Schema.spark` call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Context
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.connect.data.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

DECIMAL_NAME = "org.apache.kafka.connect.data.Decimal"
DECIMAL_CONTEXT = Context(prec=80)  # more digits than any column of decimals has; Python's own rounds at 28
DATE_NAME = "org.apache.kafka.connect.data.Date"
TIME_NAME = "org.apache.kafka.connect.data.Time"
TIMESTAMP_NAME = "org.apache.kafka.connect.data.Timestamp"
SCALE = "scale"  # the parameter of decimals
COUNTERPARTS: dict[str, Callable[..., Any]] = {}  # filled by `arrow_types` and `spark_types`


class Type(StrEnum):
    """The type of a value. The texts are Java's names in lower case, as in error messages of Connect."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    @property
    def is_primitive(self) -> bool:
        return self not in (Type.ARRAY, Type.MAP, Type.STRUCT)


class Field(NamedTuple):
    """A named part of a struct."""

    name: str
    schema: Schema


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The shape of a column's values. Equal schemas are equal in all attributes, as in Java."""

    type: Type
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    default: object = field(default=None, hash=False)
    fields: tuple[Field, ...] = ()
    key: Schema | None = None
    value: Schema | None = None

    def __post_init__(self) -> None:
        if self.type is Type.ARRAY and self.value is None:
            raise DataError("an array schema needs `value`, the schema of its items")
        if self.type is Type.MAP and (self.key is None or self.value is None):
            raise DataError("a map schema needs `key` and `value`")
        names = [one.name for one in self.fields]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"the struct {self.name or ''} has two fields named {twice!r}".replace("  ", " "))

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.fields)

    @cached_property
    def _by_name(self) -> dict[str, Schema]:
        return {one.name: one.schema for one in self.fields}

    def field(self, name: str) -> Schema | None:
        """The schema of a field, None if there is none of this name."""
        return self._by_name.get(name)

    def with_fields(self, fields: Iterator[Field] | tuple[Field, ...]) -> Schema:
        return replace(self, fields=tuple(fields))

    def as_optional(self) -> Schema:
        return self if self.optional else replace(self, optional=True)

    def as_required(self) -> Schema:
        return replace(self, optional=False) if self.optional else self

    @property
    def logical(self) -> str | None:
        """The name if it is one of Connect's four logical types, and the type fits it."""
        return self.name if self.name in LOGICAL and LOGICAL[self.name] is self.type else None

    @property
    def scale(self) -> int:
        """The digits after the point of a decimal."""
        text = self.parameters.get(SCALE)
        if text is None:
            raise DataError("Invalid Decimal schema: scale parameter not found.")
        try:
            return int(text)
        except ValueError:
            raise DataError(
                f"Invalid scale parameter found in Decimal schema: {text!r} is no whole number"
            ) from None

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column with this schema."""
        return COUNTERPARTS["arrow"](self)

    @staticmethod
    def of_arrow(arrow: pa.DataType | pa.Field, name: str | None = None) -> Schema:
        """The schema of an Arrow type or field; a type is taken as required, a struct gets `name`."""
        schema: Schema = COUNTERPARTS["of_arrow"](arrow, name)
        return schema

    @property
    def spark(self) -> Any:
        """The Spark type of a column with this schema."""
        return COUNTERPARTS["spark"](self)

    @staticmethod
    def of_spark(spark: Any, name: str | None = None) -> Schema:
        """The schema of a Spark type; a struct gets `name`."""
        schema: Schema = COUNTERPARTS["of_spark"](spark, name)
        return schema


LOGICAL = {
    DECIMAL_NAME: Type.BYTES,
    DATE_NAME: Type.INT32,
    TIME_NAME: Type.INT32,
    TIMESTAMP_NAME: Type.INT64,
}

INT8, OPTIONAL_INT8 = Schema(type=Type.INT8), Schema(type=Type.INT8, optional=True)
INT16, OPTIONAL_INT16 = Schema(type=Type.INT16), Schema(type=Type.INT16, optional=True)
INT32, OPTIONAL_INT32 = Schema(type=Type.INT32), Schema(type=Type.INT32, optional=True)
INT64, OPTIONAL_INT64 = Schema(type=Type.INT64), Schema(type=Type.INT64, optional=True)
FLOAT32, OPTIONAL_FLOAT32 = Schema(type=Type.FLOAT32), Schema(type=Type.FLOAT32, optional=True)
FLOAT64, OPTIONAL_FLOAT64 = Schema(type=Type.FLOAT64), Schema(type=Type.FLOAT64, optional=True)
BOOLEAN, OPTIONAL_BOOLEAN = Schema(type=Type.BOOLEAN), Schema(type=Type.BOOLEAN, optional=True)
STRING, OPTIONAL_STRING = Schema(type=Type.STRING), Schema(type=Type.STRING, optional=True)
BYTES, OPTIONAL_BYTES = Schema(type=Type.BYTES), Schema(type=Type.BYTES, optional=True)
DATE = Schema(type=Type.INT32, name=DATE_NAME, version=1)
TIME = Schema(type=Type.INT32, name=TIME_NAME, version=1)
TIMESTAMP = Schema(type=Type.INT64, name=TIMESTAMP_NAME, version=1)
OPTIONAL_DATE, OPTIONAL_TIME, OPTIONAL_TIMESTAMP = (
    DATE.as_optional(),
    TIME.as_optional(),
    TIMESTAMP.as_optional(),
)


def decimal(scale: int, *, precision: int | None = None, optional: bool = False) -> Schema:
    """A decimal with `scale` digits after the point; `precision` is told to Avro and databases if known."""
    parameters = {SCALE: str(scale)}
    if precision is not None:
        parameters["connect.decimal.precision"] = str(precision)
    return Schema(type=Type.BYTES, name=DECIMAL_NAME, version=1, parameters=parameters, optional=optional)


def array(value: Schema, *, optional: bool = False) -> Schema:
    """A list of items with the schema `value`."""
    return Schema(type=Type.ARRAY, value=value, optional=optional)


def mapping(key: Schema, value: Schema, *, optional: bool = False) -> Schema:
    """A map from keys to values."""
    return Schema(type=Type.MAP, key=key, value=value, optional=optional)


def struct(
    fields: Mapping[str, Schema] | None = None,
    /,
    *,
    name: str | None = None,
    version: int | None = None,
    optional: bool = False,
    doc: str | None = None,
    **more: Schema,
) -> Schema:
    """A struct: `struct(name="Order", id=INT64, note=OPTIONAL_STRING)`.

    Fields whose names are no Python names, or are `name`, `version`, `optional` or `doc`, come in a mapping.
    """
    parts = {**(fields or {}), **more}
    return Schema(
        type=Type.STRUCT,
        name=name,
        version=version,
        optional=optional,
        doc=doc,
        fields=tuple(Field(*part) for part in parts.items()),
    )
