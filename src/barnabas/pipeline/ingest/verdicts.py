"""What becomes of each row of a batch, decided in the driver from a few numbers a row.

In: columns that Spark computed: hashes of keys, broken rules. Out: which rows are duplicates, staged,
accepted, refused. Neither rows nor tables are shuffled or joined for this. Pure. Does not know: Spark,
tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from barnabas.pipeline.ingest.key_index import Flags, KeyIndex, Longs, first_of_each
from barnabas.pipeline.spec.model import Merging


@dataclass(frozen=True, slots=True)
class Hashes:
    """Of a key: `whole` is False where a part of it is null."""

    first: Longs
    second: Longs
    whole: Flags


@dataclass(frozen=True, slots=True)
class StagingVerdict:
    staged: Flags  # goes into the table (or deletes from it)
    duplicates: Flags  # the key was there before, or comes again later in the batch


@dataclass(frozen=True, slots=True)
class TrustedVerdict:
    accepted: Flags
    refused: Flags
    broken: Longs  # a bit for each rule
    claimed: dict[int, Flags] = field(default_factory=dict)  # by rule `unique`: rows whose value is now taken


def judge_staging(
    fine: Flags, keys: Hashes | None, merging: Merging, index: KeyIndex | None
) -> StagingVerdict:
    """`fine` rows could be parsed and are not to be ignored."""
    if keys is None:
        return StagingVerdict(fine, np.zeros(len(fine), np.bool_))
    rows = fine & keys.whole
    if merging is Merging.FIRST:
        new = rows if index is None else rows & ~index.has(keys.first, keys.second)
        kept = first_of_each(keys.first, keys.second, new)
    else:
        kept = first_of_each(keys.first, keys.second, rows, last=True)
    # A key with a null in it equals no other.
    staged = kept | (fine & ~keys.whole)
    return StagingVerdict(staged, fine & ~staged)


def judge_trusted(
    staged: Flags,
    deletes: Flags,
    broken: Longs,
    unique: dict[int, tuple[Hashes, KeyIndex | None]],
) -> TrustedVerdict:
    """`unique` by the number of its rule: of the rows that break no other rule, the first has the value."""
    broken = broken.copy()
    passing = staged & ~deletes & (broken == 0)
    claimed: dict[int, Flags] = {}
    for number, (hashes, index) in unique.items():
        rows = passing & hashes.whole
        new = rows if index is None else rows & ~index.has(hashes.first, hashes.second)
        first = first_of_each(hashes.first, hashes.second, new)
        lost = rows & ~first
        broken[lost] |= 1 << number
        passing &= ~lost
        claimed[number] = first
    claimed = {number: rows & passing for number, rows in claimed.items()}
    refused = staged & ~deletes & (broken != 0)
    return TrustedVerdict(passing | (staged & deletes), refused, broken, claimed)
