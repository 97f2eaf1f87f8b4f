"""Nodes of both products log in at each other: SCRAM between brokers, PLAIN to the controller."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from tests.security.sasl_broker import ADMIN
from tests.security.test_sasl_cluster import CLIENT, EARLIEST, LIBRDKAFKA, SETTINGS

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.testing.cluster import APACHE, BARNABAS, Cluster
from barnabas.testing.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.java]
TIMEOUT = 60
SESSIONS = 2.5


@pytest.fixture(scope="module", params=[BARNABAS, APACHE])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A controller of either product; broker 1 is ours, broker 2 Apache Kafka's."""
    from barnabas.testing.apache import available

    if available():
        pytest.skip(str(available()))
    credential = f"SCRAM-SHA-512=[name={ADMIN[0]},password={ADMIN[1]}]"
    later = {"broker.session.timeout.ms": "9000", "replica.lag.time.max.ms": "10000"}
    made = Cluster(brokers=2, overrides={**SETTINGS, **later}, add_scram=[credential], client=CLIENT)
    made[101].product = request.param
    made[2].product = APACHE
    with made:
        yield made


def test_both_follow_each_other(cluster: Cluster) -> None:
    topic = NewTopic("t", assignments=[[1, 2], [2, 1]], configs={"min.insync.replicas": "2"})
    cluster.ask(lambda admin: admin.create_topic(topic))

    async def in_sync(admin: Admin) -> bool:
        found = (await admin.cluster.topics(["t"]))["t"]
        return all(len(each.isr) == 2 for each in found.partitions.values())

    wait_until(lambda: cluster.ask(in_sync), TIMEOUT)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", **LIBRDKAFKA})
    sent = 0
    end = time.monotonic() + SESSIONS * int(SETTINGS["connections.max.reauth.ms"]) / 1000
    while sent < 200 or time.monotonic() < end:  # all connections are renewed meanwhile
        producer.produce("t", str(sent).encode(), partition=sent % 2)
        assert producer.flush(TIMEOUT) == 0
        sent += 1
    assert cluster.ask(in_sync)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", **EARLIEST, **LIBRDKAFKA})
    consumer.subscribe(["t"])
    for _ in range(sent):
        message = consumer.poll(TIMEOUT)
        assert message is not None and message.error() is None
    consumer.close()
