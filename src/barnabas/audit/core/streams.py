"""Streams: ranges that were counted, so that each part of a stream counts once.

In: count messages of one stream, in any order, some of them twice. Out: what is new in each. A range that is
covered already adds nothing. A range that overlaps the end of what is covered (two leaders counted the same
partition for a moment) adds only what is behind. Both counted the same log, so the sums at its *cuts*, where
messages began and ended, are known: what is behind the end is the sum at one cut less the sum at another.
A correction replaces what was counted before: of a log that lost its end in an unclean election everything
from an offset on, of batches the batches that it names. Then what is new may be negative.
Does not know: tiers, buckets' meaning.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise

from barnabas.audit.core.messages import NO_EPOCH, CountMessage, StreamKind, Tally

CUTS_REMEMBERED = 64  # of a covered range
RANGES_MAX = 1_000  # with gaps between them
BATCHES_REMEMBERED = 10_000  # of one stream: their counts can be corrected
LOSSES_REMEMBERED = 16

Place = tuple[str, int, int]  # topic, partition, bucket
Counts = Mapping[Place, Tally]


class Covered:
    """A range without gaps, and the sums from its start up to some cuts."""

    __slots__ = ("cuts", "end", "start")

    def __init__(self, start: int, end: int, counts: Counts) -> None:
        self.start = start
        self.end = end
        self.cuts: dict[int, Counts] = {start: {}, end: counts}

    @property
    def total(self) -> Counts:
        return self.cuts[self.end]

    def remember(self, cut: int, counts: Counts) -> None:
        self.cuts[cut] = counts
        if len(self.cuts) > CUTS_REMEMBERED:
            del self.cuts[next(each for each in self.cuts if each not in (self.start, self.end))]

    def has(self, number: int) -> bool:
        return self.start <= number < self.end

    def end_at(self, cut: int) -> None:
        """Forget what is behind a cut that is known."""
        self.cuts = {each: sums for each, sums in self.cuts.items() if each <= cut}
        self.end = cut

    def learn(self, start: int, end: int, counts: Counts) -> None:
        """A range inside of this one was counted again: another cut may be known now."""
        if start in self.cuts and end not in self.cuts:
            self.remember(end, plus(self.cuts[start], counts))
        elif end in self.cuts and start not in self.cuts:
            self.remember(start, minus(self.cuts[end], counts))


class Stream:
    __slots__ = ("_batches", "_covered", "_losses", "conflicts", "may_have_gaps")

    def __init__(self) -> None:
        self._covered: list[Covered] = []  # in order
        self._batches: dict[int, Counts] = {}  # counts of the last batches, by their number
        self._losses: list[
            tuple[int, int]
        ] = []  # offset where the log was cut, the epoch before which it is old
        self.may_have_gaps = False  # numbers of batches: some hold nothing to count
        self.conflicts = 0  # ranges that overlap others in a way that cannot be resolved

    def accept(self, message: CountMessage) -> Counts | None:
        """The counts that the message adds: None if they were counted before, or cannot be told apart."""
        if message.is_correction:
            return self._correct(message)
        if is_of_a_lost_log(message, self._losses):
            return None
        fresh = self._accept(message.start, message.end, counts_of(message))
        if message.kind is StreamKind.BATCHES and fresh is not None and message.end == message.start + 1:
            self._remember_batch(message.start, fresh)
        return fresh

    def _accept(self, start: int, end: int, counts: Counts) -> Counts | None:
        touched = [each for each in self._covered if each.start < end and start < each.end]
        if not touched:
            self._insert(Covered(start, end, counts))
            return counts
        if len(touched) == 1 and touched[0].start <= start and end <= touched[0].end:
            touched[0].learn(start, end, counts)
            return None
        fresh = self._extend(touched, start, end, counts)
        if fresh is None:
            self.conflicts += 1
        return fresh

    def _correct(self, message: CountMessage) -> Counts | None:
        start, end, counts = message.start, message.end, counts_of(message)
        if message.kind is StreamKind.BATCHES:
            known = self._batches.get(start)
            if end != start + 1 or (known is None and any(each.has(start) for each in self._covered)):
                self.conflicts += 1  # counts that are too old to be remembered
                return None
            if known is None:
                self._accept(start, end, counts)
            self._remember_batch(start, counts)
            return exact_difference(counts, known or {})
        loss = (message.correction, message.epoch)
        if loss in self._losses or is_of_a_lost_log(message, self._losses):
            return None  # this election, or a later one, was corrected already
        lost: Counts = {}
        for each in [each for each in self._covered if each.end > start]:
            if each.start >= start:
                lost = plus(lost, each.total)
                self._covered.remove(each)
            elif start in each.cuts:
                lost = plus(lost, exact_difference(each.total, each.cuts[start]))
                each.end_at(start)
            else:
                self.conflicts += 1
                return None
        self._losses = [*self._losses, loss][-LOSSES_REMEMBERED:]
        if end > start:
            self._insert(Covered(start, end, counts))
        return exact_difference(counts, lost)

    def _remember_batch(self, number: int, counts: Counts) -> None:
        self._batches[number] = counts
        if len(self._batches) > BATCHES_REMEMBERED:
            del self._batches[next(iter(self._batches))]

    def _extend(self, touched: list[Covered], start: int, end: int, counts: Counts) -> Counts | None:
        """Add a range that is covered in part. None if its parts cannot be told apart."""
        known = touched[0]
        if len(touched) == 1 and known.start <= start and start in known.cuts:
            whole = plus(known.cuts[start], counts)
            fresh: Counts = minus(whole, known.total)
            known.end = end
            known.remember(end, whole)
        elif len(touched) == 1 and end <= known.end and end in known.cuts:
            fresh = minus(counts, known.cuts[end])
            known.cuts = {start: {}} | {cut: plus(sums, fresh) for cut, sums in known.cuts.items()}
            known.start = start
        elif all(start <= each.start and each.end <= end for each in touched):
            fresh = counts
            for each in touched:
                fresh = minus(fresh, each.total)
                self._covered.remove(each)
            self._insert(Covered(start, end, counts))
            return fresh
        else:
            return None
        self._covered.remove(known)
        self._insert(known)
        return fresh

    def _insert(self, new: Covered) -> None:
        """Put a range at its place, joined with those that it touches."""
        at = bisect_left(self._covered, new.start, key=lambda each: each.start)
        if at and self._covered[at - 1].end == new.start:
            at -= 1
            new = joined(self._covered.pop(at), new)
        if at < len(self._covered) and self._covered[at].start == new.end:
            new = joined(new, self._covered.pop(at))
        self._covered.insert(at, new)
        if len(self._covered) > RANGES_MAX:  # the oldest gap is given up: what comes for it is a repetition
            first, second = self._covered[:2]
            self._covered[:2] = [Covered(first.start, second.end, plus(first.total, second.total))]

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Ranges between the first and the last one that nobody counted."""
        if self.may_have_gaps:
            return []
        return [(before.end, behind.start) for before, behind in pairwise(self._covered)]


