"""Entries of pages as arrays: two numbers, a group and bytes for each.

In: pages by group, or columns. Out: the same, and pages again. Does not know: what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.spark.reading.columns import binary
from barnabas.spark.writing.rows import Column as Bytes
from barnabas.streams.columns import entry_kernel as kernel
from barnabas.streams.columns.column import NotColumnar


@dataclass(frozen=True, slots=True)
class Entries:
    """`data` holds the bytes of entry i at at[i], sizes[i] long."""

    groups: Any
    firsts: Any
    seconds: Any
    data: Any
    at: Any
    sizes: Any

    def __len__(self) -> int:
        return len(self.groups)

    def take(self, places: Any) -> Entries:
        return Entries(
            self.groups[places],
            self.firsts[places],
            self.seconds[places],
            self.data,
            self.at[places],
            self.sizes[places],
        )

    def values(self) -> pa.Array:
        return binary(self.data, self.at, self.sizes, pa.binary())

    def pages(self, count: int) -> list[bytes]:
        """The page of each group: entries by their first number, then by the second."""
        order = np.lexsort((self.seconds, self.firsts, self.groups))
        out = np.empty(kernel.OVERHEAD * len(self) + int(np.maximum(self.sizes, 0).sum()), np.uint8)
        bounds = np.empty(count + 1, np.int64)
        kernel.write(
            order, self.groups, self.firsts, self.seconds, self.data, self.at, self.sizes, out, bounds
        )
        written, ends = out.tobytes(), bounds.tolist()
        return [written[ends[group] : ends[group + 1]] for group in range(count)]


def of_pages(pages: Sequence[bytes | None], first: int = 0) -> Entries:
    """The entries of pages; the group of an entry is the place of its page, counted from `first`."""
    present = [page or b"" for page in pages]
    bounds = np.zeros(len(pages) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, present), np.int64, len(pages)), out=bounds[1:])
    data = np.frombuffer(b"".join(present), np.uint8)
    most = len(data) // kernel.OVERHEAD
    numbers = [np.empty(most, np.int64) for _ in range(5)]
    count = kernel.parse(data, bounds, *numbers)
    if count < 0:
        raise NotColumnar("a page is cut off")
    groups, firsts, seconds, at, found = (each[:count] for each in numbers)
    return Entries(groups + first, firsts, seconds, data, at, found)


def of_column(groups: Any, firsts: Any, seconds: Any, values: pa.Array) -> Entries:
    found = Bytes(values)
    return Entries(groups, firsts, seconds, found.data, found.at, found.sizes)


def together(one: Entries, two: Entries) -> Entries:
    data = np.concatenate([one.data, two.data])
    return Entries(
        np.concatenate([one.groups, two.groups]),
        np.concatenate([one.firsts, two.firsts]),
        np.concatenate([one.seconds, two.seconds]),
        data,
        np.concatenate([one.at, two.at + len(one.data)]),
        np.concatenate([one.sizes, two.sizes]),
    )
