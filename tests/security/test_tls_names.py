"""Host names are verified, and certificates on SASL_SSL are wanted only where the listener says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.errors import ClientError
from barnabas.security.clients.client_security import client_security
from barnabas.security.tls.certificates import issue

from .tls_world import NOW, TlsBroker, certificates

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
Ask = Callable[[TlsBroker, dict[str, str]], None]


def on_the_blocking_face(broker: TlsBroker, properties: dict[str, str]) -> None:
    with BlockingCluster(
        [Address("127.0.0.1", broker.port)], security=client_security(properties)
    ) as cluster:
        run(Admin(cluster).list_topics())


def on_the_asyncio_face(broker: TlsBroker, properties: dict[str, str]) -> None:
    async def ask() -> None:
        async with Cluster(
            [Address("127.0.0.1", broker.port)], security=client_security(properties)
        ) as cluster:
            await Admin(cluster).list_topics()

    asyncio.run(ask())


@pytest.fixture(params=[on_the_blocking_face, on_the_asyncio_face])
def ask(request: pytest.FixtureRequest) -> Ask:
    face: Ask = request.param
    return face


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    """Its certificate is for another host."""
    issued = issue(certificates().authority, "CN=broker", NOW, hosts=["elsewhere.test"])
    path: Path = tmp_path_factory.mktemp("certs") / "elsewhere.pem"
    path.write_bytes(issued.key_pem + issued.chain_pem)
    with TlsBroker(ssl_keystore_location=path) as broker:
        yield broker


@pytest.fixture(scope="module")
def logged_in() -> Iterator[TlsBroker]:
    """`ssl.client.auth` without a prefix does not count for SASL_SSL."""
    settings = {
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_ann="secret";',
        "ssl.client.auth": "required",
    }
    with TlsBroker(**settings) as broker:
        yield broker


def trusting(**more: str) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates().ca_file,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def test_a_certificate_for_another_host_is_refused(elsewhere: TlsBroker, ask: Ask) -> None:
    with pytest.raises(ClientError, match=r"not valid for '127.0.0.1'.*subject alternative names"):
        ask(elsewhere, trusting())


def test_host_names_are_not_checked_if_the_setting_is_empty(elsewhere: TlsBroker, ask: Ask) -> None:
    ask(elsewhere, trusting(ssl_endpoint_identification_algorithm=""))


def test_a_login_over_tls_needs_no_certificate(logged_in: TlsBroker, ask: Ask) -> None:
    ask(
        logged_in,
        trusting(
            security_protocol="SASL_SSL",
            sasl_mechanism="PLAIN",
            sasl_jaas_config=f'{MODULE} required username="ann" password="secret";',
        ),
    )
