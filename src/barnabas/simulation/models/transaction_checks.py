"""Invariants of transactions: a model that producers and readers update.

In: begun and ended transactions, written and read records, initialized producers. Raises `Wrong` if a part of
a committed transaction is missing, a record of an aborted or open one is read, an older epoch is accepted
after a newer one was assigned, or an input was processed twice or never.
Does not know: requests, retries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from barnabas.simulation.world.history import Wrong


class Outcome(Enum):
    OPEN = "open"  # no commit was sent
    COMMITTING = "committing"  # a commit was sent, with unknown result
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Transaction:
    number: int
    values: list[bytes] = field(default_factory=list)
    outcome: Outcome = Outcome.OPEN

    def value(self, text: str) -> bytes:
        """Make a unique value of this transaction."""
        made = b"%d %s" % (self.number, text.encode())
        self.values.append(made)
        return made


class Transactions:
    """All transactions of a history."""

    def __init__(self) -> None:
        self.all: list[Transaction] = []

    def begin(self) -> Transaction:
        transaction = Transaction(len(self.all))
        self.all.append(transaction)
        return transaction

    def saw(self, value: bytes) -> None:
        """A read-committed reader has read this value."""
        transaction = self._of(value)
        if transaction.outcome in (Outcome.OPEN, Outcome.ABORTED):
            raise Wrong(f"{value!r} is seen, of a transaction that is {transaction.outcome.value}")

    def compare(self, found: Iterable[bytes]) -> None:
        """Compare with all values that a read-committed reader finds at the end."""
        counts: dict[bytes, int] = {}
        for value in found:
            counts[value] = counts.get(value, 0) + 1
            if counts[value] > 1:
                raise Wrong(f"{value!r} is there twice")
        for transaction in self.all:
            missing = [value for value in transaction.values if value not in counts]
            there = len(transaction.values) - len(missing)
            if transaction.outcome is Outcome.COMMITTED and missing:
                raise Wrong(f"{missing[0]!r} was committed and is gone")
            if transaction.outcome in (Outcome.ABORTED, Outcome.OPEN) and there:
                raise Wrong(f"{there} records are there of transaction {transaction.number}, never committed")
            if there and missing:
                raise Wrong(f"transaction {transaction.number} is there in part: {missing[0]!r} is missing")

    def _of(self, value: bytes) -> Transaction:
        return self.all[int(value.split(b" ", 1)[0])]


class Epochs:
    """The newest producer id and epoch that was assigned to each transactional id."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}

    def newest(self, transactional_id: str) -> tuple[int, int]:
        return self._newest.get(transactional_id, (-1, -1))

    def given(self, transactional_id: str, newest_before: tuple[int, int], producer: tuple[int, int]) -> None:
        """InitProducerId returned this. `newest_before` was the newest one when the request was sent."""
        if is_older(producer, newest_before) or producer == newest_before:
            raise Wrong(f"{transactional_id}: {producer} is given out after {newest_before}")
        self.moved(transactional_id, producer)

    def moved(self, transactional_id: str, producer: tuple[int, int]) -> None:
        """The end of a transaction bumped the producer's epoch (KIP-890)."""
        if not is_older(producer, self.newest(transactional_id)):
            self._newest[transactional_id] = producer

    def accepted(
        self, transactional_id: str, newest_before: tuple[int, int], producer: tuple[int, int], what: str
    ) -> None:
        if is_older(producer, newest_before):
            raise Wrong(f"{transactional_id}: {what} of {producer} is taken after {newest_before}")


def is_older(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a producer id and epoch are older than others of the same transactional id."""
    return one < other


class Inputs:
    """The inputs of a consume-transform-produce loop: each one must be in the output exactly once."""

    def __init__(self, counts: dict[int, int]) -> None:
        self._counts = counts  # inputs by partition

    def compare(self, outputs: Iterable[tuple[int, int]]) -> None:
        seen: set[tuple[int, int]] = set()
        for place in outputs:
            if place in seen:
                raise Wrong(f"input {place[1]} of partition {place[0]} is processed twice")
            seen.add(place)
        for partition, count in self._counts.items():
            missing = [offset for offset in range(count) if (partition, offset) not in seen]
            if missing:
                raise Wrong(f"input {missing[0]} of partition {partition} is never processed")
