"""Nodes of both products in one cluster with SASL_SSL between all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.admin.topics import NewTopic
from barnabas.testing.cluster import APACHE, BARNABAS, Cluster
from cluster.replicated import Writer, log_bytes

from .locked_cluster import Work, librdkafka, locked_cluster, settings, wait_until_whole

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("java"), pytest.mark.timeout(400)]
LATER = settings(broker_session_timeout_ms=6_000, replica_lag_time_max_ms=10_000)


@pytest.fixture(
    scope="module",
    params=[BARNABAS, pytest.param(APACHE, marks=pytest.mark.long)],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A controller of either product; broker 1 is ours, 2 is Apache Kafka's."""
    made = locked_cluster(LATER | {"min.insync.replicas": 1}, brokers=2, controllers=1)
    made[101].product = request.param
    made[2].product = APACHE
    with made:
        yield made


def create(cluster: Cluster, name: str, *replicas: list[int]) -> None:
    cluster.ask(lambda admin: admin.create_topic(NewTopic(name, assignments=list(replicas))))
    wait_until_whole(cluster, name, len(replicas))


def test_replicas_of_both_products_hold_the_same_bytes(cluster: Cluster) -> None:
    create(cluster, "same", [1, 2], [2, 1])
    for partition in range(2):
        writer = Writer(cluster.bootstrap, "same", partition, **librdkafka())
        writer.write(200)
        writer.flush()
        assert writer.failed == []
        ours, theirs = (log_bytes(node, "same", partition) for node in cluster.brokers)
        assert len(ours) > 200 and ours == theirs


@pytest.mark.long
def test_a_leader_of_either_product_may_die(cluster: Cluster) -> None:
    create(cluster, "dies", [1, 2], [2, 1])
    with Work(cluster, "dies", 2) as work:
        for node in cluster.brokers:
            work.wait_until_it_goes_on()
            node.kill()
            work.wait_until_it_goes_on()
            node.start()
            wait_until_whole(cluster, "dies", 2)
    work.check()


@pytest.mark.long
def test_a_quorum_of_both_products_elects_any_of_them() -> None:
    made = locked_cluster(LATER, combined=3)
    for node_id in (2, 3):
        made[node_id].product = APACHE
    with made as cluster:
        cluster.create_topic("numbers", 3, replication_factor=3)
        with Work(cluster, "numbers", 3) as work:
            for node in cluster.nodes.values():
                work.wait_until_it_goes_on()
                node.kill()
                work.wait_until_it_goes_on()
                node.start()
                wait_until_whole(cluster, "numbers")
        work.check()
