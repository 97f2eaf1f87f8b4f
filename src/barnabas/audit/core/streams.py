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
from functools import reduce
from itertools import pairwise

from barnabas.audit.core.messages import NO_EPOCH, CountMessage, StreamKind, Tally

CUTS_REMEMBERED = 64  # parts of a covered range
RANGES_MAX = 1_000  # with gaps between them
BATCHES_REMEMBERED = 10_000  # of one stream: their counts can be corrected
LOSSES_REMEMBERED = 16

Place = tuple[str, int, int]  # topic, partition, bucket
Counts = Mapping[Place, Tally]


class Covered:
    """A range without gaps. Counts are known between its last cuts; older ones are forgotten, or a stream of
    a week would hold the sums of all of its buckets at each cut."""

    __slots__ = ("_cuts", "_parts", "end", "start")

    def __init__(self, start: int, end: int, counts: Counts | None) -> None:
        self.start = start
        self.end = end
        self._cuts = [end] if counts is None else [start, end]
        self._parts: list[Counts] = [] if counts is None else [counts]  # between two cuts each

    def knows(self, cut: int) -> bool:
        at = bisect_left(self._cuts, cut)
        return at < len(self._cuts) and self._cuts[at] == cut

    def between(self, first: int, last: int) -> Counts:
        """The sums between two cuts that are known."""
        parts = self._parts[bisect_left(self._cuts, first) : bisect_left(self._cuts, last)]
        return reduce(plus, parts, {})

    def append(self, end: int, counts: Counts) -> None:
        self._parts.append(counts)
        self._cuts.append(end)
        self.end = end
        self._forget()

    def prepend(self, start: int, counts: Counts) -> None:
        """Its own start must be known."""
        self._parts.insert(0, counts)
        self._cuts.insert(0, start)
        self.start = start
        self._forget()

    def join(self, behind: Covered) -> None:
        """Add a range that begins where this one ends."""
        if behind.knows(behind.start):
            self._cuts += behind._cuts[1:]
            self._parts += behind._parts
        else:
            self._cuts, self._parts = behind._cuts, behind._parts
        self.end = behind.end
        self._forget()

    def _forget(self) -> None:
        surplus = len(self._parts) - CUTS_REMEMBERED
        if surplus > 0:
            del self._parts[:surplus], self._cuts[:surplus]

    def end_at(self, cut: int) -> None:
        """Forget what is behind a cut that is known."""
        at = bisect_left(self._cuts, cut)
        del self._cuts[at + 1 :], self._parts[at:]
        self.end = cut

    def has(self, number: int) -> bool:
        return self.start <= number < self.end

    def learn(self, start: int, end: int, counts: Counts) -> None:
        """A range inside of this one was counted again: another cut may be known now."""
        if self.knows(start) and not self.knows(end):
            at = bisect_left(self._cuts, end)  # it lies in the part before this cut
            self._split(at, end, minus(counts, self.between(start, self._cuts[at - 1])))
        elif self.knows(end) and not self.knows(start) and start > self._cuts[0]:
            at = bisect_left(self._cuts, start)
            behind = minus(counts, self.between(self._cuts[at], end))
            self._split(at, start, minus(self._parts[at - 1], behind))

    def _split(self, at: int, cut: int, before: Counts) -> None:
        whole = self._parts[at - 1]
        self._parts[at - 1 : at] = [before, minus(whole, before)]
        self._cuts.insert(at, cut)
        self._forget()


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
        behind = [each for each in self._covered if each.end > start]
        if not all(each.knows(max(start, each.start)) for each in behind):
            self.conflicts += 1
            return None
        for each in behind:
            lost = plus(lost, each.between(max(start, each.start), each.end))
            if each.start >= start:
                self._covered.remove(each)
            else:
                each.end_at(start)
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
        if len(touched) == 1 and known.start <= start and known.knows(start):
            fresh: Counts = minus(counts, known.between(start, known.end))
            known.append(end, fresh)
        elif len(touched) == 1 and start < known.start and known.knows(known.start) and known.knows(end):
            fresh = minus(counts, known.between(known.start, end))
            known.prepend(start, fresh)
        elif all(start <= each.start and each.end <= end and each.knows(each.start) for each in touched):
            fresh = counts
            for each in touched:
                fresh = minus(fresh, each.between(each.start, each.end))
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
            before = self._covered.pop(at)
            before.join(new)
            new = before
        if at < len(self._covered) and self._covered[at].start == new.end:
            new.join(self._covered.pop(at))
        self._covered.insert(at, new)
        if len(self._covered) > RANGES_MAX:  # the oldest gap is given up: what comes for it is a repetition
            first, second = self._covered[:2]
            self._covered[:2] = [Covered(first.start, second.end, None)]

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Ranges between the first and the last one that nobody counted."""
        if self.may_have_gaps:
            return []
        return [(before.end, behind.start) for before, behind in pairwise(self._covered)]


def is_of_a_lost_log(message: CountMessage, losses: Sequence[tuple[int, int]]) -> bool:
    """Whether a leader before an unclean election counted records that the log has lost since then."""
    return any(NO_EPOCH < message.epoch < epoch and message.end > cut for cut, epoch in losses)


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
