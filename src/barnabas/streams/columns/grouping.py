"""Rows by the bytes of their keys: groups of a batch, and an index over the keys of a table.

Does not know: stores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.spark.writing.rows import Column as Bytes
from barnabas.streams.columns import kernel

NO_EXTRA = np.empty(0, np.int64)


def room_for(count: int) -> Any:
    """Slots of a hash table, at most half of which will be full."""
    return np.full(1 << max(4, int(2 * count + 1).bit_length()), kernel.EMPTY, np.int64)


class Groups:
    """`ids` has the group of each row, -1 where the key is null; `firsts` and `lasts` a row of each group."""

    def __init__(self, keys: pa.Array, extra: Any = None) -> None:
        found = Bytes(keys)
        count = len(keys)
        self.ids, firsts = np.empty(count, np.int64), np.empty(count, np.int64)
        others = NO_EXTRA if extra is None else extra
        self.count = kernel.group(
            found.data, found.at, found.sizes, others, extra is not None, room_for(count), self.ids, firsts
        )
        self.firsts = firsts[: self.count]

    def lasts(self) -> Any:
        found = np.zeros(self.count, np.int64)
        kernel.last_rows(self.ids, found)
        return found


class KeyIndex:
    """Finds the row of a key among distinct keys."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = Bytes(keys)
        self._slots = room_for(len(keys))
        kernel.index_rows(self._keys.data, self._keys.at, self._keys.sizes, self._slots)

    def rows_of(self, keys: pa.Array) -> Any:
        """The row of each key, -1 where there is none."""
        asked, own = Bytes(keys), self._keys
        found = np.empty(len(keys), np.int64)
        kernel.look_up(own.data, own.at, own.sizes, self._slots, asked.data, asked.at, asked.sizes, found)
        return found
