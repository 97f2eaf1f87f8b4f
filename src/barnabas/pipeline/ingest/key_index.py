"""Which keys were seen: an index in memory, so that finding duplicates costs the same however much there is.

In: keys as pairs of 64-bit hashes. Out: which rows of a batch are new. Two independent hashes of 64 bits
stand for a key: that two keys share them is less likely than a disk that lies. Sorted runs of doubling size
are searched, so that adding n keys one batch after the other costs n log n. Pure. Does not know: what keys
are made of, tables.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
# 16 bytes a key: a bound of about a gigabyte. What has more keys is joined by Spark instead.
KEYS_MAX = 60_000_000


class KeyIndex:
    def __init__(self) -> None:
        self._runs: list[tuple[Longs, Longs]] = []  # sorted by the first hash, largest run first

    def __len__(self) -> int:
        return sum(len(first) for first, _ in self._runs)

    def has(self, first: Longs, second: Longs) -> Flags:
        found = np.zeros(len(first), np.bool_)
        for firsts, seconds in self._runs:
            at = np.searchsorted(firsts, first)
            # Equal first hashes of different keys stand beside each other: look until they end.
            open_ = ~found & (at < len(firsts))
            while open_.any():
                index = at[open_]
                same = firsts[index] == first[open_]
                hit = same & (seconds[index] == second[open_])
                rows = np.flatnonzero(open_)
                found[rows[hit]] = True
                at[rows] += 1
                open_[rows[~same | hit]] = False
                open_ &= at < len(firsts)
        return found

    def add(self, first: Longs, second: Longs) -> None:
        if not len(first):
            return
        run = sorted_run(first, second)
        while self._runs and len(self._runs[-1][0]) <= 2 * len(run[0]):
            other = self._runs.pop()
            run = sorted_run(np.concatenate([other[0], run[0]]), np.concatenate([other[1], run[1]]))
        self._runs.append(run)

    def remove_all(self) -> None:
        self._runs.clear()


def sorted_run(first: Longs, second: Longs) -> tuple[Longs, Longs]:
    order = np.argsort(first, kind="stable")
    return first[order], second[order]


def first_of_each(first: Longs, second: Longs, rows: Flags, *, last: bool = False) -> Flags:
    """Of the rows that count, the first of every key (or the last), in the order that they stand in."""
    where = np.flatnonzero(rows)
    if last:
        where = where[::-1]
    firsts, seconds = first[where], second[where]
    order = np.lexsort((seconds, firsts))  # stable: equal keys stay in the order of their rows
    firsts, seconds = firsts[order], seconds[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (firsts[1:] != firsts[:-1]) | (seconds[1:] != seconds[:-1])
    found = np.zeros(len(first), np.bool_)
    found[where[order[begins]]] = True
    return found
