"""ACLs in a cluster: the controller decides on forwarded requests by the client's own principal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import run
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

from .sasl_broker import ADMIN, SASL_SETTINGS, USERS, client_properties, cluster_of
from .test_refusals_everywhere import SETTINGS

AUTHORIZER = "authorizer.class.name"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A controller that authorizes, and a broker that does not: a refusal comes from the controller."""
    overrides = SETTINGS | {"super.users": "User:admin;User:ANONYMOUS"}  # between nodes: nobody logs in
    made = Cluster(1, 1, overrides=overrides | SASL_SETTINGS, client=client_properties("PLAIN", *ADMIN))
    for node in made.nodes.values():
        if node.is_broker:
            del node.properties[AUTHORIZER]
    with made:
        yield made


def test_a_forwarded_request_is_decided_by_the_clients_principal(cluster: Cluster) -> None:
    def create(user: str, topic: str) -> None:
        properties = client_properties("PLAIN", user, USERS[user])
        with cluster_of(cluster.bootstrap, properties) as client:
            run(Admin(client).create_topic(NewTopic(topic, 1, 1)))

    create("admin", "made")
    with pytest.raises(KafkaError) as refused:
        create("alice", "not-made")
    assert refused.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.long
def test_three_nodes_allow_and_refuse_alike() -> None:
    """Produce, consume, a transaction with offsets; then the right to write is taken away, on all nodes."""
    confluent = pytest.importorskip("confluent_kafka")
    admin_of = pytest.importorskip("confluent_kafka.admin")
    overrides = SETTINGS | {"super.users": "User:admin;User:ANONYMOUS"}
    with Cluster(combined=3, overrides=overrides, client=client_properties("PLAIN", *ADMIN)) as nodes:

        def settings(user: str) -> dict[str, str]:
            return {
                "bootstrap.servers": nodes.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": USERS[user],
            }

        def binding(kind: object, name: str, operation: object) -> object:
            pattern, allow = admin_of.ResourcePatternType.LITERAL, admin_of.AclPermissionType.ALLOW
            return admin_of.AclBinding(kind, name, pattern, "User:alice", "*", operation, allow)

        admin = admin_of.AdminClient(settings("admin"))
        types, operations = admin_of.ResourceType, admin_of.AclOperation
        finish(admin.create_topics([admin_of.NewTopic("t", 6, 3)]))
        may_write = binding(types.TOPIC, "t", operations.WRITE)
        finish(
            admin.create_acls(
                [
                    may_write,
                    binding(types.TOPIC, "t", operations.READ),
                    binding(types.GROUP, "g", operations.READ),
                    binding(types.TRANSACTIONAL_ID, "tx", operations.WRITE),
                ]
            )
        )
        producer = confluent.Producer(settings("alice"))
        codes: list[int] = []

        def write() -> set[int]:
            codes.clear()
            for index in range(6):
                try:
                    producer.produce(
                        "t",
                        b"x",
                        partition=index,
                        callback=lambda error, _: codes.append(error.code() if error else 0),
                    )
                except confluent.KafkaException as refused:  # by what it heard of the topic before
                    codes.append(refused.args[0].code())
            assert producer.flush(30) == 0
            return set(codes)

        wait_until(lambda: write() == {0}, 30)
        consumer = confluent.Consumer(settings("alice") | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        wait_until(lambda: (found := consumer.poll(1)) is not None and not found.error(), 30)
        transaction = confluent.Producer(settings("alice") | {"transactional.id": "tx"})
        transaction.init_transactions(30)
        transaction.begin_transaction()
        transaction.produce("t", b"y", partition=3)
        positions = consumer.position(consumer.assignment())
        transaction.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
        transaction.commit_transaction(30)
        consumer.close()
        pattern = admin_of.ResourcePatternType.LITERAL
        everybody = admin_of.AclBindingFilter(
            types.TOPIC, "t", pattern, None, None, operations.WRITE, admin_of.AclPermissionType.ANY
        )
        finish(admin.delete_acls([everybody]))
        wait_until(lambda: write() == {int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)}, 30)


def finish(futures: Any) -> None:
    for future in futures.values():
        future.result(60)


@pytest.mark.long
def test_a_follower_that_loses_its_right_stops_following() -> None:
    """Fetches that take the shortcut of a follower are checked again after a change of ACLs."""
    admin_of = pytest.importorskip("confluent_kafka.admin")
    confluent = pytest.importorskip("confluent_kafka")
    overrides = SETTINGS | {
        "super.users": "User:bob;User:ANONYMOUS",  # the brokers are the user admin to each other
        "allow.everyone.if.no.acl.found": "true",
        "replica.lag.time.max.ms": "2000",
    }
    with Cluster(2, 1, overrides=overrides, client=client_properties("PLAIN", "bob", USERS["bob"])) as nodes:
        settings = {
            "bootstrap.servers": nodes.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "bob",
            "sasl.password": USERS["bob"],
        }
        admin = admin_of.AdminClient(settings)
        finish(admin.create_topics([admin_of.NewTopic("t", 1, 2)]))

        def in_sync() -> int:
            producer.produce("t", b"x")
            producer.flush(10)
            return len(admin.list_topics("t", timeout=10).topics["t"].partitions[0].isrs)

        producer = confluent.Producer(settings | {"acks": "1"})
        wait_until(lambda: in_sync() == 2, 30)
        for _ in range(50):
            assert in_sync() == 2  # the follower keeps up, and takes the shortcut
        types, operations = admin_of.ResourceType, admin_of.AclOperation
        pattern, deny = admin_of.ResourcePatternType.LITERAL, admin_of.AclPermissionType.DENY
        cluster = (types.BROKER, "kafka-cluster", pattern, "User:admin", "*", operations.CLUSTER_ACTION, deny)
        finish(admin.create_acls([admin_of.AclBinding(*cluster)]))
        wait_until(lambda: in_sync() == 1, 40)
        finish(admin.delete_acls([admin_of.AclBindingFilter(*cluster)]))
        wait_until(lambda: in_sync() == 2, 40)
