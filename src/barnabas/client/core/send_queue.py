"""Batches on their way to partitions: in order, several of a partition in flight, each written once.

In: batches in the order in which they are to be written, and what became of each request. Out: which batch
may go out next, with its sequence number; which partitions must be sent again. After a failure nothing more
of the partition goes out until every response is in; then the rest is sent again from the first batch on.
Batches keep their sequence numbers, so that a broker recognizes those that it has. A broker that does not
know the producer takes any sequence, so a partition has one batch in flight until its first response: if that
batch were refused, the next one would be written before it.
Does not know: leaders, connections, records, the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.records.batch import increment_sequence

Failure = KafkaError | ClientError


class Outgoing(Protocol):
    """The properties of a batch that the queue needs."""

    base_sequence: int | None

    @property
    def where(self) -> TopicPartition: ...

    @property
    def count(self) -> int:
        """How many records it holds; final when it is sent."""


B = TypeVar("B", bound=Outgoing)


class _Line(Generic[B]):
    """The batches of one partition: the first `sent` went out since the last failure."""

    __slots__ = ("batches", "failure", "in_flight", "sent")

    def __init__(self) -> None:
        self.batches: deque[B] = deque()
        self.sent = 0
        self.in_flight = 0  # responses that are expected
        self.failure: Failure | None = None  # the first one: later ones may only follow from it


class SendQueue(Generic[B]):
    def __init__(self, in_flight_max: int) -> None:
        self._in_flight_max = in_flight_max
        self._lines: dict[TopicPartition, _Line[B]] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._is_known: set[TopicPartition] = set()  # whose broker has a batch of this producer

    def append(self, batch: B) -> None:
        self._lines.setdefault(batch.where, _Line()).batches.append(batch)

    def last_unsent(self, partition: TopicPartition) -> B | None:
        """The batch to which records may still be added."""
        line = self._lines.get(partition)
        return line.batches[-1] if line is not None and line.sent < len(line.batches) else None

    def next_of(self, partition: TopicPartition) -> B | None:
        """The batch of a partition that may go out now."""
        line = self._lines.get(partition)
        return self._next_in(partition, line) if line is not None else None

    def next_batches(self) -> Iterator[B]:
        """The batch of each partition that may go out now."""
        for partition, line in list(self._lines.items()):
            batch = self._next_in(partition, line)
            if batch is not None:
                yield batch

    def _next_in(self, partition: TopicPartition, line: _Line[B]) -> B | None:
        in_flight_max = self._in_flight_max if partition in self._is_known else 1
        if line.failure is not None or line.in_flight >= in_flight_max:
            return None
        return line.batches[line.sent] if line.sent < len(line.batches) else None

    def all_batches(self) -> list[B]:
        """Everything that is not acknowledged, oldest first within a partition."""
        return [batch for line in self._lines.values() for batch in line.batches]

    def is_empty(self) -> bool:
        return not self._lines

    # -- what became of batches ------------------------------------------------------------------

    def send(self, batch: B) -> None:
        """The batch goes out: from now on it has a sequence number."""
        line = self._lines[batch.where]
        assert line.batches[line.sent] is batch, "batches of a partition go out in order"
        line.sent += 1
        line.in_flight += 1
        if batch.base_sequence is None:
            batch.base_sequence = self._sequences.get(batch.where, 0)
            self._sequences[batch.where] = increment_sequence(batch.base_sequence, batch.count)

    def acknowledged(self, batch: B) -> bool:
        """The broker has the batch. False: an earlier one failed, so this one will be sent again."""
        line = self._lines[batch.where]
        line.in_flight -= 1
        if line.failure is not None:
            return False
        assert line.batches[0] is batch, "brokers respond in order"
        self._is_known.add(batch.where)
        line.sent -= 1
        self._pop(batch.where, line)
        return True

    def failed(self, batch: B, failure: Failure) -> None:
        """The batch was refused, or nobody knows whether it was written."""
        line = self._lines[batch.where]
        line.in_flight -= 1
        line.failure = line.failure or failure

    def block(self, partition: TopicPartition, failure: Failure) -> None:
        """The next batch of the partition cannot go out."""
        line = self._lines[partition]
        line.failure = line.failure or failure

    @property
    def has_failures(self) -> bool:
        return any(line.failure is not None for line in self._lines.values())

    def failures(self) -> list[tuple[B, Failure]]:
        """The first batch of each partition that failed and whose responses are all in."""
        return [
            (line.batches[0], line.failure)
            for line in self._lines.values()
            if line.failure is not None and not line.in_flight
        ]

    def send_again(self, partition: TopicPartition) -> None:
        """Everything of the partition may go out again, from its first batch on."""
        line = self._lines[partition]
        assert not line.in_flight
        line.sent, line.failure = 0, None

    def give_up(self, partition: TopicPartition, *, was_refused: bool) -> None:
        """Drop the first batch. One that the broker refused left no gap in the sequence."""
        line = self._lines[partition]
        if was_refused:
            self._renumber(partition, line)
        line.sent, line.failure = 0, None
        self._pop(partition, line)

    def replace(self, partition: TopicPartition, batches: Iterable[B]) -> None:
        """Others in place of the first batch, which was refused and so were all behind it."""
        line = self._lines[partition]
        self._renumber(partition, line)
        line.batches.popleft()
        line.batches.extendleft(reversed(list(batches)))

    def _renumber(self, partition: TopicPartition, line: _Line[B]) -> None:
        first = line.batches[0].base_sequence
        if first is not None:
            self._sequences[partition] = first
            for batch in line.batches:
                batch.base_sequence = None

    def _pop(self, partition: TopicPartition, line: _Line[B]) -> None:
        line.batches.popleft()
        if not line.batches and not line.in_flight:
            del self._lines[partition]
