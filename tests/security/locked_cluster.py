"""A cluster with SASL_SSL everywhere, and what its clients wrote and read.

Brokers and clients log in with SCRAM; nodes log in at controllers with PLAIN and show a certificate.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Self

from confluent_kafka import Consumer

from barnabas.client.admin.admin import Admin
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until
from cluster.replicated import QUIET, SOON, Writer, read

from .provider import CLIENT_ID
from .sasl_broker import ADMIN, SCRAM, USERS, plain_entry
from .tls_world import certificates

SECRETS = (*USERS.values(),)
# Brokers and the tests' clients; brokers that log in with a bearer token or a Kerberos ticket.
SUPER_USERS = (ADMIN[0], CLIENT_ID, "kafka")
MECHANISM = "SCRAM-SHA-512"
ENTRY = f'{SCRAM} required username="{ADMIN[0]}" password="{ADMIN[1]}";'


def settings(**more: object) -> dict[str, object]:
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",  # by default Apache Kafka's brokers do without TLS
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": plain_entry(),
        "listener.name.controller.ssl.client.auth": "required",
        f"listener.name.plaintext.{MECHANISM.lower()}.sasl.jaas.config": ENTRY,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in SUPER_USERS),
        "offsets.topic.num.partitions": 3,
        **certificates().stores,
        **SOON,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def client() -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": ENTRY,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates().ca_file,
    }


def librdkafka() -> dict[str, Any]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.username": ADMIN[0],
        "sasl.password": ADMIN[1],
        "ssl.ca.location": certificates().ca_file,
        **QUIET,
    }


def locked_cluster(overrides: Mapping[str, object] | None = None, **shape: Any) -> Cluster:
    """Not started."""
    credential = f"{MECHANISM}=[name={ADMIN[0]},password={ADMIN[1]}]"
    return Cluster(overrides=overrides or settings(), add_scram=[credential], client=client(), **shape)


class Work:
    """Writers of numbers, one for each partition, and a group that reads them, until the block ends."""

    def __init__(self, cluster: Cluster, topic: str, partitions: int) -> None:
        self._cluster, self._topic = cluster, topic
        self.writers = [
            Writer(cluster.bootstrap, topic, number, **librdkafka()) for number in range(partitions)
        ]
        self._seen: dict[int, set[int]] = {number: set() for number in range(partitions)}
        self._is_over = threading.Event()  # for writers
        self._all_acknowledged = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._write, self._read)]

    def _write(self) -> None:
        while not self._is_over.wait(0.01):
            for writer in self.writers:
                writer.write()

    def _read(self) -> None:
        group = {"group.id": self._topic, "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": self._cluster.bootstrap, **group, **librdkafka()})
        consumer.subscribe([self._topic])
        while not self._all_acknowledged.is_set() or self._unread():
            for each in consumer.consume(500, 0.2):
                if each.error() is None:
                    self._seen[each.partition() or 0].add(int(each.value() or b""))
        consumer.close()

    def _unread(self) -> int:
        return sum(
            len(set(writer.acknowledged) - seen)
            for writer, seen in zip(self.writers, self._seen.values(), strict=True)
        )

    def wait_until_it_goes_on(self, count: int = 20) -> None:
        """So many more records are acknowledged in every partition, and read."""
        goals = [len(writer.acknowledged) + count for writer in self.writers]
        wait_until(
            lambda: all(
                len(writer.acknowledged) >= goal and len(self._seen[writer.partition]) >= goal
                for writer, goal in zip(self.writers, goals, strict=True)
            ),
            90,
            what=lambda: f"{[len(writer.acknowledged) for writer in self.writers]} of {goals} are written",
        )

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_over.set()
        self._threads[0].join(30)
        if kind is not None:
            return
        for writer in self.writers:
            writer.flush()
        self._all_acknowledged.set()
        self._threads[1].join(60)
        assert not self._unread(), "the group has not read all that was acknowledged"

    def check(self) -> None:
        """Nothing acknowledged is lost, nothing is there twice or out of order."""
        for writer in self.writers:
            assert writer.failed == []
            found = read(self._cluster.bootstrap, self._topic, writer.partition, writer.sent, **librdkafka())
            assert found == list(range(writer.sent))


def wait_until_whole(cluster: Cluster, topic: str, replicas: int = 3) -> None:
    async def counts(admin: Admin) -> list[int]:
        found = (await admin.cluster.topics([topic]))[topic]
        return [len(each.isr) for each in found.partitions.values()]

    seen: list[int] = []

    def is_whole() -> bool:
        seen[:] = cluster.ask(counts)
        return bool(seen) and all(count == replicas for count in seen)

    wait_until(is_whole, 60, what=lambda: f"replicas in sync of each partition of {topic}: {seen}")


def check_logs(cluster: Cluster) -> None:
    """No node failed to log in at another, and none shows a secret. Sessions of clients may end on a busy
    machine: they connect again."""
    for node in cluster.nodes.values():
        lines = list(node.lines)
        wrong = ("cannot log in", "could not be renewed", "Traceback", *SECRETS)
        found = [line for line in lines if any(each in line for each in wrong)]
        assert not found, "\n".join([f"node {node.id}:", *found[:5]])
