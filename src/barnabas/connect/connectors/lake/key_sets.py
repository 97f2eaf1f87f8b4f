"""The rows that have one of some keys, over Arrow columns and in their order.

In: keys of a batch, rows. Out: a mask. Keys of several columns are compared as numbers: the place of each
value among those of the keys, joined column by column. Pure.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class KeySet:
    def __init__(self, keys: pa.Table) -> None:
        self.schema = keys.schema
        self._values: list[pa.Array] = []  # of each column
        self._pairs: list[
            pa.Array
        ] = []  # codes of the columns so far, before those of the next one are added
        codes: Any = None
        for column in keys.columns:
            values = column.unique()
            self._values.append(values)
            places = pc.index_in(column.combine_chunks(), value_set=values).cast(pa.int64())
            if codes is not None:
                known = pc.unique(codes)
                self._pairs.append(known)
                codes = joined(codes, known, places, len(values))
            else:
                codes = places
        self._codes = pc.unique(codes)

    def __contains__(self, rows: Any) -> bool:
        return bool(pc.any(self.mask(rows)).as_py())

    def mask(self, rows: Any) -> Any:
        """Whether the key of each row is in the set; a row with a null in its key is not."""
        codes: Any = None
        pairs = iter(self._pairs)
        for field, values in zip(self.schema, self._values, strict=True):
            column = rows.column(field.name)
            column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            places = pc.index_in(column.cast(field.type), value_set=values).cast(pa.int64())
            codes = places if codes is None else joined(codes, next(pairs), places, len(values))
        return pc.fill_null(pc.and_(codes.is_valid(), pc.is_in(codes, value_set=self._codes)), False)


def joined(codes: Any, known: Any, places: Any, size: int) -> Any:
    """Codes of one column more: there are at most as many codes as keys, so that none overflows."""
    dense = pc.index_in(codes, value_set=known).cast(pa.int64())
    return pc.add(pc.multiply(dense, size), places)
