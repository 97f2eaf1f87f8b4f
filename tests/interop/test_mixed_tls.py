"""Nodes of both products in one cluster, with mutual TLS between them, to controllers and to clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from barnabas.client.admin.topics import NewTopic
from barnabas.testing.cluster import APACHE, BARNABAS, Cluster
from barnabas.testing.waiting import wait_until
from cluster.replicated import SOON
from security.tls_world import certificates

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("java")]
NODES = {1, 2, 3}


@pytest.fixture(params=[BARNABAS, APACHE])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A controller of either product; broker 2 is Apache Kafka's, 1 and 3 are ours."""
    stores = certificates().stores
    settings = {
        **SOON,
        "broker.session.timeout.ms": 6_000,
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.client.auth": "required",
        **stores,
    }
    client = {"security.protocol": "SSL", **stores, "ssl.keystore.location": certificates().alice_file}
    made = Cluster(brokers=3, controllers=1, overrides=settings, client=client)
    made[101].product = request.param
    made[2].product = APACHE
    with made:
        yield made


def test_brokers_of_both_products_follow_each_other_over_tls(cluster: Cluster) -> None:
    topic = NewTopic("t", assignments=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    cluster.ask(lambda admin: admin.create_topic(topic))
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "security.protocol": "SSL",
            "ssl.ca.location": certificates().ca_file,
            "ssl.certificate.location": certificates().alice_file,
            "ssl.key.location": certificates().alice_file,
        }
    )
    failures: list[object] = []
    for number in range(300):
        producer.produce(
            "t", b"x" * 1000, partition=number % 3, on_delivery=lambda error, _: failures.append(error)
        )
    assert producer.flush(60) == 0 and not any(failures)

    def all_in_sync() -> bool:
        found = producer.list_topics("t", timeout=10).topics["t"].partitions
        return all(set(each.isrs) == NODES for each in found.values()) and [
            found[number].leader for number in range(3)
        ] == [1, 2, 3]

    wait_until(all_in_sync, 60)
