"""Arrow arrays in the shape that Spark or a Connect schema wants.

In: an array, a type with the same meaning. Out: the array in that type: fields by name, missing ones null,
times of the day as numbers, other units and widths. Pure.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds


def fitted(data: pa.Array, kind: pa.DataType) -> pa.Array:
    """`data` as `kind`. pa.ArrowException if a value does not fit."""
    if data.type == kind:
        return data
    if kinds.is_null(data.type):
        return pa.nulls(len(data), kind)
    if kinds.is_dictionary(data.type):
        return fitted(data.dictionary_decode(), kind)
    if kinds.is_struct(kind) and kinds.is_struct(data.type):
        return fitted_struct(data, kind)
    if kinds.is_list(kind) and (kinds.is_list(data.type) or kinds.is_large_list(data.type)):
        offsets = list_offsets(data)
        items = fitted(data.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=mask_of(data))
    if kinds.is_map(kind) and kinds.is_map(data.type):
        return fitted_map(data, kind)
    return data.cast(kind)


def fitted_struct(data: pa.StructArray, kind: pa.StructType) -> pa.Array:
    there = {data.type.field(index).name: index for index in range(data.type.num_fields)}
    parts = data.flatten()
    arrays = []
    for index in range(kind.num_fields):
        wanted = kind.field(index)
        place = there.get(wanted.name)
        arrays.append(
            pa.nulls(len(data), wanted.type) if place is None else fitted(parts[place], wanted.type)
        )
    fields = [kind.field(index) for index in range(kind.num_fields)]
    if not fields:
        return pa.array([None if each is None else {} for each in data.to_pylist()], kind)
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask_of(data))


def fitted_map(data: pa.MapArray, kind: pa.MapType) -> pa.Array:
    whole = data.drop_null()
    keys, items = fitted(whole.keys, kind.key_type), fitted(whole.items, kind.item_type)
    sizes = [0 if each is None else len(each) for each in data.to_pylist()]
    offsets: list[int | None] = [0]
    for size in sizes:
        offsets.append((offsets[-1] or 0) + size)
    places = pa.array(offsets, pa.int32())
    made = pa.MapArray.from_arrays(places, keys, items, type=kind)
    if not data.null_count:
        return made
    is_there = data.is_valid()
    return pa.array(
        [each if there.as_py() else None for each, there in zip(made.to_pylist(), is_there, strict=True)],
        kind,
    )


def list_offsets(data: pa.Array) -> pa.Array:
    """Offsets of a list from 0 on, as `flatten` leaves its items: those of nulls are empty."""
    sizes = pc.fill_null(pc.list_value_length(data), 0)
    total = pc.cumulative_sum(sizes.cast(pa.int32()))
    return pa.concat_arrays([pa.array([0], pa.int32()), total])


def mask_of(data: pa.Array) -> pa.Array | None:
    return data.is_null() if data.null_count else None
