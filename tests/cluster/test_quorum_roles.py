"""Nodes with one role: brokers that follow a quorum elsewhere, a controller that is no broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

ONE_REPLICA = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, controllers=1, overrides=ONE_REPLICA) as running:
        yield running


def wait_for_leaders(cluster: Cluster, topic: str, wanted: set[int]) -> None:
    """Until every broker that runs knows them: each reads the metadata at its own pace."""
    for node in cluster.brokers:
        if not node.is_running:
            continue
        client = Producer({"bootstrap.servers": node.address})

        def leaders(client: Producer = client) -> set[int]:
            found = client.list_topics(topic, timeout=10).topics[topic]
            return {partition.leader for partition in found.partitions.values()}

        wait_until(lambda leaders=leaders: leaders() == wanted, what=f"{topic} is led by {wanted}")  # type: ignore[misc]


def test_partitions_of_two_brokers_are_produced_to_and_consumed_from(cluster: Cluster) -> None:
    cluster.create_topic("orders", partitions=4)
    wait_for_leaders(cluster, "orders", {1, 2})
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(100):
        producer.produce("orders", str(number).encode(), partition=number % 4)
    assert producer.flush(20) == 0
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    seen: list[int] = []

    def all_seen() -> bool:
        seen.extend(int(m.value() or b"") for m in consumer.consume(100, 0.2) if m.error() is None)
        return len(seen) >= 100

    wait_until(all_seen, what=lambda: f"a group has read {len(seen)} of 100 records")
    consumer.close()
    assert sorted(seen) == list(range(100))


def test_every_broker_passes_on_what_the_controller_decides(cluster: Cluster) -> None:
    for node in cluster.brokers:
        name = f"made-by-{node.id}"
        producer = Producer({"bootstrap.servers": node.address})
        producer.list_topics(name, timeout=10)  # creates it
        wait_until(
            lambda name=name, producer=producer: name in producer.list_topics(timeout=10).topics,  # type: ignore[misc]
            what=name,
        )


def test_a_broker_that_comes_back_has_read_what_it_missed(cluster: Cluster) -> None:
    cluster[2].stop()
    cluster.create_topic("meanwhile", partitions=2)
    wait_for_leaders(cluster, "meanwhile", {1})
    cluster[2].start()
    found = Producer({"bootstrap.servers": cluster[2].address}).list_topics(timeout=10)
    assert "meanwhile" in found.topics
    assert set(found.brokers) == {1, 2}


def test_brokers_go_on_with_a_controller_that_comes_back(cluster: Cluster) -> None:
    wait_for_leaders(cluster, "orders", {1, 2})
    cluster[101].kill()
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce("orders", b"100", partition=0)
    producer.produce("orders", b"101", partition=1)
    assert producer.flush(20) == 0  # brokers need no controller for that
    cluster[101].start()
    cluster.create_topic("afterwards", partitions=2)
    wait_for_leaders(cluster, "afterwards", {1, 2})


def test_a_node_that_waits_for_its_quorum_can_be_stopped(cluster: Cluster) -> None:
    waiting = cluster[2]
    waiting.stop()
    cluster[101].kill()
    waiting.spawn()
    wait_until(lambda: (waiting.folder / ".lock").exists(), what="it has begun")
    waiting.stop()
    assert not waiting.is_running
    cluster[101].start()
    waiting.start()
