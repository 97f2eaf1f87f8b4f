"""Three nodes under load while they are killed, paused and wiped: nothing acknowledged is lost, nothing is
there twice, transactions are whole. `--soak-seconds` makes it long."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

SOON = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}
QUIET = {"log_level": 0, "socket.timeout.ms": 10_000}
TOPIC, MOVED = "numbers", "moved"
DELIVERY_MS = 120_000


class Numbers:
    """An idempotent producer that counts, and knows what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[int] = []
        self.failed: list[str] = []
        self.gap_s = 0.0
        self._last = time.monotonic()
        self._is_over = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "message.timeout.ms": DELIVERY_MS,
                **QUIET,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            self._producer.produce(TOPIC, str(number).encode(), partition=0, on_delivery=self._told)
            number += 1
            self._producer.poll(0.002)
        self._producer.flush(DELIVERY_MS / 1000)

    def _told(self, error: object, message: object) -> None:
        now = time.monotonic()
        if error is not None:
            self.failed.append(str(error))
            return
        self.gap_s = max(self.gap_s, now - self._last)
        self._last = now
        self.acknowledged.append(int(message.value()))  # type: ignore[attr-defined]

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(DELIVERY_MS / 1000)


class Transactions:
    """Pairs of records in transactions; a pair that was told to be committed must be there, whole."""

    def __init__(self, bootstrap: str) -> None:
        self.committed: list[int] = []
        self._bootstrap = bootstrap
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number, producer = 0, None
        while not self._is_over.is_set():
            try:
                if producer is None:
                    producer = Producer(
                        {"bootstrap.servers": self._bootstrap, "transactional.id": "pairs", **QUIET}
                    )
                    producer.init_transactions(30)
                producer.begin_transaction()
                for half in ("a", "b"):
                    producer.produce(MOVED, f"{number} {half}".encode(), partition=0)
                producer.commit_transaction(30)
                self.committed.append(number)
            except KafkaException:
                producer = None  # nobody knows what became of it: another number
            number += 1

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(DELIVERY_MS / 1000)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(combined=3, overrides=SOON) as running:
        yield running


def read_all(cluster: Cluster, topic: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    where = TopicPartition(topic, 0, 0)
    consumer.assign([where])
    found: list[bytes] = []

    def is_at_end() -> bool:
        found.extend(m.value() or b"" for m in consumer.consume(5000, 0.5) if m.error() is None)
        positions = consumer.position([where])
        return positions[0].offset >= consumer.get_watermark_offsets(where, timeout=10)[1]

    wait_until(is_at_end, 90, what=lambda: f"{len(found)} records of {topic} are read")
    consumer.close()
    return found


def in_sync(cluster: Cluster) -> bool:
    async def ask(admin: object) -> bool:
        described = await admin.describe_topics([TOPIC, MOVED])  # type: ignore[attr-defined]
        return all(len(p.isr) == 3 for topic in described for p in topic.partitions)

    return bool(cluster.ask(ask))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nothing_acknowledged_is_lost_while_nodes_are_killed_and_paused(
    cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    seconds = request.config.getoption("--soak-seconds")
    rng = random.Random(7)
    for topic in (TOPIC, MOVED):
        cluster.create_topic(topic, replication_factor=3)
    numbers, pairs = Numbers(cluster.bootstrap), Transactions(cluster.bootstrap)
    wait_until(lambda: len(numbers.acknowledged) > 100 and len(pairs.committed) > 2, 60, what="load")
    deadline = time.monotonic() + seconds
    turn = 0
    while turn < 2 or time.monotonic() < deadline:
        node = cluster[rng.randrange(1, 4)]
        before = len(numbers.acknowledged)
        if turn % 2:
            node.pause()
        else:
            node.kill()
        wait_until(lambda before=before: len(numbers.acknowledged) > before + 50, 60, what="goes on")  # type: ignore[misc]
        if turn % 2:
            node.resume()
        else:
            node.start()
        wait_until(lambda: in_sync(cluster), 60, what="all replicas are in sync again")
        turn += 1
    numbers.stop()
    pairs.stop()
    assert numbers.failed == []
    found = [int(value) for value in read_all(cluster, TOPIC)]
    assert found == sorted(set(found)), "duplicates, or out of order"
    assert set(numbers.acknowledged) <= set(found)
    halves = [value.decode() for value in read_all(cluster, MOVED)]
    assert len(halves) == len(set(halves))
    numbers_found = {text.split()[0] for text in halves}
    assert all({f"{number} a", f"{number} b"} <= set(halves) for number in numbers_found)
    assert {str(number) for number in pairs.committed} <= numbers_found
    print(f"{turn} faults, {len(found)} records, longest gap {numbers.gap_s:.1f} s")
