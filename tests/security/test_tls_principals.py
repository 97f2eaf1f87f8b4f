"""Names of users without a login: by ssl.principal.mapping.rules from certificates, or by a plug-in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.core.address import Address, parse_bootstrap
from barnabas.client.core.errors import ClientError
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.clients.client_security import client_security
from barnabas.security.tls.certificates import Issued, issue
from barnabas.testing import Broker

from .tls_world import NOW, TlsBroker, certificates

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
RULES = r"RULE:^CN=([^,]+),OU=clients,.*$/$1/L,RULE:^CN=([^,]+)$/guest-$1/"


@pytest.fixture(scope="module")
def broker() -> Iterator[TlsBroker]:
    settings = {
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": RULES,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:alice",
    }
    with TlsBroker(**settings) as found:
        yield found


def create(broker: TlsBroker, topic: str, issued: Issued) -> None:
    security = client_security(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": certificates().authority.certificate_pem.decode(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": issued.encrypted_key_pem("secret").decode().replace("\n", "\\n"),
            "ssl.keystore.certificate.chain": issued.chain_pem.decode(),
            "ssl.key.password": "secret",
        }
    )
    with BlockingCluster([Address("127.0.0.1", broker.port)], security=security) as cluster:
        run(Admin(cluster).create_topic(NewTopic(topic, 1)))


def test_the_user_of_a_rule_may_do_what_that_user_may(broker: TlsBroker) -> None:
    create(broker, "by-alice", issue(certificates().authority, "CN=Alice,OU=clients,O=Rig", NOW))


def test_another_user_may_not(broker: TlsBroker) -> None:
    with pytest.raises(KafkaError) as refused:
        create(broker, "by-bob", issue(certificates().authority, "CN=bob", NOW))
    assert refused.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_certificate_without_a_rule_is_refused(broker: TlsBroker) -> None:
    with pytest.raises(ClientError):
        create(broker, "by-nobody", issue(certificates().authority, "CN=carol,O=Else", NOW))


def test_a_plug_in_names_the_principals_of_certificates() -> None:
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "Robot:CN=bob;User:ANONYMOUS",
        "ssl.client.auth": "required",
        "principal.builder.class": "tests.security.plug_ins:by_certificate_or_host",
    }
    with TlsBroker(**settings) as named:
        create(named, "by-robot", issue(certificates().authority, "CN=bob", NOW))
        with pytest.raises(KafkaError) as refused:
            create(named, "by-nobody", issue(certificates().authority, "CN=carol", NOW))
    assert refused.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("name", "is_served"), [("by_certificate_or_host", True), ("nobody", False)])
def test_a_plug_in_names_the_principals_of_plaintext_connections(name: str, is_served: bool) -> None:
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "Host:127.0.0.1;User:ANONYMOUS",
        "listener.name.plaintext.principal.builder.class": f"tests.security.plug_ins:{name}",
    }
    with Broker(overrides=settings) as broker, BlockingCluster(parse_bootstrap(broker.bootstrap)) as cluster:
        if is_served:
            run(Admin(cluster).create_topic(NewTopic("by-host", 1)))
        else:
            with pytest.raises(ClientError):
                run(Admin(cluster).create_topic(NewTopic("by-nobody", 1)))
