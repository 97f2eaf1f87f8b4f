"""What tests of replicated partitions share: settings that notice the dead soon, writers, readers."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import PartitionMetadata

from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.waiting import wait_until

SOON = {
    "broker.session.timeout.ms": 2_000,
    "broker.heartbeat.interval.ms": 200,
    "replica.lag.time.max.ms": 4_000,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "unclean.leader.election.enable": "false",
}
QUIET = {"log_level": 0}


class Writer:
    """Numbers, one after the other, each of them acknowledged by all or known to have failed."""

    def __init__(self, bootstrap: str, topic: str, partition: int = 0, **settings: Any) -> None:
        self.topic, self.partition = topic, partition
        self.acknowledged: list[int] = []
        self.failed: list[str] = []
        self.sent = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                **QUIET,
                **settings,
            }
        )

    def write(self, count: int = 1, size: int = 0) -> None:
        """The next numbers, with spaces behind them up to a size."""
        for _ in range(count):
            value = str(self.sent).encode().ljust(size)
            self._producer.produce(self.topic, value, partition=self.partition, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.acknowledged.append(int(message.value()))

    def write_more(self, count: int, seconds: float = 30.0) -> None:
        """Write until so many more are acknowledged."""
        goal = len(self.acknowledged) + count

        def enough() -> bool:
            self.write()
            return len(self.acknowledged) >= goal

        wait_until(enough, seconds, what=lambda: f"{len(self.acknowledged)} of {goal} are acknowledged")

    def flush(self) -> None:
        assert self._producer.flush(30) == 0


def read(
    bootstrap: str, topic: str, partition: int, count: int, *, last: int | None = None, **settings: Any
) -> list[int]:
    """So many numbers from the start of a partition, and on until `last` was seen."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", **QUIET, **settings})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[int] = []

    def enough() -> bool:
        found.extend(int(each.value()) for each in consumer.consume(1000, 0.1) if each.error() is None)
        return len(found) >= count and (last is None or last in found)

    wait_until(enough, 20, what=lambda: f"{len(found)} of {count} records are there")
    consumer.close()
    return found


def metadata(cluster: Cluster, topic: str, partition: int = 0) -> PartitionMetadata:
    """As a broker that runs tells it, once it has heard of the partition."""
    running = ",".join(node.address for node in cluster.brokers if node.is_running)
    producer = Producer({"bootstrap.servers": running, **QUIET})
    found: dict[int, PartitionMetadata] = {}

    def is_known() -> bool:
        found.update(producer.list_topics(topic, timeout=10).topics[topic].partitions)
        return partition in found

    wait_until(is_known, what=f"a broker knows {topic}-{partition}")
    return found[partition]


def leader(cluster: Cluster, topic: str, partition: int = 0) -> ClusterNode:
    return cluster[metadata(cluster, topic, partition).leader]


def wait_for_isr(cluster: Cluster, topic: str, isr: set[int], partition: int = 0) -> None:
    wait_until(
        lambda: set(metadata(cluster, topic, partition).isrs) == isr,
        20,
        what=lambda: f"the ISR of {topic} is {metadata(cluster, topic, partition).isrs}, not {isr}",
    )


def log_bytes(node: ClusterNode, topic: str, partition: int = 0) -> bytes:
    """The records of a partition as they lie on a node's disk."""
    files = sorted((node.folder / f"{topic}-{partition}").glob("*.log"))
    return b"".join(file.read_bytes() for file in files)
