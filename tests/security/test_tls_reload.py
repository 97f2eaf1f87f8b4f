"""Stores are read again when a setting is set and when a file changes; open connections go on."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509

from barnabas.broker.wire import tls_reload
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.security.tls.certificates import Issued, issue
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation

from .tls_world import HOSTS, NOW, TlsBroker, certificates

BROKER = 4
LOCATION = "listener.name.clients.ssl.keystore.location"
NAME = "CN=broker,O=Rig"
Resource = IncrementalAlterConfigsRequest.AlterConfigsResource


@pytest.fixture
def location(tmp_path: Path) -> Path:
    path = tmp_path / "broker.pem"
    put(path, certificates().broker)
    return path


@pytest.fixture
def broker(location: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TlsBroker]:
    monkeypatch.setattr(tls_reload, "LOOK_EVERY_S", 3600.0)
    with TlsBroker(ssl_keystore_location=location) as found:
        yield found


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[str], None]:
    caplog.set_level(logging.INFO)
    return lambda text: wait_until(lambda: text in caplog.text, what=lambda: f"{text} in {caplog.text}")


def put(path: Path, issued: Issued) -> None:
    path.write_bytes(issued.key_pem + issued.chain_pem)


def connected(broker: TlsBroker) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=certificates().ca_file)
    return context.wrap_socket(
        socket.create_connection(("127.0.0.1", broker.port), 20), server_hostname="localhost"
    )


def serial(talk: ssl.SSLSocket) -> int:
    return x509.load_der_x509_certificate(talk.getpeercert(binary_form=True) or b"").serial_number


def shows(broker: TlsBroker, issued: Issued) -> bool:
    with connected(broker) as talk:
        return serial(talk) == issued.certificate.serial_number


def alter(broker: TlsBroker, **values: object) -> tuple[int, str]:
    """Change settings of the broker, sent to that broker; its error."""
    configs = [
        Resource.AlterableConfig(name=name.replace("_", "."), value=str(value))
        for name, value in values.items()
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[Resource(resource_type=BROKER, resource_name="1", configs=configs)]
    )
    with Conversation(broker, port=broker.inner) as talk:
        answer: IncrementalAlterConfigsResponse = talk.ask(request, 1)
    return answer.responses[0].error_code, answer.responses[0].error_message or ""


def renewed(name: str = NAME, hosts: tuple[str, ...] = HOSTS) -> Issued:
    return issue(certificates().authority, name, NOW, hosts=hosts)


def test_the_same_location_set_again_reads_the_file_again(broker: TlsBroker, location: Path) -> None:
    with connected(broker) as old:
        before = serial(old)
        assert alter(broker, **{LOCATION: location}) == (0, "")
        assert shows(broker, certificates().broker)
        new = renewed()
        put(location, new)
        assert alter(broker, **{LOCATION: location}) == (0, "")
        wait_until(lambda: shows(broker, new))
        old.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff")
        assert old.recv(4096)
        assert serial(old) == before


def test_another_location_is_used_for_new_connections(broker: TlsBroker, tmp_path: Path) -> None:
    new = renewed()
    path = tmp_path / "other.p12"
    path.write_bytes(new.pkcs12("broker", "secret"))
    changes = {
        LOCATION: path,
        "listener.name.clients.ssl.keystore.type": "PKCS12",
        "listener.name.clients.ssl.keystore.password": "secret",
    }
    assert alter(broker, **changes) == (0, "")
    wait_until(lambda: shows(broker, new))


@pytest.mark.parametrize(
    "name, hosts, said",
    [
        ("CN=other,O=Rig", HOSTS, "the new certificate's subject is CN=other,O=Rig"),
        (NAME, ("localhost",), "lacks subject alternative names of that in use: IPAddress:127.0.0.1"),
    ],
)
def test_a_certificate_for_something_else_is_refused(
    broker: TlsBroker, location: Path, name: str, hosts: tuple[str, ...], said: str
) -> None:
    put(location, renewed(name, hosts))
    code, message = alter(broker, **{LOCATION: location})
    assert code == ErrorCode.INVALID_REQUEST and said in message
    assert shows(broker, certificates().broker)


def test_a_certificate_for_something_else_is_taken_where_that_is_allowed(location: Path) -> None:
    with TlsBroker(
        ssl_keystore_location=location, ssl_allow_dn_changes="true", ssl_allow_san_changes="true"
    ) as broker:
        new = renewed("CN=other", ("localhost",))
        put(location, new)
        assert alter(broker, **{LOCATION: location}) == (0, "")
        wait_until(lambda: shows(broker, new))


def test_a_store_that_cannot_be_read_is_refused_and_the_old_one_stays(
    broker: TlsBroker, location: Path, tmp_path: Path
) -> None:
    code, message = alter(broker, **{LOCATION: tmp_path / "nothing"})
    assert code == ErrorCode.INVALID_REQUEST and "cannot be read" in message
    wrong = {"listener.name.clients.ssl.endpoint.identification.algorithm": "foo"}
    code, message = alter(broker, **wrong)
    assert code == ErrorCode.INVALID_REQUEST and "foo is unknown; use https" in message
    location.write_text("nonsense")
    code, message = alter(broker, **{LOCATION: location})
    assert code == ErrorCode.INVALID_REQUEST and "holds no private key" in message
    assert shows(broker, certificates().broker)


def test_settings_that_are_replaced_as_a_whole_are_checked_too(broker: TlsBroker) -> None:
    kind = AlterConfigsRequest.AlterConfigsResource
    wanted = kind(
        resource_type=BROKER,
        resource_name="1",
        configs=[kind.AlterableConfig(name=LOCATION, value="/nowhere")],
    )
    with Conversation(broker, port=broker.inner) as talk:
        [answer] = talk.ask(AlterConfigsRequest(resources=[wanted]), 2).responses
    assert answer.error_code == ErrorCode.INVALID_REQUEST and "/nowhere" in answer.error_message
    assert shows(broker, certificates().broker)


def test_a_trust_store_counts_for_new_connections(broker: TlsBroker) -> None:
    assert alter(broker, **{"listener.name.clients.ssl.client.auth": "required"}) == (0, "")
    context = ssl.create_default_context(cafile=certificates().ca_file)
    context.load_cert_chain(certificates().store("mallory.pem", certificates().mallory))

    def is_served() -> bool:
        plain = socket.create_connection(("127.0.0.1", broker.port), 20)
        with plain, context.wrap_socket(plain, server_hostname="localhost") as talk:
            try:
                talk.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff")
                return bool(talk.recv(4096))
            except OSError:
                return False

    wait_until(lambda: not is_served())
    trust = {"listener.name.clients.ssl.truststore.location": certificates().other_ca_file}
    assert alter(broker, **trust) == (0, "")
    wait_until(is_served)


def test_a_file_that_changes_is_read_without_being_asked(
    location: Path, monkeypatch: pytest.MonkeyPatch, told: Callable[[str], None]
) -> None:
    monkeypatch.setattr(tls_reload, "LOOK_EVERY_S", 0.05)
    with TlsBroker(ssl_keystore_location=location) as broker:
        location.write_text("nonsense")
        told("listener CLIENTS keeps its certificate and its trust store: ssl.keystore.location")
        assert shows(broker, certificates().broker)
        new = renewed()
        put(location, new)
        wait_until(lambda: shows(broker, new))
        told("listener CLIENTS uses a new certificate")
