"""The inner loops of pages of windows and joins: entries of two numbers and some bytes.

In: pages one behind the other. Out: arrays with an item for each entry, and pages of entries. Compiled like
the loops of reading. Does not know: stores, Arrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from barnabas.spark.basics.compiling import compiled, copy_bytes

OVERHEAD = 20  # two numbers of eight bytes, a size of four


@compiled
def read_number(data: Any, at: int, width: int) -> Any:
    """A signed number, the largest byte first."""
    found = np.int64(data[at])
    if found >= 128:
        found -= 256
    for byte in range(1, width):
        found = (found << 8) | np.int64(data[at + byte])
    return found


@compiled
def put_number(out: Any, at: int, number: int, width: int) -> None:
    for byte in range(width):
        out[at + byte] = np.uint8((number >> (8 * (width - 1 - byte))) & 0xFF)


@compiled
def parse(data: Any, bounds: Any, groups: Any, firsts: Any, seconds: Any, at: Any, sizes: Any) -> int:
    """The entries of pages; page p lies at bounds[p] to bounds[p + 1]. Out: how many; -1: cut off."""
    count = 0
    for page in range(len(bounds) - 1):
        position, end = bounds[page], bounds[page + 1]
        while position < end:
            if position + OVERHEAD > end:
                return -1
            size = read_number(data, position + 16, 4)
            groups[count] = page
            firsts[count] = read_number(data, position, 8)
            seconds[count] = read_number(data, position + 8, 8)
            at[count] = position + OVERHEAD
            sizes[count] = size
            count += 1
            position += OVERHEAD + max(size, 0)
            if position > end:
                return -1
    return count


@compiled
def write(
    order: Any, groups: Any, firsts: Any, seconds: Any, data: Any, at: Any, sizes: Any, out: Any, bounds: Any
) -> None:
    """Entries in `order`, which is by group, as pages."""
    position = 0
    page = 0
    bounds[0] = 0
    for index in order:
        while page < groups[index]:
            page += 1
            bounds[page] = position
        put_number(out, position, firsts[index], 8)
        put_number(out, position + 8, seconds[index], 8)
        put_number(out, position + 16, sizes[index], 4)
        position += OVERHEAD
        if sizes[index] > 0:
            copy_bytes(out, position, data, at[index], sizes[index])
            position += sizes[index]
    while page < len(bounds) - 1:
        page += 1
        bounds[page] = position


@compiled
def probe(
    groups: Any,
    lows: Any,
    highs: Any,
    orders: Any,
    starts: Any,
    times: Any,
    entry_orders: Any,
    fills: bool,
    rows: Any,
    entries: Any,
) -> int:
    """Pairs of a row with the entries of its group whose time lies in [low, high] and that came before it.

    Entries of group g lie at starts[g] to starts[g + 1], by time. Out: how many pairs there are."""
    count = 0
    for row in range(len(groups)):
        group = groups[row]
        first, last = starts[group], starts[group + 1]
        while first < last:
            middle = (first + last) // 2
            if times[middle] < lows[row]:
                first = middle + 1
            else:
                last = middle
        end = starts[group + 1]
        while first < end and times[first] <= highs[row]:
            if entry_orders[first] < orders[row]:
                if fills:
                    rows[count] = row
                    entries[count] = first
                count += 1
            first += 1
    return count
