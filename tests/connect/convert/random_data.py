"""Random schemas of Connect with values that fit them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    array,
    decimal,
    mapping,
)
from barnabas.connect.data.schema import Field, Type

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def after_epoch(milliseconds: int) -> dt.datetime:
    return EPOCH + dt.timedelta(milliseconds=milliseconds)


SCALARS: list[tuple[Schema, st.SearchStrategy[Any]]] = [
    (INT8, st.integers(-128, 127)),
    (INT16, st.integers(-32768, 32767)),
    (INT32, st.integers(-(2**31), 2**31 - 1)),
    (INT64, st.integers(-(2**63), 2**63 - 1)),
    (FLOAT32, st.floats(width=32, allow_nan=False, allow_infinity=False)),
    (FLOAT64, st.floats(allow_nan=False, allow_infinity=False)),
    (BOOLEAN, st.booleans()),
    (STRING, TEXTS),
    (BYTES, st.binary(max_size=8)),
    (DATE, st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    (TIME, st.integers(0, 86_399_999).map(lambda ms: after_epoch(ms).time())),
    (TIMESTAMP, st.integers(-(10**12), 10**13).map(after_epoch)),
    (decimal(2), st.integers(-(10**12), 10**12).map(lambda number: Decimal(number).scaleb(-2))),
    (decimal(0, precision=20), st.integers(-(10**9), 10**9).map(Decimal)),
]  # fmt: skip


@st.composite
def schemas(
    draw: st.DrawFn, depth: int = 2, *, optionals: bool = True, counter: list[int] | None = None
) -> Schema:
    """A schema without its values; structs have names of their own."""
    count = counter if counter is not None else [0]
    kind = draw(st.sampled_from(["scalar", "scalar", "struct", "array", "map"] if depth else ["scalar"]))
    found: Schema
    if kind == "scalar":
        found = draw(st.sampled_from([schema for schema, _ in SCALARS]))
    elif kind == "array":
        found = array(draw(schemas(depth - 1, optionals=False, counter=count)))
    elif kind == "map":
        found = mapping(STRING, draw(schemas(depth - 1, optionals=False, counter=count)))
    else:
        count[0] += 1
        name = f"test.Struct{count[0]}"
        parts = draw(st.lists(schemas(depth - 1, optionals=optionals, counter=count), min_size=1, max_size=4))
        fields = tuple(Field(f"f{index}", part) for index, part in enumerate(parts))
        found = Schema(type=Type.STRUCT, name=name, fields=fields)
    return replace(found, optional=True) if optionals and draw(st.booleans()) else found


def values(schema: Schema, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    """Values that fit a schema."""
    if schema.type is Type.STRUCT:
        parts = {one.name: values(one.schema) for one in schema.fields}
        found: st.SearchStrategy[Any] = st.fixed_dictionaries(parts)
    elif schema.type is Type.ARRAY:
        assert schema.value is not None
        found = st.lists(values(schema.value), max_size=3)
    elif schema.type is Type.MAP:
        assert schema.value is not None
        found = st.dictionaries(TEXTS, values(schema.value), max_size=3)
    else:
        found = next(made for known, made in SCALARS if replace(known, optional=schema.optional) == schema)
    return st.none() | found if schema.optional and nulls else found


@st.composite
def structs_with_values(draw: st.DrawFn, *, optionals: bool = True) -> tuple[Schema, list[Any]]:
    """A struct, as records have it, and some of its values."""
    parts = draw(st.lists(schemas(optionals=optionals, counter=[0]), min_size=1, max_size=4))
    named = unique(Schema(type=Type.STRUCT, name="test.Top", fields=tuple(
        Field(f"top{index}", part) for index, part in enumerate(parts))), [0])  # fmt: skip
    return named, draw(st.lists(values(named, nulls=False), min_size=1, max_size=4))


def unique(schema: Schema, counter: list[int]) -> Schema:
    """The schema with another name for each struct in it."""
    if schema.type is Type.STRUCT:
        counter[0] += 1
        name = f"test.Named{counter[0]}"
        fields = tuple(Field(one.name, unique(one.schema, counter)) for one in schema.fields)
        return replace(schema, name=name, fields=fields)
    if schema.value is not None:
        return replace(schema, value=unique(schema.value, counter))
    return schema
