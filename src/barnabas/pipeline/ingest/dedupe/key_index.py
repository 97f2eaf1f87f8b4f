"""An index of keys in memory: finding duplicates costs the same however many keys a table has.

In: keys as pairs of 64-bit hashes, each with the time at which its row was ingested. Out: which rows of a
batch have new keys. Two independent 64-bit hashes identify a key; a collision of both is less likely than an
undetected disk error. The index searches sorted runs of doubling size, so that adding n keys batch by batch
costs n log n. Pure. Does not know: the columns of keys, tables.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Run = tuple[Longs, Longs, Longs]  # first hashes, second hashes, times in microseconds


class KeyIndex:
    def __init__(self) -> None:
        self._runs: list[Run] = []  # sorted by the first hash, largest run first

    def __len__(self) -> int:
        return sum(len(first) for first, _, _ in self._runs)

    def has(
        self, first: Longs, second: Longs, times: Longs | None = None, within_us: int | None = None
    ) -> Flags:
        """Find the keys that the index has. With `within_us`, only entries count that are at most so long
        before or after the time of the key."""
        found = np.zeros(len(first), np.bool_)
        for firsts, seconds, ats in self._runs:
            at = np.searchsorted(firsts, first)
            # Different keys may share the first hash: compare all entries with this hash.
            open_ = ~found & (at < len(firsts))
            while open_.any():
                index = at[open_]
                same = firsts[index] == first[open_]
                hit = same & (seconds[index] == second[open_])
                if within_us is not None and times is not None:
                    hit &= np.abs(ats[index] - times[open_]) <= within_us
                rows = np.flatnonzero(open_)
                found[rows[hit]] = True
                at[rows] += 1
                open_[rows[~same | hit]] = False
                open_ &= at < len(firsts)
        return found

    def add(self, first: Longs, second: Longs, times: Longs | None = None) -> None:
        if not len(first):
            return
        run = sorted_run(first, second, np.zeros(len(first), np.int64) if times is None else times)
        while self._runs and len(self._runs[-1][0]) <= 2 * len(run[0]):
            other = self._runs.pop()
            run = sorted_run(*(np.concatenate([one, two]) for one, two in zip(other, run, strict=True)))
        self._runs.append(run)

    def forget_before(self, time_us: int) -> None:
        """Drop the entries of earlier times."""
        kept = [tuple(each[run[2] >= time_us] for each in run) for run in self._runs]
        self._runs = [(first, second, at) for first, second, at in kept if len(first)]


def sorted_run(first: Longs, second: Longs, times: Longs) -> Run:
    order = np.argsort(first, kind="stable")
    return first[order], second[order], times[order]


def first_of_each(first: Longs, second: Longs, rows: Flags, *, last: bool = False) -> Flags:
    """Flags the first (or the last) of the given rows for each key, in the order of the rows."""
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
