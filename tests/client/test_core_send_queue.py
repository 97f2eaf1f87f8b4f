"""Batches in flight: whatever fails on the way, a partition has each batch once and in order."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import pytest

from barnabas.client.core.errors import ClientError
from barnabas.client.core.send_queue import SendQueue
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

WHERE = TopicPartition("t", 0)
REFUSED = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
LOST = ClientError("lost")


@dataclass(eq=False)
class Batch:
    name: str
    count: int = 1
    where: TopicPartition = WHERE
    base_sequence: int | None = None


class Broker:
    """One partition that checks sequences as Kafka does."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []
        self._next = 0
        self._recent: deque[int] = deque(maxlen=5)

    def append(self, batch: Batch) -> bool:
        assert batch.base_sequence is not None
        if batch.base_sequence in self._recent:
            return True  # a duplicate
        if batch.base_sequence != self._next:
            return False  # out of order
        self._recent.append(batch.base_sequence)
        self._next += batch.count
        self.log.append((batch.name, batch.count))
        return True


@pytest.mark.parametrize("seed", range(200))
def test_each_batch_is_written_once_and_in_order(seed: int) -> None:
    rng = random.Random(seed)
    queue: SendQueue[Batch] = SendQueue(rng.choice([1, 2, 5]))
    broker = Broker()
    in_flight: deque[tuple[Batch, bool]] = deque()
    written = []
    batches = [Batch(f"{number}", rng.randrange(1, 4)) for number in range(40)]
    waiting = deque(batches)
    while waiting or not queue.is_empty():
        if waiting and rng.random() < 0.5:
            queue.append(waiting.popleft())
        for batch in queue.next_batches():
            queue.send(batch)
            reaches = rng.random() < 0.9  # else the request is lost before the broker has it
            in_flight.append((batch, reaches and rng.random() < 0.95 and broker.append(batch)))
        if in_flight and rng.random() < 0.7:
            batch, is_there = in_flight.popleft()
            if is_there and rng.random() < 0.9:  # else the response is lost
                if queue.acknowledged(batch):
                    written.append(batch)
            else:
                queue.failed(batch, REFUSED if rng.random() < 0.5 else LOST)
        for batch, _ in queue.failures():
            queue.send_again(batch.where)
    assert broker.log == [(batch.name, batch.count) for batch in batches]
    assert written == batches


def known(in_flight_max: int) -> SendQueue[Batch]:
    """A queue whose broker has a batch of this producer already."""
    queue: SendQueue[Batch] = SendQueue(in_flight_max)
    first = Batch("first", 0)
    queue.append(first)
    queue.send(first)
    queue.acknowledged(first)
    return queue


def test_a_broker_that_does_not_know_the_producer_gets_one_batch_first() -> None:
    """It would take the second one while it refuses the first, for example as too large."""
    queue: SendQueue[Batch] = SendQueue(5)
    first, second = Batch("a"), Batch("b")
    for batch in (first, second):
        queue.append(batch)
    queue.send(first)
    assert queue.next_of(WHERE) is None and list(queue.next_batches()) == []
    queue.acknowledged(first)
    assert queue.next_of(WHERE) is second


def test_only_so_many_are_in_flight() -> None:
    queue = known(2)
    for name in "abc":
        queue.append(Batch(name))
    sent = []
    while (batch := queue.next_of(WHERE)) is not None:
        queue.send(batch)
        sent.append(batch)
    assert [batch.name for batch in sent] == ["a", "b"]
    queue.acknowledged(sent[0])
    assert [batch.name for batch in queue.next_batches()] == ["c"]


def test_after_a_failure_nothing_goes_out_until_every_response_is_in() -> None:
    queue: SendQueue[Batch] = SendQueue(5)
    first, second, third = Batch("a", 3), Batch("b", 2), Batch("c")
    for batch in (first, second):
        queue.append(batch)
        queue.send(batch)
    queue.append(third)
    queue.failed(first, REFUSED)
    assert queue.next_of(WHERE) is None and queue.failures() == [] and queue.has_failures
    queue.failed(second, KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
    assert queue.failures() == [(first, REFUSED)], "the first failure counts"
    queue.send_again(WHERE)
    assert queue.next_of(WHERE) is first
    for batch in (first, second, third):
        queue.send(batch)
    assert [batch.base_sequence for batch in (first, second, third)] == [0, 3, 5]


def test_a_batch_that_is_cut_gives_its_sequence_to_its_parts() -> None:
    queue = known(5)
    batches = [Batch("a", 4), Batch("b", 2)]
    for batch in batches:
        queue.append(batch)
        queue.send(batch)
    for batch in batches:
        queue.failed(batch, KafkaError(ErrorCode.MESSAGE_TOO_LARGE))
    halves = [Batch("a1", 2), Batch("a2", 2)]
    queue.replace(WHERE, halves)
    queue.send_again(WHERE)
    sent = []
    while (next_one := queue.next_of(WHERE)) is not None:
        queue.send(next_one)
        sent.append((next_one.name, next_one.base_sequence))
    assert sent == [("a1", 0), ("a2", 2), ("b", 4)]


@pytest.mark.parametrize(("was_refused", "sequence"), [(True, 0), (False, 3)])
def test_a_batch_that_is_given_up_leaves_a_gap_only_if_it_may_be_written(
    was_refused: bool, sequence: int
) -> None:
    queue: SendQueue[Batch] = SendQueue(1)
    first, second = Batch("a", 3), Batch("b")
    queue.append(first)
    queue.append(second)
    queue.send(first)
    queue.failed(first, REFUSED if was_refused else LOST)
    queue.give_up(WHERE, was_refused=was_refused)
    assert queue.next_of(WHERE) is second
    queue.send(second)
    assert second.base_sequence == sequence


def test_sequences_go_on_when_the_queue_was_empty() -> None:
    queue: SendQueue[Batch] = SendQueue(1)
    for sequence in (0, 3, 6):
        batch = Batch("a", 3)
        queue.append(batch)
        queue.send(batch)
        assert batch.base_sequence == sequence
        assert queue.acknowledged(batch) and queue.is_empty()
