"""The leader dies after writing and before answering: without idempotence the record is there twice, with it
once. Back again, the old leader cuts off what nobody else had, and leads again when it is told to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from barnabas.client.admin.topics import NewTopic
from barnabas.testing.cluster import Cluster
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation, batch, produce
from cluster.replicated import QUIET, SOON, log_bytes, metadata, read, wait_for_isr

from .proxy import Proxy

pytestmark = pytest.mark.timeout(300)
FIRST = 1
MAP = "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT"


@pytest.fixture(scope="module")
def cluster_and_proxy() -> Iterator[tuple[Cluster, Proxy]]:
    """Clients reach broker 1 through the proxy; brokers among each other do not need it."""
    cluster = Cluster(brokers=3, overrides={**SOON, "auto.leader.rebalance.enable": "false"})
    ports = free_ports(len(cluster.brokers))
    with Proxy(f"127.0.0.1:{ports[0]}") as proxy:
        for node, port in zip(cluster.brokers, ports, strict=True):
            own = node.properties["listeners"]
            clients = proxy.address if node.id == FIRST else f"127.0.0.1:{port}"
            node.properties |= {
                "listeners": f"CLIENTS://127.0.0.1:{port},{own}",
                "advertised.listeners": f"CLIENTS://{clients},{own}",
                "listener.security.protocol.map": MAP,
                "inter.broker.listener.name": "PLAINTEXT",
            }
        for node in cluster.controllers:
            node.properties["listener.security.protocol.map"] = MAP
        with cluster:
            yield cluster, proxy


def producer_to(cluster: Cluster, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": cluster[2].address, "linger.ms": 0, **QUIET, **settings})


@pytest.mark.parametrize("idempotent", [False, True], ids=["without idempotence", "with idempotence"])
def test_a_leader_dies_after_writing_and_before_answering(
    cluster_and_proxy: tuple[Cluster, Proxy], idempotent: bool
) -> None:
    cluster, proxy = cluster_and_proxy
    topic = "once" if idempotent else "twice"
    leader, followers = cluster[FIRST], [cluster[2], cluster[3]]
    cluster.ask(lambda admin: admin.create_topic(NewTopic(topic, assignments=[[1, 2, 3]])))
    told: list[object] = []
    producer = producer_to(cluster, acks="all", **{"enable.idempotence": idempotent})

    def write(value: bytes) -> None:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: told.append(error))

    write(b"1")
    assert producer.flush(20) == 0
    size = len(log_bytes(leader, topic))

    proxy.keep_answers()
    write(b"2")
    producer.poll(0)
    wait_until(
        lambda: all(len(log_bytes(node, topic)) > size for node in cluster.brokers),
        what="the record is on all replicas",
    )
    assert told == [None]  # nobody has heard of it
    write_to_leader_only(cluster, topic)
    leader.kill()
    proxy.pass_answers()
    for node in followers:
        node.resume()
    assert producer.flush(60) == 0
    assert told == [None, None]
    write(b"3")
    assert producer.flush(20) == 0

    leader.start()
    wait_for_isr(cluster, topic, {1, 2, 3})
    wait_until(
        lambda: any(f"{topic}-0 diverges from its leader: truncating it to" in line for line in leader.lines),
        what="the old leader cuts off what nobody else had",
    )
    wait_until(lambda: len({log_bytes(node, topic) for node in cluster.brokers}) == 1, what="same bytes")
    assert metadata(cluster, topic).leader != FIRST
    elect = [sys.executable, "-m", "barnabas", "leader-election", "--election-type", "preferred"]
    elect += ["--all-topic-partitions", "--bootstrap-server", cluster.bootstrap]
    assert subprocess.run(elect, capture_output=True, timeout=60).returncode == 0
    wait_until(lambda: metadata(cluster, topic).leader == FIRST, what="the preferred leader leads again")
    found = read(cluster.bootstrap, topic, 0, 3, last=3)
    found = [each for each in found if each >= 0]
    assert found == ([1, 2, 3] if idempotent else [1, 2, 2, 3])


def write_to_leader_only(cluster: Cluster, topic: str) -> None:
    """Records that die with the leader: followers stand still. The first may be on its way to them in an
    answer already; nobody has asked for the second."""
    leader = cluster[FIRST]
    for node in cluster.brokers:
        if node is not leader:
            node.pause()
    with Conversation(None, port=int(leader.address.rpartition(":")[2])) as talk:  # type: ignore[arg-type]
        for number in (b"-1", b"-2"):
            answer = talk.ask(*produce(topic, batch(number), acks=1))
            assert answer.responses[0].partition_responses[0].error_code == 0
