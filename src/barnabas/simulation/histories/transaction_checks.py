"""What must be true of transactions: a model that producers and readers feed with what they see.

In: transactions begun, written to, ended; producers initialized; records read. Out: `Wrong` when a part of a
transaction is missing, something of an aborted or open one is seen, an older epoch is listened to after a
newer one was given out, or an input was processed twice or never. Does not know: requests, retries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from barnabas.simulation.world.history import Wrong


class Outcome(Enum):
    OPEN = "open"  # nobody has asked to commit it
    COMMITTING = "committing"  # asked for, and nobody knows what became of it
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Transaction:
    number: int
    values: list[bytes] = field(default_factory=list)
    outcome: Outcome = Outcome.OPEN

    def value(self, text: str) -> bytes:
        """A value of its own, by which readers know it."""
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
        """A reader of committed records was given this."""
        transaction = self._of(value)
        if transaction.outcome in (Outcome.OPEN, Outcome.ABORTED):
            raise Wrong(f"{value!r} is seen, of a transaction that is {transaction.outcome.value}")

    def compare(self, found: Iterable[bytes]) -> None:
        """Everything that a reader of committed records finds in the end."""
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
    """The newest producer id and epoch of each transactional id that somebody was given."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}

    def newest(self, transactional_id: str) -> tuple[int, int]:
        return self._newest.get(transactional_id, (-1, -1))

    def given(self, transactional_id: str, newest_before: tuple[int, int], producer: tuple[int, int]) -> None:
        """A producer was given this by an InitProducerId that it sent when `newest_before` was known."""
        if is_older(producer, newest_before) or producer == newest_before:
            raise Wrong(f"{transactional_id}: {producer} is given out after {newest_before}")
        self.moved(transactional_id, producer)

    def moved(self, transactional_id: str, producer: tuple[int, int]) -> None:
        """The end of a transaction gave its producer the next epoch (KIP-890)."""
        if not is_older(producer, self.newest(transactional_id)):
            self._newest[transactional_id] = producer

    def accepted(
        self, transactional_id: str, newest_before: tuple[int, int], producer: tuple[int, int], what: str
    ) -> None:
        if is_older(producer, newest_before):
            raise Wrong(f"{transactional_id}: {what} of {producer} is taken after {newest_before}")


def is_older(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a producer id and epoch come before others of the same transactional id."""
    return one < other


class Inputs:
    """A loop that consumes, transforms and produces: each input once in the output."""

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
