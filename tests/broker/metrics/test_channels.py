"""Metrics of nodes about each other: channels by purpose, forwarded requests, reassignments."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from barnabas.client.admin.reassignments import ReassignmentAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.testing.cluster import Cluster
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

Page = dict[str, dict[frozenset[tuple[str, str]], float]]
NODES = (1, 2, 3)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes that are brokers and controllers, each with a metrics port."""
    made = Cluster(combined=3)
    for node, port in zip(made.nodes.values(), free_ports(3), strict=True):
        node.properties["barnabas.metrics.port"] = str(port)
    with made:
        yield made


def page(cluster: Cluster, node_id: int) -> Page:
    port = cluster[node_id].properties["barnabas.metrics.port"]
    found: Page = {}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        for family in text_string_to_metric_families(answer.read().decode()):
            for sample in family.samples:
                found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def total(found: Page, name: str) -> float:
    return sum(found[name].values())


def active(cluster: Cluster) -> int:
    [found] = [
        node_id
        for node_id in NODES
        if total(page(cluster, node_id), "kafka_controller_kafkacontroller_activecontrollercount")
    ]
    return found


def test_a_node_counts_its_requests_to_others_by_purpose(cluster: Cluster) -> None:
    leader = active(cluster)
    follower = next(node_id for node_id in NODES if node_id != leader)
    found = page(cluster, follower)
    tags = frozenset({("BrokerId", str(follower))})
    heartbeats = "kafka_server_heartbeat_metrics_"
    for name in ("connection_count", "connection_creation_total"):
        assert found[heartbeats + name][tags] == 1
    assert found[heartbeats + "request_total"][tags] >= 2  # its registration, and heartbeats
    sent = found[heartbeats + "outgoing_byte_total"][tags]
    assert (
        sent
        > found[heartbeats + "request_size_max"][tags]
        > found[heartbeats + "request_size_avg"][tags]
        > 20
    )
    assert total(found, "kafka_server_raft_channel_metrics_response_total") > 2
    assert total(found, "kafka_server_raft_channel_metrics_connection_count") >= 1
    for purpose in ("Persister_channel", "txn_marker_channel", "AddPartitionsManager_channel"):
        assert total(found, f"kafka_server_{purpose.lower()}_metrics_request_total") == 0
    at_home = page(cluster, leader)  # it is its own controller
    assert total(at_home, heartbeats + "request_total") <= found[heartbeats + "request_total"][tags]


def test_a_forwarded_request_counts_with_its_time(cluster: Cluster) -> None:
    leader = active(cluster)
    follower = next(node_id for node_id in NODES if node_id != leader)
    before = page(cluster, follower)
    admin = AdminClient({"bootstrap.servers": cluster[follower].address})
    names = [f"forwarded-{number}" for number in range(20)]
    for name in names:  # a client may choose any broker: one in three is this one
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    pages = {node_id: page(cluster, node_id) for node_id in NODES}
    others = [pages[node_id] for node_id in NODES if node_id != leader]
    forwarded = sum(total(found, "kafka_server_forwarding_metrics_request_total") for found in others)
    assert forwarded > total(before, "kafka_server_forwarding_metrics_request_total")
    assert max(total(found, "kafka_server_forwardingmanager_remotetimems_p99") for found in others) > 0
    assert total(pages[follower], "kafka_server_forwardingmanager_queuelength") == 0


def test_markers_of_a_transaction_and_its_verifications_have_channels(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("paid", 12, 3)])["paid"].result(30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "till"})
    producer.init_transactions(60)
    for _ in range(3):
        producer.begin_transaction()
        for partition in range(12):
            producer.produce("paid", b"1", partition=partition)
        producer.commit_transaction(60)
    pages = [page(cluster, node_id) for node_id in NODES]
    marked = [total(found, "kafka_server_txn_marker_channel_metrics_request_total") for found in pages]
    assert sum(marked) >= 3 and 0 in marked  # the coordinator sends them
    assert (
        sum(total(found, "kafka_server_txn_marker_channel_metrics_connection_count") for found in pages) == 2
    )
    waits = "kafka_server_transaction_coordinator_metrics_event_purgatory_time_ms_max"
    assert max(total(found, waits) for found in pages) > 0


def test_bytes_of_added_replicas_count_as_those_of_a_reassignment(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("moved", 1, replica_assignment=[[1]])])["moved"].result(30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for _ in range(100):
        producer.produce("moved", b"x" * 1000)
    assert producer.flush(30) == 0
    bytes_in, bytes_out = (
        f"kafka_server_brokertopicmetrics_reassignmentbytes{way}_total" for way in ("in", "out")
    )
    before = [page(cluster, node_id) for node_id in NODES]
    assert all(total(found, name) == 0 for found in before for name in (bytes_in, bytes_out))
    with_client = WorkerCluster(ClientSettings(cluster.bootstrap))
    where = TopicPartition("moved", 0)
    try:
        answers = run(ReassignmentAdmin(with_client).alter_reassignments({where: [1, 2]}))
        assert answers == {where: None}
        wait_until(lambda: total(page(cluster, 2), bytes_in) > 100_000)
        wait_until(lambda: reassigning(cluster) == 0)
        moved = total(page(cluster, 2), bytes_in)
        assert total(page(cluster, 1), bytes_out) == moved
        assert total(page(cluster, 3), bytes_in) == 0
        for _ in range(100):
            producer.produce("moved", b"x" * 1000)
        assert producer.flush(30) == 0
        replicated = "kafka_server_brokertopicmetrics_replicationbytesin_total"
        wait_until(lambda: total(page(cluster, 2), replicated) > moved + 100_000)
        assert total(page(cluster, 2), bytes_in) == moved  # it is an ordinary replica now
    finally:
        run(with_client.close())


def reassigning(cluster: Cluster) -> float:
    return sum(
        total(page(cluster, node_id), "kafka_server_replicamanager_reassigningpartitions")
        for node_id in NODES
    )
