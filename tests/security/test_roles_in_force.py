"""Bindings of roles decide on a running node, moments after they are written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import pytest

from barnabas.client import role_topic
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.producer import Producer
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.acls.role_records import PRESENT
from barnabas.security.acls.roles import Binding
from barnabas.security.acls.vocabulary import ROLES_TOPIC
from barnabas.security.clients.client_security import client_security
from barnabas.testing.broker import Broker
from barnabas.testing.cluster import Cluster as Nodes
from barnabas.testing.waiting import wait_until

from .sasl_broker import ADMIN, SASL_SETTINGS, client_properties, cluster_of
from .sasl_broker import USERS as SASL_USERS
from .secured_broker import USERS, SecuredBroker

ANN = "User:ann"
SEEN_S = 20.0
READS = Binding(ANN, "DeveloperRead", "Topic", "orders-", True)


SASL_AMONG_NODES = {
    "inter_broker_listener_name": "SASL_PLAINTEXT",
    "sasl_mechanism_inter_broker_protocol": "PLAIN",
}


@pytest.fixture(scope="module")
def node() -> Iterator[SecuredBroker]:
    """Reads the bindings over the listener between brokers, which wants a login."""
    with SecuredBroker(barnabas_roles_enable="true", **SASL_AMONG_NODES) as broker:
        with BlockingCluster(parse_bootstrap(broker.bootstrap)) as cluster:
            run(Admin(cluster).create_topic(NewTopic("orders-1", 1, 1)))
        yield broker


def bind(node: SecuredBroker, *bindings: Binding, present: bool = True) -> None:
    asyncio.run(write_bindings(node.bootstrap, bindings, {}, present=present))


async def write_bindings(
    bootstrap: str, bindings: Iterable[Binding], properties: dict[str, str], *, present: bool = True
) -> None:
    async with Cluster(parse_bootstrap(bootstrap), security=client_security(properties)) as cluster:
        await role_topic.create_topic(cluster)
        await role_topic.write(cluster, bindings, present=present)


def as_ann(node: SecuredBroker) -> BlockingCluster:
    properties = client_properties("PLAIN", "ann", USERS["ann"])
    return BlockingCluster(parse_bootstrap(node.sasl), security=client_security(properties))


def topics_of_ann(node: SecuredBroker) -> set[str]:
    with as_ann(node) as cluster:
        return {topic.name for topic in run(Admin(cluster).list_topics())}


def test_a_role_is_in_force_until_it_is_taken_away(node: SecuredBroker) -> None:
    assert topics_of_ann(node) == set()
    bind(node, READS)
    wait_until(lambda: topics_of_ann(node) == {"orders-1"}, SEEN_S, "the role to be in force")
    with as_ann(node) as cluster, pytest.raises(KafkaError, match=r"(?i)authoriz"):
        run(Admin(cluster).create_topic(NewTopic("orders-2", 1, 1)))
    bind(node, READS, present=False)
    wait_until(lambda: topics_of_ann(node) == set(), SEEN_S, "the end of the role")


def test_records_that_are_no_bindings_do_no_harm(node: SecuredBroker) -> None:
    async def litter() -> None:
        async with Cluster(parse_bootstrap(node.bootstrap)) as cluster:
            await role_topic.create_topic(cluster)
            async with Producer(cluster) as producer:
                for key in (None, b"{", b"\xff\xfe", b'["User:ann","Boss","Cluster","kafka-cluster",false]'):
                    await producer.send(ROLES_TOPIC, PRESENT, key, partition=0)

    asyncio.run(litter())
    bind(node, READS)
    wait_until(lambda: topics_of_ann(node) == {"orders-1"}, SEEN_S, "the role behind the litter")
    bind(node, READS, present=False)
    wait_until(lambda: topics_of_ann(node) == set(), SEEN_S, "the end of the role")


def test_bindings_end_with_their_topic(node: SecuredBroker) -> None:
    bind(node, READS)
    wait_until(lambda: topics_of_ann(node) == {"orders-1"}, SEEN_S, "the role to be in force")
    with BlockingCluster(parse_bootstrap(node.bootstrap)) as cluster:
        run(Admin(cluster).delete_topics([ROLES_TOPIC]))
    wait_until(lambda: topics_of_ann(node) == set(), SEEN_S, "the end of all roles")


def test_roles_need_an_authorizer() -> None:
    broker = Broker(overrides={"barnabas.roles.enable": "true"})
    with pytest.raises(Exception, match="roles need authorizer"):
        broker.start()
    broker.stop()


def test_controllers_follow_the_bindings_too() -> None:
    """A controller decides on topics that a broker hands over to it, with the client's principal."""
    overrides = {
        **SASL_SETTINGS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "barnabas.roles.enable": "true",
    }
    admin = client_properties("PLAIN", *ADMIN)
    with Nodes(brokers=1, controllers=1, overrides=overrides, client=admin) as nodes:
        bob = client_properties("PLAIN", "bob", SASL_USERS["bob"])

        def may_create(name: str) -> bool:
            with cluster_of(nodes.bootstrap, bob) as cluster:
                try:
                    run(Admin(cluster).create_topic(NewTopic(name, 1, 1)))
                except KafkaError as error:
                    assert error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    return False
                return True

        assert not may_create("made-1")
        given = Binding("User:bob", "DeveloperManage", "Topic", "made-", True)
        asyncio.run(write_bindings(nodes.bootstrap, [given], admin))
        wait_until(lambda: may_create("made-1"), SEEN_S, "the role to be in force at the controller")
        assert not may_create("other")
