"""Verdicts: what becomes of each row of a batch. The driver decides from a few facts per row.

In: arrays that Spark computed: hashes of keys, bits of broken rules. Out: which rows are duplicates, staged,
accepted, refused. Pure. Does not know: Spark, tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from barnabas.pipeline.ingest.dedupe.key_index import Flags, KeyIndex, Longs, first_of_each
from barnabas.pipeline.spec.model import Merging


@dataclass(frozen=True, slots=True)
class Hashes:
    """Two hashes of a key. `whole` is False where a column of the key is null."""

    first: Longs
    second: Longs
    whole: Flags


@dataclass(frozen=True, slots=True)
class UniqueValues:
    """Of a rule `unique`: values of the batch, those of the table, and how long these count."""

    hashes: Hashes
    index: KeyIndex | None
    times: Longs | None = None  # when rows were ingested
    within_us: int | None = None


@dataclass(frozen=True, slots=True)
class StagingVerdict:
    staged: Flags  # are written to the table, or delete from it
    duplicates: Flags  # the table or another row of the batch has the key


@dataclass(frozen=True, slots=True)
class TrustedVerdict:
    accepted: Flags
    refused: Flags
    broken: Longs  # a bit for each rule
    claimed: dict[int, Flags] = field(
        default_factory=dict
    )  # by the number of a rule `unique`: rows that own their value from now on


def judge_staging(
    fine: Flags,
    keys: Hashes | None,
    merging: Merging,
    index: KeyIndex | None,
    times: Longs | None = None,
    within_us: int | None = None,
) -> StagingVerdict:
    """`fine`: rows that could be parsed and are not to be ignored. `times`: when they were ingested;
    `within_us`: keys of the index count within this distance."""
    if keys is None:
        return StagingVerdict(fine, np.zeros(len(fine), np.bool_))
    rows = fine & keys.whole
    if merging is Merging.INSERT_NEW:
        new = rows if index is None else rows & ~index.has(keys.first, keys.second, times, within_us)
        kept = first_of_each(keys.first, keys.second, new)
    else:
        kept = first_of_each(keys.first, keys.second, rows, last=True)
    # A key with a null equals no other key.
    staged = kept | (fine & ~keys.whole)
    return StagingVerdict(staged, fine & ~staged)


def judge_trusted(
    staged: Flags,
    deletes: Flags,
    broken: Longs,
    unique: dict[int, UniqueValues],
) -> TrustedVerdict:
    """`unique`: by the number of the rule. The first row that breaks no other rule owns the value."""
    broken = broken.copy()
    passing = staged & ~deletes & (broken == 0)
    claimed: dict[int, Flags] = {}
    for number, values in unique.items():
        hashes, index = values.hashes, values.index
        rows = passing & hashes.whole
        new = rows
        if index is not None:
            new = rows & ~index.has(hashes.first, hashes.second, values.times, values.within_us)
        first = first_of_each(hashes.first, hashes.second, new)
        lost = rows & ~first
        broken[lost] |= 1 << number
        passing &= ~lost
        claimed[number] = first
    claimed = {number: rows & passing for number, rows in claimed.items()}
    refused = staged & ~deletes & (broken != 0)
    return TrustedVerdict(passing | (staged & deletes), refused, broken, claimed)
