"""Listeners that are added, changed and removed while the broker runs; clients are told at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation

from .test_tls_reload import alter
from .tls_world import TlsBroker, certificates

PROTOCOLS = "CLIENTS:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTRA:SSL,PLAIN:PLAINTEXT"
STORES = {f"listener.name.extra.{name}": value for name, value in certificates().stores.items()}


@pytest.fixture(scope="module")
def broker() -> Iterator[TlsBroker]:
    with TlsBroker(listener_security_protocol_map=PROTOCOLS) as found:
        yield found


def told_port(broker: TlsBroker, port: int) -> int | None:
    """The port that Metadata tells to clients of the listener at this port."""
    try:
        with Conversation(broker, port=port) as talk:
            brokers = talk.ask(MetadataRequest(topics=[]), 12).brokers
    except OSError:
        return None
    return brokers[0].port if brokers else None


def told_by_tls(port: int) -> list[int]:
    admin = AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SSL",
            "ssl.ca.location": certificates().ca_file,
        }
    )
    return [each.port for each in admin.list_topics(timeout=20).brokers.values()]


def test_a_listener_is_told_when_added_changed_and_removed(broker: TlsBroker) -> None:
    before = broker.properties["listeners"]
    first, second = free_ports(2)
    assert alter(broker, listeners=f"{before},PLAIN://127.0.0.1:{first}") == (0, "")
    wait_until(lambda: told_port(broker, first) == first)
    assert alter(broker, listeners=f"{before},PLAIN://127.0.0.1:{second}") == (0, "")
    wait_until(lambda: told_port(broker, second) == second)
    assert told_port(broker, first) is None
    assert alter(broker, listeners=before) == (0, "")
    wait_until(lambda: told_port(broker, second) is None)
    assert told_port(broker, broker.inner) == broker.inner


def test_a_tls_listener_is_added_with_its_own_stores(broker: TlsBroker) -> None:
    before = broker.properties["listeners"]
    (port,) = free_ports(1)
    changes = {"listeners": f"{before},EXTRA://127.0.0.1:{port}"}
    wrong = {**STORES, "listener.name.extra.ssl.keystore.location": "/nowhere.pem"}
    code, message = alter(broker, **changes, **wrong)
    assert code == ErrorCode.INVALID_REQUEST and "/nowhere.pem cannot be read" in message
    assert alter(broker, **changes, **STORES) == (0, "")
    wait_until(lambda: told_by_tls(port) == [port])
