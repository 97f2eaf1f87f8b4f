"""`schema.compatibility`: records of another version are fitted to the schema of the open file.

In: a column, the schema of the file. Out: whether the file must be closed, or the column in the file's
schema. NONE closes at every change; BACKWARD and FULL close for newer versions only, FORWARD for older ones
only. Schemas without versions close it, too. Does not know: files.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from barnabas.connect.data import Column, DataError, Schema, Type
from barnabas.connect.plugins import ConnectError

LEVELS = ("NONE", "BACKWARD", "FORWARD", "FULL")


def closes(level: str, there: Schema | None, new: Schema | None) -> bool:
    """Whether a file with the schema `there` is closed when a record with `new` comes."""
    if there == new:
        return False
    if level == "NONE" or there is None or new is None:
        return True
    if there.version is None or new.version is None or there.name != new.name:
        return True
    if level == "FORWARD":
        return new.version < there.version
    return new.version > there.version


def projected(column: Column, there: Schema) -> Column:
    """The column in the schema of the file."""
    if column.schema == there or column.schema is None:
        return column
    try:
        return Column(there, fitted(column.data, column.schema, there, "value"))
    except (pa.ArrowException, DataError) as error:
        raise ConnectError(
            f"records of version {column.schema.version} do not fit the open file, which has version"
            f" {there.version}: {error}. schema.compatibility=NONE closes files instead"
        ) from error


def fitted(data: Any, mine: Schema, there: Schema, path: str) -> Any:
    if mine == there:
        return data
    if mine.type is Type.STRUCT and there.type is Type.STRUCT:
        parts = dict(zip(mine.field_names, data.flatten(), strict=True))
        arrays = []
        for each in there.fields:
            name = f"{path}.{each.name}"
            own = mine.field(each.name)
            if own is not None:
                arrays.append(fitted(parts[each.name], own, each.schema, name))
            elif each.schema.optional or each.schema.default is not None:
                default = pa.scalar(each.schema.default, each.schema.arrow)
                arrays.append(pa.repeat(default, len(data)))
            else:
                raise DataError(f"{name} is required, has no default, and is missing")
        return pa.StructArray.from_arrays(arrays, fields=list(there.arrow), mask=data.is_null())
    if mine.type is Type.ARRAY and there.type is Type.ARRAY:
        assert mine.value is not None and there.value is not None
        items = fitted(data.values, mine.value, there.value, f"{path}[]")
        return pa.ListArray.from_arrays(data.offsets, items, type=there.arrow, mask=data.is_null())
    if mine.logical != there.logical or (mine.type.is_primitive != there.type.is_primitive):
        raise DataError(f"{path} is {there.type} in the file and {mine.type} in the record")
    return data.cast(there.arrow)