def is_of_a_lost_log(message: CountMessage, losses: Sequence[tuple[int, int]]) -> bool:
    """Whether a leader before an unclean election counted records that the log has lost since then."""
    return any(NO_EPOCH < message.epoch < epoch and message.end > cut for cut, epoch in losses)


def joined(before: Covered, behind: Covered) -> Covered:
    """Two ranges side by side as one."""
    base = before.total
    before.end = behind.end
    for cut, sums in behind.cuts.items():
        if cut != behind.start:
            before.remember(cut, plus(base, sums))
    return before


def counts_of(message: CountMessage) -> dict[Place, Tally]:
    found: dict[Place, Tally] = {}
    for entry in message.entries:
        place = (message.topic, entry.partition, entry.bucket_ms)
        found[place] = found.get(place, Tally()).plus(entry.tally)
    return found


def plus(counts: Counts, other: Counts) -> Counts:
    found = dict(counts)
    for place, tally in other.items():
        found[place] = found.get(place, Tally()).plus(tally)
    return found


def minus(counts: Counts, other: Counts) -> Counts:
    found = dict(counts)
    for place, tally in other.items():
        # Compaction may have removed records before the second count: nothing is taken back for them.
        left = found.get(place, Tally()).plus(tally, -1)
        found[place] = Tally(*(max(each, 0) for each in left))
    return found


def exact_difference(counts: Counts, other: Counts) -> Counts:
    """The counts that a correction adds, and with a negative sign those that it takes back."""
    found = dict(counts)
    for place, tally in other.items():
        found[place] = found.get(place, Tally()).plus(tally, -1)
    return found
