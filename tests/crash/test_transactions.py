"""kill -9 of brokers and clients in the middle of transactions: all or nothing of each, and nothing hangs."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker
from broker.conversation import Conversation
from broker.transactional import end_offset, values_of

from .transactors import Fate, Transactor

SETTINGS = {
    "log.segment.bytes": "1048576",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}
MOVER = Path(__file__).with_name("mover.py")
PARTITIONS = 3
PROGRESS_TIMEOUT_S = 90.0

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--kills"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "data", overrides=SETTINGS, in_process=False) as made:
        yield made


def wait_for(progress: Callable[[], int], more: int) -> None:
    """Waits until a counter went up by so many."""
    goal = progress() + more
    deadline = time.monotonic() + PROGRESS_TIMEOUT_S
    while progress() < goal:
        assert time.monotonic() < deadline, f"stuck at {progress()}, {goal} wanted"
        time.sleep(0.002)


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
        broker.kill()
        broker.start()
    wait_for(ended, 20)
    for worker in workers:
        worker.stop()
    broker.kill()
    broker.start()
    for worker in workers:
        worker.finish()
    check_whole(broker, workers)


def check_whole(broker: Broker, workers: list[Transactor]) -> None:
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


class Filler(threading.Thread):
    """Numbers, one after the other, into the source."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1})
        self.topic = topic
        self.count = 0
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.producer.produce(self.topic, b"%d" % self.count, partition=self.count % PARTITIONS)
            self.count += 1
            self.producer.poll(0.001)

    def stop(self) -> None:
        self._stopping.set()
        self.join(60)
        assert self.producer.flush(60) == 0


class Mover:
    """The program that moves records, started again whenever it was killed."""

    def __init__(self, bootstrap: str) -> None:
        self.command = [sys.executable, str(MOVER), bootstrap, "source", "target", "mover"]
        self.moved = 0
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._counting = threading.Thread(target=self._count, args=(self.process.stdout,), daemon=True)
        self._counting.start()

    def _count(self, lines: TextIO) -> None:
        with lines:
            for line in lines:
                self.moved += int(line)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._counting.join()

    def start_again(self) -> None:
        self.kill()
        self._start()


def test_each_input_is_once_in_the_output_whoever_is_killed(broker: Broker, kills: int) -> None:
    for topic in ("source", "target"):
        broker.create_topic(topic, PARTITIONS)
    rng = random.Random(41)
    filler = Filler(broker.bootstrap, "source")
    filler.start()
    mover = Mover(broker.bootstrap)
    try:
        for _ in range(kills):
            wait_for(lambda: mover.moved, rng.randrange(1, 100))
            if rng.random() < 0.5:
                broker.kill()
                broker.start()
            else:
                mover.start_again()
        wait_for(lambda: mover.moved, 20)
        filler.stop()
        wanted = Counter(b"%d" % number for number in range(filler.count))
        deadline = time.monotonic() + PROGRESS_TIMEOUT_S
        with Conversation(broker) as talk:
            while (found := outputs(talk)) != wanted:
                twice = [value for value, count in found.items() if count > 1]
                assert not twice, f"more than once in the output: {twice[:5]}"
                assert time.monotonic() < deadline, f"{len(found)} of {len(wanted)} arrived"
                time.sleep(0.1)
    finally:
        mover.kill()


def outputs(talk: Conversation) -> Counter[bytes]:
    return Counter(value for index in range(PARTITIONS) for value in values_of(talk, "target", index))
