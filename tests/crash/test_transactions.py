"""kill -9 of brokers and clients in the middle of transactions: all or nothing of each, and nothing hangs."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from barnabas.testing import Broker
from broker.conversation import Conversation
from broker.transactional import end_offset, values_of

from .progress import kill_and_start, wait_for
from .transactors import TRANSACTIONAL, Fate, Transactor

SETTINGS = TRANSACTIONAL
PARTITIONS = 3

pytestmark = pytest.mark.timeout(1200)


def test_transactions_are_whole_wherever_the_broker_is_killed(broker: Broker, kills: int) -> None:
    broker.create_topic("work", PARTITIONS)
    rng = random.Random(14)
    workers = [Transactor(broker, number, "work", PARTITIONS) for number in range(4)]
    for worker in workers:
        worker.start()

    def ended() -> int:
        assert not [worker.failure for worker in workers if worker.failure]
        return sum(worker.ended for worker in workers)

    for _ in range(kills):
        wait_for(ended, rng.randrange(1, 200))
        kill_and_start(broker)
    wait_for(ended, 20)
    for worker in workers:
        worker.stop()
    kill_and_start(broker)
    for worker in workers:
        worker.finish()
    refuse_while_truncating(broker, workers)


def refuse_while_truncating(broker: Broker, workers: list[Transactor]) -> None:
    with Conversation(broker) as talk:
        found = [Counter(values_of(talk, "work", index)) for index in range(PARTITIONS)]
        for index in range(PARTITIONS):
            assert end_offset(talk, "work", index, committed=True) == end_offset(talk, "work", index)
    for worker in workers:
        for number, fate in worker.fates.items():
            seen = [counted[b"%d/%d" % (worker.number, number)] for counted in found]
            if fate is Fate.COMMITTED:
                assert seen == [1] * PARTITIONS, f"{worker.number}/{number} was committed, {seen} are seen"
            elif fate is Fate.ABORTED:
                assert seen == [0] * PARTITIONS, f"{worker.number}/{number} was aborted, {seen} are seen"
            else:
                assert seen in ([0] * PARTITIONS, [1] * PARTITIONS), f"of {worker.number}/{number}: {seen}"
