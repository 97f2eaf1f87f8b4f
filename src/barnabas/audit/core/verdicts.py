"""Verdicts: one tier compared with the one before it, for one topic and bucket.

In: two cells, the time, how long records may take. Out: what is missing and what is too many, and a state.
Percentages are never rounded up: one record of a billion missing is below 100 %.
Does not know: where counts come from, which tiers belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from barnabas.audit.core.buckets import NO_TIME, bucket_end
from barnabas.audit.core.ledger import Cell
from barnabas.audit.core.tiers import SAME_PARTITIONS, kind_of

PATIENCE_MS = 10 * 60_000


class State(StrEnum):
    OPEN = "open"  # the bucket's time is not over
    IN_FLIGHT = "in flight"  # records are missing, and have time left to come
    COMPLETE = "complete"
    LATE = "late"  # complete, but after the allowed delay
    MISSING = "missing"
    DUPLICATED = "duplicated"
    MISSING_AND_DUPLICATED = "missing and duplicated"
    UNCERTAIN = "uncertain"  # a counter of the reference ended without its last counts
    NO_REFERENCE = "no reference"  # the tier before does not count this topic

    @property
    def is_wrong(self) -> bool:
        return self in (State.MISSING, State.DUPLICATED, State.MISSING_AND_DUPLICATED)


@dataclass(frozen=True, slots=True)
class Verdict:
    state: State
    expected: int
    seen: int
    missing: int
    extra: int
    partitions: tuple[int, ...] = ()  # with differences, where both tiers know partitions
    completed_ms: int | None = None  # from the end of the bucket to the last count


def judge(
    bucket_ms: int,
    tier: str,
    cell: Cell | None,
    references: Sequence[tuple[str, Cell | None]],
    now_ms: int,
    *,
    patience_ms: int = PATIENCE_MS,
    is_certain: bool = True,
    keeps_partitions: bool = True,
) -> Verdict:
    """Compare a cell with the sum of its references; both may have counted nothing yet."""
    known = [each for _, each in references if each is not None]
    seen = cell.total.counted + cell.total.dropped if cell is not None else 0
    if not references:
        return Verdict(State.NO_REFERENCE, seen, seen, 0, 0)
    expected = sum(each.total.counted for each in known)
    missing, extra = max(0, expected - seen), max(0, seen - expected)
    partitions: tuple[int, ...] = ()
    kinds = {kind_of(tier), *(kind_of(name) for name, _ in references)}
    if keeps_partitions and len(known) == 1 and cell is not None and kinds <= SAME_PARTITIONS:
        missing, extra, partitions = by_partition(cell, known[0], missing, extra)
    width_ms = (cell or known[0]).width_ms if cell is not None or known else 0
    end_ms = bucket_end(bucket_ms, width_ms)
    if bucket_ms == NO_TIME:  # it has no end: it is judged when nothing comes any more
        end_ms = max((each.last_ms for each in [*known, *([cell] if cell else [])]), default=now_ms)
    completed_ms = cell.last_ms - end_ms if cell is not None else None
    state = state_of(missing, extra, now_ms, end_ms, patience_ms, completed_ms)
    if state.is_wrong and not is_certain and not missing:
        state = State.UNCERTAIN
    return Verdict(state, expected, seen, missing, extra, partitions, completed_ms)


def by_partition(cell: Cell, reference: Cell, missing: int, extra: int) -> tuple[int, int, tuple[int, ...]]:
    """Losses in one partition and duplicates in another do not make up for each other."""
    mine, theirs = cell.by_partition(), reference.by_partition(with_dropped=False)
    if mine is None or theirs is None:
        return missing, extra, ()
    differences = {
        partition: mine.get(partition, 0) - theirs.get(partition, 0) for partition in {*mine, *theirs}
    }
    return (
        -sum(each for each in differences.values() if each < 0),
        sum(each for each in differences.values() if each > 0),
        tuple(sorted(partition for partition, each in differences.items() if each)),
    )


def state_of(
    missing: int, extra: int, now_ms: int, end_ms: int, patience_ms: int, completed_ms: int | None
) -> State:
    if now_ms < end_ms:
        return State.OPEN
    is_due = now_ms >= end_ms + patience_ms
    if extra and (is_due or not missing):
        # Counts of the reference may still come: only after the patience are there too many.
        return (State.MISSING_AND_DUPLICATED if missing else State.DUPLICATED) if is_due else State.IN_FLIGHT
    if missing:
        return State.MISSING if is_due else State.IN_FLIGHT
    if completed_ms is not None and completed_ms > patience_ms:
        return State.LATE
    return State.COMPLETE


def percent(seen: int, expected: int, missing: int = 0) -> str:
    """Completeness with three decimals, rounded down; 100 where nothing was expected and nothing came."""
    if not expected:
        return "100" if not seen else "-"
    thousandths = (seen if not missing else min(seen, expected - missing)) * 100_000 // expected
    whole, rest = divmod(thousandths, 1_000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".")
