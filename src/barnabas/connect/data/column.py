"""One column of keys or values: an Arrow array with its schema, or Python objects without one.

A null in a column with a required schema stands for a record that has neither value nor schema (a tombstone),
so tombstones stay in their place between other records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.data.errors import DataError
from barnabas.connect.data.schema import Schema, Type


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one schema. `data` is an Arrow array where there is a schema, a list of objects where not."""

    schema: Schema | None
    data: Any  # pa.Array | list[object]

    @staticmethod
    def of(values: Iterable[object], schema: Schema | None = None) -> Column:
        """Make a column of Python values, checked against the schema."""
        values = list(values)
        if schema is None:
            return Column(None, values)
        try:
            data = pa.array(values, schema.arrow)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"values do not fit the schema ({schema.type}): {error}") from error
        check_required(data, schema, is_top=True)
        return Column(schema, data)

    @staticmethod
    def nulls(count: int) -> Column:
        """A column of records without key or value."""
        return Column(None, [None] * count)

    def __len__(self) -> int:
        return len(self.data)

    def pylist(self) -> list[Any]:
        """Python values: structs and maps are dicts, decimals `Decimal`, times those of `datetime`."""
        if self.schema is None:
            return list(self.data)
        return python_values(self.data, self.schema)

    def take(self, indices: Sequence[int] | pa.Array) -> Column:
        """The values at these indices, in this order."""
        if self.schema is None:
            if isinstance(indices, pa.Array):
                indices = indices.to_pylist()
            return Column(None, [self.data[index] for index in indices])
        return Column(self.schema, self.data.take(as_indices(indices)))

    def slice(self, start: int, length: int) -> Column:
        """A range of the column; Arrow's memory is shared."""
        if self.schema is None:
            return Column(None, self.data[start : start + length])
        return Column(self.schema, self.data.slice(start, length))

    def is_null(self) -> pa.Array:
        """A mask of the missing values."""
        if self.schema is None:
            return pa.array([value is None for value in self.data], pa.bool_())
        return self.data.is_null()


def as_indices(indices: Sequence[int] | pa.Array) -> pa.Array:
    return indices if isinstance(indices, pa.Array) else pa.array(indices, pa.int64())


def python_values(data: pa.Array, schema: Schema) -> list[Any]:
    """Values of an Arrow array; Arrow's lists of pairs become dicts."""
    if not has_map(schema):
        return data.to_pylist()  # type: ignore[no-any-return]
    return [python_value(value, schema) for value in data.to_pylist()]


def python_value(value: Any, schema: Schema) -> Any:
    if value is None or not has_map(schema):
        return value
    if schema.type is Type.STRUCT:
        return {one.name: python_value(value[one.name], one.schema) for one in schema.fields}
    assert schema.value is not None
    if schema.type is Type.ARRAY:
        return [python_value(item, schema.value) for item in value]
    assert schema.key is not None
    return {hashable(python_value(k, schema.key)): python_value(v, schema.value) for k, v in value}


def hashable(value: Any) -> Any:
    """A key of a map as Python can hold it in a dict."""
    if isinstance(value, list):
        return tuple(hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, hashable(item)) for name, item in value.items())
    return value


def has_map(schema: Schema) -> bool:
    """Whether values of this schema hold maps."""
    if schema.type is Type.MAP:
        return True
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return has_map(schema.value)
    return any(has_map(one.schema) for one in schema.fields)


def check_required(data: pa.Array, schema: Schema, path: str = "", *, is_top: bool = False) -> None:
    """Raise an error that names the first required field which is null."""
    if data.null_count and not (is_top or schema.optional or schema.default is not None):
        index = pc.index(data.is_null(), True).as_py()
        raise DataError(f"the required field {path or 'value'!r} is null (value {index} of the column)")
    if data.null_count == len(data):
        return
    if schema.type is Type.STRUCT:
        kept = data.drop_null() if data.null_count else data
        for one, part in zip(schema.fields, kept.flatten(), strict=True):
            check_required(part, one.schema, f"{path}.{one.name}" if path else one.name)
    elif schema.type is Type.ARRAY:
        assert schema.value is not None
        check_required(data.flatten(), schema.value, f"{path}[]")
    elif schema.type is Type.MAP:
        assert schema.value is not None
        check_required(data.drop_null().items, schema.value, f"{path}{{}}")
