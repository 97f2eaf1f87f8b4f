"""Formats of keys and values over columns: text and numbers without Python, others by their serde.

In: a serde, columns. Out: columns. Bytes that cannot be read raise; the interpreter then finds the record.
Does not know: topics' records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.plans.windows import TimeWindows
from barnabas.streams.columns.column import Column, NotColumnar, Rows
from barnabas.streams.serdes.formats import WindowedSerde

_NUMBERS: dict[str, tuple[str, Any]] = {
    "int64": (">i8", np.int64),
    "int32": (">i4", np.int64),
    "int16": (">i2", np.int64),
    "double": (">f8", np.float64),
    "float": (">f4", np.float64),
}
_WRITTEN = {"int64": pa.int64(), "double": pa.float64()}
TEXTS = ("string",)


def is_columnar(serde: Any) -> bool:
    """Whether no Python runs for a value of the format."""
    if isinstance(serde, WindowedSerde):
        return is_columnar(serde.inner)
    return serde is None or serde.format in ("string", "bytes", *_NUMBERS)


def decode(serde: Any, data: pa.Array, topic: str, is_key: bool) -> Column:
    form = "bytes" if serde is None else serde.format
    if form == "bytes":
        return Column(data)
    if form == "string":
        return Column(data.cast(pa.string()))
    if form in _NUMBERS and data.null_count < len(data):
        return Column(_numbers(data, *_NUMBERS[form]))
    read = serde.deserializer(topic, is_key)
    return Column(items=[None if each is None else read(each) for each in data.to_pylist()])


def _numbers(data: pa.Array, form: str, kind: Any) -> pa.Array:
    width = np.dtype(form).itemsize
    sizes = pc.binary_length(data)
    if not pc.all(pc.equal(sizes, width)).as_py():
        raise NotColumnar(f"a number has not {width} bytes")
    if data.null_count:
        places = np.flatnonzero(data.is_valid().to_numpy(zero_copy_only=False))
        found = np.zeros(len(data), kind)
        found[places] = _numbers(data.drop_null(), form, kind).to_numpy()
        return pa.array(found, mask=data.is_null().to_numpy(zero_copy_only=False))
    _, offsets, values = data.buffers()
    first = int(np.frombuffer(offsets, np.int32)[data.offset])
    return pa.array(np.frombuffer(values, form, len(data), first).astype(kind))


def encode(serde: Any, column: Column, topic: str, is_key: bool) -> pa.Array:
    form = "bytes" if serde is None else serde.format
    if column.is_array or form in _WRITTEN:
        kind = column.plain_type
        if kind is not None and pa.types.is_null(kind):
            return pa.nulls(len(column), pa.binary())
        if form == "string" and kind is not None and pa.types.is_string(kind):
            return column.array.cast(pa.binary())
        if form == "bytes" and kind is not None and pa.types.is_binary(kind):
            return column.array
        if kind is not None and kind == _WRITTEN.get(form):
            return big_endian(column.array)
    items = column.items
    write = (lambda value: value) if serde is None else serde.serializer(topic, is_key)
    return pa.array([None if each is None else write(each) for each in items], pa.binary())


def big_endian(numbers: pa.Array) -> pa.Array:
    """Numbers of eight bytes as Java writes them."""
    plain = numbers.fill_null(0).to_numpy(zero_copy_only=False) if numbers.null_count else numbers.to_numpy()
    data = plain.astype(plain.dtype.newbyteorder(">"))
    offsets = np.arange(0, 8 * (len(plain) + 1), 8, dtype=np.int32)
    valid = None
    if numbers.null_count:
        valid = pa.array(numbers.is_valid()).buffers()[1]
    return pa.Array.from_buffers(
        pa.binary(), len(plain), [valid, pa.py_buffer(offsets), pa.py_buffer(data)], numbers.null_count
    )


def encode_keys(serde: Any, rows: Rows, topic: str) -> pa.Array:
    """Keys of a sink; a window's key is followed by its start."""
    if rows.starts is None:
        return encode(serde, rows.keys, topic, True)
    if isinstance(serde, WindowedSerde) and isinstance(serde.windows, TimeWindows):
        plain = encode(serde.inner, rows.keys, topic, True)
        return pc.binary_join_element_wise(
            plain, big_endian(pa.array(rows.starts)), pa.scalar(b"", pa.binary())
        )
    return encode(serde, Column(items=rows.key_items), topic, True)
