"""Ten thousand partitions in a cluster of three: the time until they have leaders, and are in sync, again.

In: an idle contender. Out: the values of its rows: from kill -9 of a broker that leads a third of the
partitions until each of these has accepted a record; from the start of that broker until it is in sync
everywhere, after the kill and after an orderly stop; the processor at rest. The producer uses `acks=1`:
Apache Kafka handles the requests of a connection one after the other, and with so many partitions it takes
tenths of a second to respond with `acks=all` (26 minutes for a record in each partition, on two busy cores).
Does not know: which broker it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import PartitionMetadata

from barnabas.testing.waiting import wait_until
from bench.rows import Better, Row

if TYPE_CHECKING:
    from bench.cluster import Contender

TOPICS, PARTITIONS, REPLICAS = 10, 1_000, 3
NO_LEADER = -1
PATIENCE_S = 900.0  # Apache Kafka writes some thirty first records a second on two cores
LOOK_S = 0.1
SETTLE_S = 5.0  # work that a start leaves behind does not count as rest
PRODUCER = {
    "acks": "1",
    "linger.ms": 0,
    "log_level": 0,
    "message.timeout.ms": int(PATIENCE_S * 1000),
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
}
ROWS = (
    Row("many-idle", "10,000 partitions: processor at rest", "%", Better.LESS, 1.0),
    Row(
        "many-failover",
        "10,000 partitions: kill -9 of a leader until all take records",
        "s",
        Better.LESS,
        1.0,
    ),
    Row("many-recovery", "10,000 partitions: start after that until in sync", "s", Better.LESS, 1.0),
    Row("many-restart", "10,000 partitions: start after a stop until in sync", "s", Better.LESS, 1.0),
)
Said = Callable[[str], None]


class ManyPartitions:
    """The topics of a cluster, with leaders and in-sync replicas from one broker's metadata."""

    def __init__(self, cluster: Contender) -> None:
        self._cluster = cluster
        self._topics = [f"many-{number}" for number in range(TOPICS)]

    def create(self) -> None:
        for topic in self._topics:
            self._cluster.create(topic, partitions=PARTITIONS)
        self.wait_until_in_sync()
        self.write([(topic, number) for topic in self._topics for number in range(PARTITIONS)])

    def led_by(self, node_id: int) -> list[tuple[str, int]]:
        admin = self._cluster.admin()
        return [
            (topic, number)
            for topic in self._topics
            for number, found in admin.list_topics(topic, timeout=30).topics[topic].partitions.items()
            if found.leader == node_id
        ]

    def wait_until_in_sync(self) -> None:
        self._wait_until(lambda found: len(found.isrs) == REPLICAS, "in sync")

    def wait_until_led_without(self, node_id: int) -> None:
        self._wait_until(lambda found: found.leader not in (node_id, NO_LEADER), "led by others")

    def _wait_until(self, holds: Callable[[PartitionMetadata], bool], what: str) -> None:
        """Wait for one topic after the other, so that each look is cheap."""
        admin, pause = self._cluster.admin(), threading.Event()

        def is_so(topic: str) -> bool:
            found = admin.list_topics(topic, timeout=30).topics[topic].partitions
            if len(found) == PARTITIONS and all(map(holds, found.values())):
                return True
            return pause.wait(LOOK_S)

        for topic in self._topics:
            wait_until(partial(is_so, topic), PATIENCE_S, f"{topic} is {what}")

    def until_in_sync_after(self, start: Callable[[], object]) -> float:
        began = time.monotonic()
        start()
        self.wait_until_in_sync()
        return time.monotonic() - began

    def write(self, places: list[tuple[str, int]]) -> None:
        """Write a record to each of these partitions."""
        left = dict.fromkeys(places)
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap, **PRODUCER})

        def done(error: object, message: Message) -> None:
            if error is None:
                left.pop((message.topic(), message.partition()), None)

        def is_written() -> bool:
            for topic, number in list(left):  # repeats records that failed when a broker ended
                with suppress(KafkaException):  # the broker does not know the topic yet
                    producer.produce(topic, b"x" * 100, partition=number, on_delivery=done)
                producer.poll(0)
            producer.flush(PATIENCE_S)
            return not left

        wait_until(is_written, PATIENCE_S, lambda: f"{len(left)} records are not written")


def measure(cluster: Contender, idle: Callable[[], float], said: Said) -> dict[str, list[float]]:
    many = ManyPartitions(cluster)
    said("making 10,000 partitions")
    many.create()
    said("10,000 partitions at rest")
    threading.Event().wait(SETTLE_S)
    values = {"many-idle": [idle()]}
    active = cluster.active_controller()
    for victim in [node_id for node_id in sorted(cluster.nodes) if node_id != active]:
        node, led = cluster.nodes[victim], many.led_by(victim)
        said(f"kill -9 of the leader of {len(led)} partitions")
        began = time.monotonic()
        node.kill()
        many.wait_until_led_without(victim)
        many.write(led)
        values.setdefault("many-failover", []).append(time.monotonic() - began)
        said("its start")
        values.setdefault("many-recovery", []).append(many.until_in_sync_after(node.start))
    said("restart of a node")
    node.stop()
    values["many-restart"] = [many.until_in_sync_after(node.start)]
    return values
