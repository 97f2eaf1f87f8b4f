"""Structs taken apart and put together again, column by column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config import ConfigDef, ConfigType, Importance
from barnabas.connect.data import Column, Field, Schema, Type
from barnabas.connect.transforms.contract import SchemaError

REPLACE_NULL = "replace.null.with.default"


def with_null_setting(definition: ConfigDef) -> ConfigDef:
    """Add `replace.null.with.default`."""
    return definition.define(
        REPLACE_NULL,
        ConfigType.BOOLEAN,
        True,
        Importance.MEDIUM,
        "A field that is null and has a default counts as the default.",
    )


def taken_apart(column: Column, purpose: str, *, defaults: bool = True) -> dict[str, Any]:
    """The columns of a struct's fields by name; null where the struct is null."""
    schema = column.schema
    assert schema is not None
    if schema.type is not Type.STRUCT:
        raise SchemaError(f"Only Struct objects supported for [{purpose}], found: {schema.type}")
    parts = column.data.flatten()
    return {
        one.name: filled(part, one.schema, column) if defaults else part
        for one, part in zip(schema.fields, parts, strict=True)
    }


def filled(part: Any, schema: Schema, column: Column) -> Any:
    if schema.default is None or not part.null_count:
        return part
    made = pc.coalesce(part, pa.scalar(schema.default, schema.arrow))
    return (
        pc.if_else(column.data.is_valid(), made, pa.scalar(None, schema.arrow))
        if column.data.null_count
        else made
    )


def put_together(
    column: Column, fields: list[tuple[str, Schema, Any]], schema: Schema | None = None
) -> Column:
    """A struct column of these fields; null where `column` was. Name and version stay those of its schema."""
    base = schema if schema is not None else column.schema
    assert base is not None
    made = base.with_fields(tuple(Field(name, kind) for name, kind, _ in fields))
    mask = column.data.is_null() if column.data.null_count else None
    if not fields:
        return Column(
            made, pa.array([None if one else {} for one in column.is_null().to_pylist()], made.arrow)
        )
    arrays = [part for _, _, part in fields]
    return Column(made, pa.StructArray.from_arrays(arrays, fields=list(made.arrow), mask=mask))


def require_map(value: Any, purpose: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        found = "null" if value is None else type(value).__name__
        raise ValueError(f"Only Map objects supported in absence of schema for [{purpose}], found: {found}")
    return value
