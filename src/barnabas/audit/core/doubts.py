"""Doubts: how much of a difference between two tiers follows from counts that are not known.

In: a ledger, a tier and its references in one bucket. Out: `Doubts`. A counter died before it told its last
counts; a tier began to count while records were passing already; an acknowledgement never came, and the
record may be stored all the same; older count messages are deleted; the topic was deleted and made again;
the log is compacted. None of these is a
loss or a duplicate. Asked only where there is a difference.
Does not know: rules, states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.audit.core.ledger import LOGS, UNKNOWN, Cell, Ledger, Session
from barnabas.audit.core.tiers import CLUSTER, PRODUCER, kind_of
from barnabas.audit.core.verdicts import PATIENCE_MS, Doubts

Doubtful = dict[tuple[str, str], list[Session]]  # by tier and topic: sessions that died


@dataclass(frozen=True, slots=True)
class Compared:
    """A tier and its references, in one bucket."""

    ledger: Ledger
    doubtful: Doubtful
    bucket_ms: int
    tier: str
    topic: str
    cell: Cell | None
    source: str  # the topic of the references
    references: Sequence[tuple[str, Cell | None]]

    def doubts(self) -> Doubts:
        cells = [cell for _, cell in self.references if cell is not None]
        if self._is_cut_off([*cells, *([self.cell] if self.cell is not None else [])]):
            return Doubts(UNKNOWN, UNKNOWN)
        ledger, names = self.ledger, [name for name, _ in self.references]
        before = sum(self._untold(name, self.source) for name in names)
        before += sum(cell.total.failed for cell in cells)
        if any(began_later(ledger, name, self.source, self.cell) for name in names):
            before = UNKNOWN
        was_deleted = any(
            cell is not None and cell.first_ms < ledger.remade_ms(name, self.source)
            for name, cell in self.references
        )
        return Doubts(
            UNKNOWN if was_deleted else self._untold(self.tier, self.topic),
            min(before, UNKNOWN),
            self._unseen(),
            any(ledger.compacted.get((name, self.source), False) for name in names)
            and kind_of(self.tier) != CLUSTER,
        )

    @property
    def saw_nothing_yet(self) -> bool:
        """Whether the tier began to read behind all records of the bucket."""
        expected = sum(cell.total.counted for _, cell in self.references if cell is not None)
        return sum(self._unseen().values()) >= expected

    def _untold(self, tier: str, topic: str) -> int:
        """Records that died counters of a tier may have counted last."""
        sessions = self.doubtful.get((tier, topic), ())
        return min(sum(each.doubt(topic, self.bucket_ms) for each in sessions), UNKNOWN)

    def _is_cut_off(self, cells: Sequence[Cell]) -> bool:
        """Whether the oldest counts of the bucket may be among the messages that retention has deleted."""
        since_ms = self.ledger.since_ms
        first_ms = min((cell.first_ms for cell in cells), default=since_ms)
        return self.bucket_ms < since_ms and first_ms < since_ms + PATIENCE_MS

    def _unseen(self) -> Mapping[int, int]:
        """By partition: records that were written before the tier read its first one."""
        beginning = self.ledger.beginnings.get((self.tier, self.topic))
        if beginning is None or not beginning.offsets or len(self.references) != 1:
            return {}
        name, cell = self.references[0]
        if kind_of(self.tier) in LOGS or kind_of(name) not in LOGS:
            return {}
        tallies = cell.by_partition() if cell is not None else None
        if cell is None or tallies is None:
            return {}
        is_first = cell.first_ms < beginning.since_ms and self.bucket_ms <= beginning.since_ms
        found = {}
        for partition, tally in tallies.items():
            begin, first = beginning.offsets.get(partition), cell.firsts.get(partition)
            if begin is None:  # nothing came from this partition yet
                found[partition] = tally.counted if is_first else 0
            elif first is not None:
                found[partition] = min(max(begin - first, 0), tally.counted)
        return found


def began_later(ledger: Ledger, reference: str, topic: str, cell: Cell | None) -> bool:
    """Whether a cell had counts before the clients of its reference began to count the topic. Brokers count
    what the log has, whenever they begin."""
    beginning = ledger.beginnings.get((reference, topic))
    return (
        kind_of(reference) == PRODUCER
        and cell is not None
        and beginning is not None
        and cell.first_ms < beginning.since_ms
    )
