"""ACLs in a cluster: the controller decides on forwarded requests by the client's own principal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import run
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.testing.cluster import Cluster

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
