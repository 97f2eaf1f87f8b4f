"""Three nodes of Apache Kafka become three of ours, one by one on their own folders, and back; under load."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from barnabas.testing.cluster import APACHE, BARNABAS, Cluster, ClusterNode
from barnabas.testing.waiting import wait_until
from cluster.replicated import QUIET, Writer, read

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.usefixtures("java"), pytest.mark.timeout(400)]
SETTINGS = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
}
TOPIC, PARTITIONS = "orders", 3


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster(combined=3, overrides=SETTINGS)
    for node in made.nodes.values():
        node.product = APACHE
    with made:
        yield made


class Load:
    """Writers that go on while nodes are replaced."""

    def __init__(self, cluster: Cluster) -> None:
        self.writers = [Writer(cluster.bootstrap, TOPIC, number) for number in range(PARTITIONS)]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stopping.wait(0.01):
            for writer in self.writers:
                writer.write()

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._thread.join()
        for writer in self.writers:
            writer.flush()


def wait_until_whole(cluster: Cluster, what: str) -> None:
    """All replicas are in sync, as a client sees it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})

    def is_whole() -> bool:
        found = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions.values()
        return len(found) == PARTITIONS and all(len(each.isrs) == 3 for each in found)

    wait_until(is_whole, 60, what=what)


def replace(cluster: Cluster, node: ClusterNode, product: str) -> None:
    node.stop()
    node.product = product
    node.start()
    wait_until_whole(cluster, f"node {node.id} is {product} and has caught up")


def test_a_cluster_changes_its_product_and_loses_nothing(cluster: Cluster) -> None:
    cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
    wait_until_whole(cluster, "the topic is there")
    with Load(cluster) as load:
        for product in (BARNABAS, APACHE):
            for node in cluster.nodes.values():
                replace(cluster, node, product)
                cluster.create_topic(f"{product}-{node.id}", 1, replication_factor=3)
    for number, writer in enumerate(load.writers):
        assert not writer.failed
        assert len(writer.acknowledged) == writer.sent > 0
        found = read(cluster.bootstrap, TOPIC, number, writer.sent)
        assert found == list(range(writer.sent))  # in order, each once
