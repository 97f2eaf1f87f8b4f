"""No transaction hangs: whatever overtakes whatever, a partition has none open that its coordinator ended.

A producer, its coordinator and one partition exchange messages that arrive in any order, late or twice. What
is random is when; the rules are those of `ProducerStates`, and a coordinator in a few lines.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from barnabas.protocol import KafkaError
from barnabas.records.batch import BatchHeader
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.records.record import Record, build_batch
from barnabas.replication.producers import ProducerStates
from barnabas.replication.verification import ONGOING, Verification

PRODUCER = 7
STEPS = 400


class World:
    def __init__(self, seed: int, transaction_version: int) -> None:
        self.rng = random.Random(seed)
        self.version = transaction_version
        self.states = ProducerStates()
        self.on_their_way: list[Callable[[], None]] = []
        # The coordinator.
        self.epoch = 0
        self.is_open = self.is_ending = self.is_added = False
        # The client, which may be a while behind.
        self.client_epoch = 0
        self.appended = self.kept_out = 0

    def later(self, what: Callable[[], None]) -> None:
        self.on_their_way.append(what)

    # The client

    def send(self) -> None:
        """The next batch, or one that was refused once more."""
        epoch, state = self.client_epoch, self.states.get(PRODUCER)
        sequence = state.next_sequence if state is not None and state.producer_epoch == epoch else 0
        for _ in range(self.rng.choice([1, 1, 1, 2])):  # sent again before there was an answer
            self.later(lambda: self.receive(epoch, sequence))

    def add(self) -> None:
        """The older flow: partitions are added before they are written to."""
        epoch = self.client_epoch
        self.later(lambda: self.begin(epoch))

    def end(self, *, by_timeout: bool) -> None:
        """The client ends its transaction, or the coordinator gives it up: others hear of it later."""
        if not self.is_open or self.is_ending or self.epoch > 30_000:
            return
        self.is_open, self.is_ending = False, True
        if self.version == 2 or by_timeout:
            self.epoch += 1
        epoch = self.epoch
        for _ in range(self.rng.choice([1, 1, 2])):
            self.later(lambda: self.write_marker(epoch))
        self.later(lambda: self.hear(epoch))

    def hear(self, epoch: int) -> None:
        self.client_epoch = max(self.client_epoch, epoch)

    # The coordinator

    def begin(self, epoch: int) -> bool:
        if epoch != self.epoch or self.is_ending:
            return False
        self.is_open = self.is_added = True
        return True

    def answer(self, epoch: int) -> bool:
        if self.version == 2:
            return self.begin(epoch)
        return epoch == self.epoch and self.is_open and self.is_added

    # The partition

    def receive(self, epoch: int, sequence: int) -> None:
        try:
            started = self.states.start_verification(
                PRODUCER, sequence, epoch, bumps_epoch=self.version == 2, now_ms=0
            )
        except KafkaError:
            return
        if started is None:
            self.append(epoch, sequence, ONGOING)
        else:
            self.later(lambda: self.ask(epoch, sequence, started))

    def ask(self, epoch: int, sequence: int, started: Verification) -> None:
        if self.answer(epoch):
            self.later(lambda: self.append(epoch, sequence, started))

    def append(self, epoch: int, sequence: int, verification: Verification) -> None:
        header = BatchHeader(
            build_batch(
                [Record(timestamp=1)],
                base_offset=self.states.end_offset,
                producer_id=PRODUCER,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=True,
            )
        )
        try:
            if self.states.check(header, verification) is None:
                self.states.apply(header)
                self.appended += 1
        except KafkaError:
            self.kept_out += 1

    def write_marker(self, epoch: int) -> None:
        marker = build_end_marker(EndMarker(True, 0), PRODUCER, epoch, 1, base_offset=self.states.end_offset)
        header = BatchHeader(marker)
        try:
            self.states.check_marker(header, 0, self.version)
        except KafkaError:
            return
        self.states.apply_marker(header, 0, aborted=True)
        if epoch == self.epoch and self.is_ending:
            self.is_ending = self.is_added = False

    # What holds

    def check(self) -> None:
        if self.states.has_ongoing_transaction(PRODUCER):
            assert self.is_open or self.is_ending, "a transaction is open that nobody will end"

    def run(self) -> None:
        for _ in range(STEPS):
            chance = self.rng.random()
            if chance < 0.25:
                self.send()
            elif chance < 0.35 and self.version < 2:
                self.add()
            elif chance < 0.45:
                self.end(by_timeout=self.rng.random() < 0.5)
            elif self.on_their_way:
                self.on_their_way.pop(self.rng.randrange(min(len(self.on_their_way), 6)))()
            self.check()
        while self.on_their_way or self.is_open:
            self.end(by_timeout=True)
            while self.on_their_way:
                self.on_their_way.pop(self.rng.randrange(len(self.on_their_way)))()
                self.check()
        assert not self.states.has_ongoing_transaction(PRODUCER)


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_a_partition_has_no_transaction_open_that_its_coordinator_has_ended(transaction_version: int) -> None:
    worlds = [World(seed, transaction_version) for seed in range(150)]
    for world in worlds:
        world.run()
    assert sum(world.appended for world in worlds) > 500
    assert sum(world.kept_out for world in worlds) > 50, "nothing ever came too late"
