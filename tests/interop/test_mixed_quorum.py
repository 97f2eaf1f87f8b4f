"""One quorum, two products: our controller votes, leads and follows among Apache Kafka's; so do brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.client.admin.voters import VoterAddress
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.disk import REAL_DISK
from barnabas.storage.files import meta_properties
from barnabas.testing.cluster import APACHE, Cluster, ClusterNode
from barnabas.testing.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("java")]
ONE_REPLICA = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


def quorum(cluster: Cluster) -> Any:
    return cluster.ask(lambda admin: admin.describe_quorum())


def leader(cluster: Cluster) -> ClusterNode:
    found: list[int] = []

    def is_led() -> bool:
        found[:] = [quorum(cluster).leader_id]
        return found[0] >= 0 and cluster[found[0]].is_running

    wait_until(is_led, 60, what="a controller leads")
    return cluster[found[0]]


def check_topics(cluster: Cluster, wanted: set[str]) -> None:
    for node in cluster.brokers:
        client = Producer({"bootstrap.servers": node.address})
        wait_until(
            lambda client=client: wanted <= set(client.list_topics(timeout=10).topics),  # type: ignore[misc]
            what=f"broker {node.id} knows {sorted(wanted)}",
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Controllers: 101 is ours, 102 and 103 are Apache Kafka's. Brokers: 1 is ours, 2 is Apache Kafka's."""
    made = Cluster(brokers=2, controllers=3, overrides=ONE_REPLICA)
    for node_id in (102, 103, 2):
        made[node_id].product = APACHE
    with made:
        yield made


@pytest.mark.long
def test_every_voter_leads_in_its_turn_and_nothing_is_lost(cluster: Cluster) -> None:
    made: list[str] = []
    led: dict[int, None] = {}
    for turn in range(8):
        made.append(f"turn-{turn}")
        cluster.create_topic(made[-1], partitions=2)
        current = leader(cluster)
        led[current.id] = None
        if len(led) == 3:
            break
        current.kill()
        made.append(f"after-{turn}")
        cluster.create_topic(made[-1], partitions=2)
        current.start()
        wait_until(
            lambda: min(voter.log_end_offset for voter in quorum(cluster).voters) > 0,
            what="all voters follow",
        )
    assert 101 in led and len(led) >= 2, f"only {sorted(led)} came to lead"
    check_topics(cluster, set(made))


@pytest.mark.long
def test_clients_use_partitions_of_both_brokers(cluster: Cluster) -> None:
    cluster.create_topic("both", partitions=4)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    found = producer.list_topics("both", timeout=10).topics["both"].partitions
    assert {each.leader for each in found.values()} == {1, 2}
    for number in range(100):
        producer.produce("both", str(number).encode(), partition=number % 4)
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "mixed"})
    consumer.assign([TopicPartition("both", each, 0) for each in range(4)])
    seen: list[int] = []

    def all_seen() -> bool:
        seen.extend(int(m.value() or b"") for m in consumer.consume(100, 0.2) if m.error() is None)
        return len(seen) >= 100

    wait_until(all_seen, what=lambda: f"{len(seen)} of 100 records were read")
    consumer.close()
    assert sorted(seen) == list(range(100))


@pytest.mark.long
def test_brokers_of_both_products_leave_and_come_back_under_any_leader(cluster: Cluster) -> None:
    for node in cluster.brokers:
        node.stop()
        name = f"without-{node.id}"
        cluster_of_rest = [each for each in cluster.brokers if each is not node]
        client = Producer({"bootstrap.servers": cluster_of_rest[0].address})
        wait_until(
            lambda client=client, node=node: node.id not in client.list_topics(timeout=10).brokers,  # type: ignore[misc]
            what=f"broker {node.id} has left",
        )
        node.start()
        wait_until(
            lambda client=client: set(client.list_topics(timeout=10).brokers) == {1, 2},  # type: ignore[misc]
            what=f"broker {node.id} is back",
        )
        cluster.create_topic(name, partitions=2)


@pytest.mark.parametrize("first", ["barnabas", pytest.param(APACHE, marks=pytest.mark.long)])
def test_a_dynamic_quorum_takes_in_a_voter_of_the_other_product(first: str) -> None:
    made = Cluster(brokers=1, controllers=1, dynamic=True, overrides=ONE_REPLICA)
    made[101].product = first
    with made as cluster:
        joining = cluster.add_controller(102)
        joining.product = APACHE if first == "barnabas" else "barnabas"
        joining.start()
        wait_until(
            lambda: 102 in {each.id for each in quorum(cluster).observers}, 30, what="it observes the quorum"
        )
        identity = meta_properties.load(REAL_DISK, str(joining.folder))
        assert identity is not None and identity.directory_id is not None
        directory_id = identity.directory_id
        host, _, port = joining.address.partition(":")
        address = VoterAddress("CONTROLLER", host, int(port))

        def is_added() -> bool:
            try:
                cluster.ask(lambda admin: admin.add_voter(102, directory_id, [address]))
            except KafkaError as error:
                return error.code == ErrorCode.DUPLICATE_VOTER
            return True

        wait_until(is_added, 30, what="it is added")
        assert {voter.id for voter in quorum(cluster).voters} == {101, 102}
        cluster.create_topic("two-products")
        identity = meta_properties.load(REAL_DISK, str(cluster[101].folder))
        assert identity is not None and identity.directory_id is not None
        first_directory = identity.directory_id
        cluster.ask(lambda admin: admin.remove_voter(101, first_directory))
        wait_until(lambda: quorum(cluster).leader_id == 102, 30, what="the other product leads alone")
        cluster.create_topic("the-other")
