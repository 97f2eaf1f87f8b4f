"""Verdicts: one tier compared with the one before it, for one topic and bucket.

In: two cells, the time, how long records may take. Out: what is missing and what is too many, and a state.
Percentages are never rounded up: one record of a billion missing is below 100 %.
Does not know: where counts come from, which tiers belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.audit.core.buckets import NO_TIME, bucket_end
from barnabas.audit.core.ledger import Cell
from barnabas.audit.core.messages import Tally
from barnabas.audit.core.tiers import SAME_PARTITIONS, kind_of

PATIENCE_MS = 10 * 60_000
FAR_AHEAD_MS = 86_400_000  # timestamps of the future


class State(StrEnum):
    OPEN = "open"  # the bucket's time is not over
    IN_FLIGHT = "in flight"  # records are missing, and have time left to come
    COMPLETE = "complete"
    LATE = "late"  # complete, but after the allowed delay
    MISSING = "missing"
    DUPLICATED = "duplicated"
    MISSING_AND_DUPLICATED = "missing and duplicated"
    DIFFERENT = "different"  # as many as expected, but not the same ones: sums of their contents differ
    UNCERTAIN = "uncertain"  # counts that are not known can explain the difference
    COMPACTED = "compacted"  # fewer: the log cleaner may have removed the others before they were read
    NO_REFERENCE = "no reference"  # the tier before does not count this topic

    @property
    def is_wrong(self) -> bool:
        return self in (State.MISSING, State.DUPLICATED, State.MISSING_AND_DUPLICATED, State.DIFFERENT)


@dataclass(frozen=True, slots=True)
class Verdict:
    state: State
    expected: int
    seen: int
    missing: int
    extra: int
    partitions: tuple[int, ...] = ()  # with differences, where both tiers know partitions
    completed_ms: int | None = None  # from the end of the bucket to the last count


@dataclass(frozen=True, slots=True)
class Doubts:
    """Records that may explain a difference.

    `here` and `before`: those that counters of the tier, and of the tier before, may have seen and not told,
    because they died, had not begun to count, or never got an answer. `unseen`: by partition, those that were
    written before this tier began to read there. `is_compacted`: the log loses records by compaction.
    """

    here: int = 0
    before: int = 0
    unseen: Mapping[int, int] = field(default_factory=dict)
    is_compacted: bool = False


@dataclass(frozen=True, slots=True)
class Differences:
    missing: int
    extra: int
    partitions: tuple[int, ...] = ()
    are_others: bool = False  # as many records somewhere, but not the same ones
    losses: Mapping[int, int] = field(default_factory=dict)  # by partition, where partitions are known

    def unexplained(self, unseen: Mapping[int, int]) -> int:
        """Missing records less those that the tier cannot have seen."""
        if not self.losses:
            return max(0, self.missing - sum(unseen.values()))
        return sum(max(0, lost - unseen.get(each, 0)) for each, lost in self.losses.items())


def judge(
    bucket_ms: int,
    tier: str,
    cell: Cell | None,
    references: Sequence[tuple[str, Cell | None]],
    now_ms: int,
    *,
    patience_ms: int = PATIENCE_MS,
    doubts: Callable[[], Doubts] = Doubts,
    keeps_partitions: bool = True,
    sees_aborted: bool = False,
) -> Verdict:
    """Compare a cell with the sum of its references; both may have counted nothing yet."""
    known = [each for _, each in references if each is not None]
    seen = accounted(cell.total) if cell is not None else 0
    if not references:
        return Verdict(State.NO_REFERENCE, seen, seen, 0, 0)
    expected = sum(each.total.counted for each in known)
    kinds = {kind_of(tier), *(kind_of(name) for name, _ in references)}
    has_partitions = keeps_partitions and len(known) == 1 and kinds <= SAME_PARTITIONS
    found = differences(cell, known, has_partitions=has_partitions, sees_aborted=sees_aborted)
    both = [*known, *([cell] if cell else [])]
    width_ms = both[0].width_ms if both else 0
    last_ms = max((each.last_ms for each in both), default=now_ms)
    end_ms = bucket_end(bucket_ms, width_ms)
    if bucket_ms == NO_TIME or bucket_ms > last_ms + FAR_AHEAD_MS:
        end_ms = last_ms  # it has no end, or a far one: it is judged when nothing comes any more
    state = state_of(found, now_ms, end_ms, patience_ms, cell, known)
    if state.is_wrong and not found.are_others:
        state = explained(state, found, doubts())
    completed_ms = cell.last_ms - end_ms if cell is not None else None
    return Verdict(state, expected, seen, found.missing, found.extra, found.partitions, completed_ms)


def explained(state: State, found: Differences, doubts: Doubts) -> State:
    """The state, less strict where something that is known explains the whole difference."""
    missing = found.unexplained(doubts.unseen)
    if found.extra > doubts.before:
        return state
    if missing <= doubts.here:
        return State.UNCERTAIN
    return State.COMPACTED if doubts.is_compacted else state


def accounted(tally: Tally) -> int:
    return tally.counted + tally.dropped


def difference_of(here: Tally, before: Tally, *, sees_aborted: bool) -> int:
    """Records too many, or with a minus too few. What the tier before dropped is not expected. A consumer
    that does not ask for committed records sees all of those that were aborted too."""
    found = accounted(here) - before.counted
    return 0 if sees_aborted and found == before.aborted else found


def differences(
    cell: Cell | None, known: Sequence[Cell], *, has_partitions: bool, sees_aborted: bool = False
) -> Differences:
    """Losses in one partition and duplicates in another do not make up for each other."""
    if has_partitions:
        mine = cell.by_partition() if cell is not None else {}
        theirs = known[0].by_partition()
        if mine is not None and theirs is not None:
            return by_partition(mine, theirs, sees_aborted=sees_aborted)
    here = cell.total if cell is not None else Tally()
    before = Tally()
    for each in known:
        before = before.plus(each.total)
    difference = difference_of(here, before, sees_aborted=sees_aborted)
    return Differences(
        max(0, -difference), max(0, difference), are_others=not difference and are_others(here, before)
    )


def by_partition(
    mine: Mapping[int, Tally], theirs: Mapping[int, Tally], *, sees_aborted: bool = False
) -> Differences:
    extra = 0
    others, wrong, losses = False, [], dict[int, int]()
    for partition in sorted({*mine, *theirs}):
        here, before = mine.get(partition, Tally()), theirs.get(partition, Tally())
        difference = difference_of(here, before, sees_aborted=sees_aborted)
        extra += max(0, difference)
        if difference < 0:
            losses[partition] = -difference
        is_other = not difference and are_others(here, before)
        others = others or is_other
        if difference or is_other:
            wrong.append(partition)
    return Differences(sum(losses.values()), extra, tuple(wrong), others, losses)


def are_others(here: Tally, before: Tally) -> bool:
    """Whether two tiers that summed up the contents of all of their records have different sums."""
    has_sums = here.summed == accounted(here) and before.summed == before.counted and not before.dropped
    return has_sums and here.content != before.content


def state_of(
    found: Differences,
    now_ms: int,
    end_ms: int,
    patience_ms: int,
    cell: Cell | None,
    known: Sequence[Cell],
) -> State:
    if now_ms < end_ms:
        return State.OPEN
    missing, extra = found.missing, found.extra
    is_due = now_ms >= end_ms + patience_ms
    if is_due and (missing or extra or found.are_others):
        # Old records may be on their way now: those whose counts came a short time ago have time left too.
        before = sum(each.arrived_after(now_ms - patience_ms) for each in known)
        here = cell.arrived_after(now_ms - patience_ms) if cell is not None else 0
        is_due = missing > before or extra > here or (found.are_others and not before and not here)
    if not is_due and (missing or extra or found.are_others):
        return State.IN_FLIGHT
    if missing and extra:
        return State.MISSING_AND_DUPLICATED
    if missing or extra:
        return State.MISSING if missing else State.DUPLICATED
    if found.are_others:
        return State.DIFFERENT
    last_expected_ms = max((end_ms, *(each.last_ms for each in known)))
    if cell is not None and cell.last_ms - last_expected_ms > patience_ms:
        return State.LATE
    return State.COMPLETE


def percent(seen: int, expected: int, missing: int = 0) -> str:
    """Completeness with three decimals, rounded down; 100 where nothing was expected and nothing came."""
    if not expected:
        return "100" if not seen else "-"
    thousandths = (seen if not missing else min(seen, expected - missing)) * 100_000 // expected
    whole, rest = divmod(thousandths, 1_000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".")
