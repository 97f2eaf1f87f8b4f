"""Three nodes with SASL_SSL between all of them, through kills and rolling restarts: nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

from .kdc import REALM, Kdc
from .locked_cluster import Work, check_logs, locked_cluster, settings, wait_until_whole
from .provider import AUDIENCE, CLIENT_ID, CLIENT_SECRET, Provider

OAUTH_ENTRY = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
pytestmark = pytest.mark.timeout(400)
TOPIC, PARTITIONS = "numbers", 3


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    # Sessions end often, so that nodes and clients authenticate again while nodes fail.
    with locked_cluster(settings(connections_max_reauth_ms=4000), combined=3) as running:
        running.create_topic(TOPIC, PARTITIONS, replication_factor=3)
        yield running


@pytest.mark.slow
def test_nothing_is_lost_when_a_node_is_killed(cluster: Cluster) -> None:
    with Work(cluster, TOPIC, PARTITIONS) as work:
        work.wait_until_it_goes_on()
        cluster[2].kill()
        work.wait_until_it_goes_on()
        cluster[2].start()
        wait_until_whole(cluster, TOPIC)
        work.wait_until_it_goes_on()
    work.check()
    check_logs(cluster)


@pytest.mark.long
def test_brokers_log_in_with_bearer_tokens_and_at_controllers_with_kerberos(kdc: Kdc) -> None:
    """Tokens live for seconds: brokers get new ones and authenticate again while they replicate."""
    with Provider(life_s=6) as provider:
        chosen = settings() | {
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "listener.name.plaintext.oauthbearer.sasl.jaas.config": OAUTH_ENTRY,
            "sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
            "sasl.mechanism.controller.protocol": "GSSAPI",
            "listener.name.controller.sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.controller.gssapi.sasl.jaas.config": kdc.jaas(f"kafka/127.0.0.1@{REALM}"),
            "sasl.kerberos.service.name": "kafka",
        }
        with locked_cluster(chosen, combined=3) as cluster:
            cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
            with Work(cluster, TOPIC, PARTITIONS) as work:
                work.wait_until_it_goes_on()
                cluster[2].kill()
                work.wait_until_it_goes_on()
                cluster[2].start()
                wait_until_whole(cluster, TOPIC)
                asked = len(provider.forms)
                wait_until(lambda: len(provider.forms) >= asked + 3, 30, "new tokens are fetched")
                work.wait_until_it_goes_on()
            work.check()
            check_logs(cluster)
            assert not [
                line for node in cluster.nodes.values() for line in node.lines if CLIENT_SECRET in line
            ]


@pytest.mark.long
def test_nothing_is_lost_in_kills_and_rolling_restarts(cluster: Cluster) -> None:
    with Work(cluster, TOPIC, PARTITIONS) as work:
        work.wait_until_it_goes_on()
        for _ in range(2):
            for node in cluster.nodes.values():
                node.kill()
                work.wait_until_it_goes_on()
                node.start()
                wait_until_whole(cluster, TOPIC)
                work.wait_until_it_goes_on()
            for node in cluster.nodes.values():
                node.stop()
                node.start()
                wait_until_whole(cluster, TOPIC)
                work.wait_until_it_goes_on()
    work.check()
    check_logs(cluster)
