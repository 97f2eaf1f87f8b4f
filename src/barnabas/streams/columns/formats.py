"""Formats of keys and values over columns: text and numbers without Python, others by their serde.

In: a serde, columns. Out: columns. Bytes that cannot be read raise; the interpreter then finds the record.
Does not know: topics' records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

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

Bad = dict[int, Exception]  # what is wrong with the bytes of a row, by its place


class ColumnForm(Protocol):
    """A format over columns. `python` says which part of it runs as Python for each value, if one does."""

    @property
    def python(self) -> str | None: ...

    def read(self, data: pa.Array) -> tuple[Column, Bad]: ...

    def write(self, column: Column) -> pa.Array: ...


MakeForm = Callable[[Any, str, bool], ColumnForm | None]  # of a serde, a topic, and whether it is of keys
_FORMS: dict[type, MakeForm] = {}


def register_format(kind: type, make: MakeForm) -> None:
    """Give a kind of serde its form over columns."""
    _FORMS[kind] = make


def form_of(serde: Any, topic: str, is_key: bool) -> ColumnForm | None:
    make = _FORMS.get(type(serde))
    return None if make is None else make(serde, topic, is_key)


def is_columnar(serde: Any) -> bool:
    """Whether no Python runs for a value of the format."""
    if isinstance(serde, WindowedSerde):
        return is_columnar(serde.inner)
    form = form_of(serde, "", False)
    if form is not None:
        return form.python is None
    return serde is None or serde.format in ("string", "bytes", *_NUMBERS)


def read(serde: Any, data: pa.Array, topic: str, is_key: bool) -> tuple[Column, Bad]:
    """The values, and what is wrong with the rows that cannot be read, where the format can tell. Else these
    rows raise."""
    found = form_of(serde, topic, is_key)
    return (decode(serde, data, topic, is_key), {}) if found is None else found.read(data)


def decode(serde: Any, data: pa.Array, topic: str, is_key: bool) -> Column:
    own = form_of(serde, topic, is_key)
    if own is not None:
        column, bad = own.read(data)
        for error in bad.values():
            raise error
        return column
    form = "bytes" if serde is None else serde.format
    if form == "bytes":
        return Column(data)
    if form == "string":
        return Column(data.cast(pa.string()))
    if form in _NUMBERS and data.null_count < len(data):
        return Column(numbers_of(data, *_NUMBERS[form]))
    read_one = serde.deserializer(topic, is_key)
    return Column(items=[None if each is None else read_one(each) for each in data.to_pylist()])


def numbers_of(data: pa.Array, form: str, kind: Any) -> pa.Array:
    """Numbers of one width, as Java writes them."""
    width = np.dtype(form).itemsize
    sizes = pc.binary_length(data)
    if not pc.all(pc.equal(sizes, width)).as_py():
        raise NotColumnar(f"a number has not {width} bytes")
    if data.null_count:
        places = np.flatnonzero(data.is_valid().to_numpy(zero_copy_only=False))
        found = np.zeros(len(data), kind)
        found[places] = numbers_of(data.drop_null(), form, kind).to_numpy()
        return pa.array(found, mask=data.is_null().to_numpy(zero_copy_only=False))
    _, offsets, values = data.buffers()
    first = int(np.frombuffer(offsets, np.int32)[data.offset])
    return pa.array(np.frombuffer(values, form, len(data), first).astype(kind))


def encode(serde: Any, column: Column, topic: str, is_key: bool) -> pa.Array:
    own = form_of(serde, topic, is_key)
    if own is not None:
        return own.write(column)
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
