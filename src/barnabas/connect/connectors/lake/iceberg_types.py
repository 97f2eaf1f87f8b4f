"""Arrow columns in the types of an Iceberg table: numbers widened, missing fields null, others left out.

In: types and columns of Arrow. Out: types that Iceberg has, what a table lacks, columns in the table's types;
ConnectError where values do not fit. Runs on executors too. Does not know: catalogs, Spark.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from barnabas.connect.plugins import ConnectError

WIDER = {pa.int32(): (pa.int64(),), pa.float32(): (pa.float64(),)}


def storable(kind: pa.DataType) -> pa.DataType:
    """The type as Iceberg has it: integers of 32 and 64 bits, everything optional."""
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return pa.int32()
    if pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    if pa.types.is_struct(kind):
        parts = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct([pa.field(each.name, storable(each.type)) for each in parts])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", storable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(storable(kind.key_type), storable(kind.item_type))
    return kind


def named(kind: Any, name: str, *, any_case: bool) -> pa.Field | None:
    """The field of a struct or a schema with this name."""
    fields = list(kind) if isinstance(kind, pa.Schema) else [kind.field(i) for i in range(kind.num_fields)]
    for each in fields:
        if each.name == name or (any_case and each.name.lower() == name.lower()):
            return each
    return None


def needed(there: Any, wanted: Any, *, any_case: bool) -> list[pa.Field]:
    """The fields that a table must get to hold these columns: new ones, and numbers that are wider."""
    fields = (
        list(wanted) if isinstance(wanted, pa.Schema) else [wanted.field(i) for i in range(wanted.num_fields)]
    )
    found = []
    for each in fields:
        old = named(there, each.name, any_case=any_case)
        kind = each.type if old is None else needed_type(old.type, each.type, any_case=any_case)
        if kind is not None:
            found.append(pa.field(each.name if old is None else old.name, kind))
    return found


def needed_type(there: Any, wanted: Any, *, any_case: bool) -> Any | None:
    """The part of a type that the table's type must get; None: nothing."""
    if pa.types.is_struct(wanted) and pa.types.is_struct(there):
        fields = needed(there, wanted, any_case=any_case)
        return pa.struct(fields) if fields else None
    if is_list(wanted) and is_list(there):
        item = needed_type(there.value_type, wanted.value_type, any_case=any_case)
        return None if item is None else pa.list_(pa.field("element", item))
    if pa.types.is_map(wanted) and pa.types.is_map(there):
        item = needed_type(there.item_type, wanted.item_type, any_case=any_case)
        return None if item is None else pa.map_(there.key_type, item)
    return wanted if widens(wanted, there) else None


def widens(mine: pa.DataType, there: pa.DataType) -> bool:
    """Whether a column may become wide enough for such values."""
    if pa.types.is_decimal(mine) and pa.types.is_decimal(there):
        return bool(there.scale == mine.scale and there.precision < mine.precision)
    return mine in WIDER.get(there, ())


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def fitted(column: Any, there: pa.DataType, path: str, *, any_case: bool = False) -> Any:
    """An array in the type of the table."""
    mine = column.type
    if mine == there:
        return column
    if pa.types.is_struct(there) and pa.types.is_struct(mine):
        parts, fields = [], [there.field(index) for index in range(there.num_fields)]
        flat = dict(zip([mine.field(i).name for i in range(mine.num_fields)], column.flatten(), strict=True))
        for each in fields:
            own = named(mine, each.name, any_case=any_case)
            if own is None:
                parts.append(pa.nulls(len(column), each.type))
            else:
                parts.append(fitted(flat[own.name], each.type, f"{path}.{each.name}", any_case=any_case))
        return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())
    if is_list(there) and is_list(mine):
        items = fitted(column.values, there.value_type, f"{path}[]", any_case=any_case)
        kind = pa.large_list if pa.types.is_large_list(there) else pa.list_
        made = pa.LargeListArray if pa.types.is_large_list(there) else pa.ListArray
        offsets = column.offsets.cast(pa.int64()) if pa.types.is_large_list(there) else column.offsets
        return made.from_arrays(offsets, items, type=kind(there.value_field), mask=column.is_null())
    if pa.types.is_map(there) and pa.types.is_map(mine):
        keys = fitted(column.keys, there.key_type, f"{path}{{}}", any_case=any_case)
        items = fitted(column.items, there.item_type, f"{path}{{}}", any_case=any_case)
        return pa.MapArray.from_arrays(column.offsets, keys, items, type=there, mask=column.is_null())
    if column.null_count == len(column):
        return pa.nulls(len(column), there)  # records with values of this type were refused
    if loses(mine, there):
        raise ConnectError(
            f"{path} is {there} in the table, and records bring {mine}: change records with the transform"
            " Cast, or write another table"
        )
    try:
        return column.cast(there)
    except pa.ArrowInvalid as error:
        raise ConnectError(f"{path}: values of {mine} do not fit {there} of the table: {error}") from error


def loses(mine: pa.DataType, there: pa.DataType) -> bool:
    """Whether a cast would be more than a widening. One of integers or decimals fails for values that the
    type cannot hold."""
    kinds = pa.types
    if kinds.is_null(mine):
        return False
    for same in (kinds.is_integer, kinds.is_decimal):
        if same(mine) and same(there):
            return False
    if kinds.is_floating(mine) and kinds.is_floating(there):
        return bool(mine.bit_width > there.bit_width)
    for same in (kinds.is_integer, kinds.is_floating, kinds.is_decimal, kinds.is_timestamp, kinds.is_date):
        if same(mine):
            wide = same is kinds.is_integer and (kinds.is_floating(there) or kinds.is_decimal(there))
            return not (same(there) or wide or (same is kinds.is_date and kinds.is_timestamp(there)))
    if kinds.is_string(mine) or kinds.is_large_string(mine):
        return not (kinds.is_string(there) or kinds.is_large_string(there))
    if kinds.is_binary(mine) or kinds.is_large_binary(mine):
        return not (
            kinds.is_binary(there) or kinds.is_large_binary(there) or kinds.is_fixed_size_binary(there)
        )
    return bool(mine != there)


def fitted_batch(batch: Any, there: pa.Schema, path: str, *, any_case: bool) -> pa.Table:
    """Rows with the columns of the table."""
    columns = []
    for each in there:
        own = named(batch.schema, each.name, any_case=any_case)
        if own is None:
            columns.append(pa.nulls(batch.num_rows, each.type))
        else:
            column = batch.column(own.name)
            column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            columns.append(fitted(column, each.type, f"{path}: {each.name}", any_case=any_case))
    return pa.Table.from_arrays(columns, names=[each.name for each in there])
