"""Three nodes that log in at each other: SCRAM between brokers, PLAIN to controllers, through a kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from tests.security.sasl_broker import ADMIN, SCRAM, USERS, client_properties, plain_entry

from barnabas.client.admin.admin import Admin
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

TIMEOUT = 30
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": plain_entry(),
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": (
        f'{SCRAM} required username="{ADMIN[0]}" password="{ADMIN[1]}";'
    ),
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "connections.max.reauth.ms": "4000",
}
CLIENT = client_properties("SCRAM-SHA-512", *ADMIN)
LIBRDKAFKA = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": ADMIN[0],
    "sasl.password": ADMIN[1],
    "logger": None,
}
EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    credential = f"SCRAM-SHA-512=[name={ADMIN[0]},password={ADMIN[1]}]"
    with Cluster(combined=3, overrides=SETTINGS, add_scram=[credential], client=CLIENT) as cluster:
        yield cluster


def test_a_cluster_with_sasl_everywhere_survives_a_kill(cluster: Cluster) -> None:
    cluster.create_topic("t", partitions=3, replication_factor=3, configs={"min.insync.replicas": 2})
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", **LIBRDKAFKA})

    def produce(count: int) -> None:
        for number in range(count):
            producer.produce("t", str(number).encode())
        assert producer.flush(TIMEOUT) == 0

    produce(50)
    victim = cluster[2]
    victim.kill()
    produce(50)
    victim.start()

    def all_in_sync() -> bool:
        async def ask(admin: Admin) -> bool:
            topic = (await admin.cluster.topics(["t"]))["t"]
            return all(len(each.isr) == 3 for each in topic.partitions.values())

        return bool(cluster.ask(ask))

    wait_until(all_in_sync, TIMEOUT)
    produce(50)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", **EARLIEST, **LIBRDKAFKA})
    consumer.subscribe(["t"])
    seen = 0
    while seen < 150:
        message = consumer.poll(TIMEOUT)
        assert message is not None and message.error() is None
        seen += 1
    consumer.close()
    for node in cluster.nodes.values():
        wrong = ("session is over", "login from", "could not be renewed", "cannot log in")
        assert not [line for line in node.lines if any(each in line for each in wrong)]
        assert not [line for line in node.lines for secret in USERS.values() if secret in line]
