"""Our broker for a file, set up like the Apache Kafka node it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka

from .comparing import AUTHORIZED, CONFIGURED, Conversations, Ports, role_of

# As the Apache Kafka node has it.
ALIKE = {
    "barnabas.produce.validation": "strict",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


NODES = {"configured": "apache_configured", "authorized": "apache_authorized"}  # other roles share one


@dataclass(frozen=True, slots=True)
class Node:
    """A running broker and the folder it writes to."""

    port: int
    data: Path

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def our_ports() -> Iterator[Ports]:
    """Of our brokers that answer the scenarios."""
    with (
        Broker(overrides=ALIKE) as broker,
        Broker(overrides=ALIKE | CONFIGURED) as configured,
        Broker(overrides=ALIKE | AUTHORIZED) as authorized,
    ):
        controller = broker.properties["controller.quorum.voters"].rpartition(":")[2]
        yield Ports(broker.port, int(controller), configured.port, authorized.port)


@pytest.fixture(scope="module")
def our_answers(our_ports: Ports) -> Iterator[Conversations]:
    with Conversations(our_ports) as conversations:
        yield conversations


@pytest.fixture(scope="session")
def apache_configured(java: None) -> Iterator[ApacheKafka]:
    with ApacheKafka(overrides=CONFIGURED, heap="512M") as node:
        yield node


@pytest.fixture(scope="session")
def apache_authorized(java: None) -> Iterator[ApacheKafka]:
    with ApacheKafka(overrides=AUTHORIZED, heap="512M") as node:
        yield node


@pytest.fixture
def apache_port(request: pytest.FixtureRequest) -> Callable[[str], int]:
    """Where a scenario finds Apache Kafka. A node starts when the first scenario asks for it."""

    def of(name: str) -> int:
        role = role_of(name)
        node: ApacheKafka = request.getfixturevalue(NODES.get(role, "apache_kafka"))
        return node.controller_port if role == "controller" else node.port

    return of


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "node" in metafunc.fixturenames:
        kinds = ["barnabas", *(["apache"] if metafunc.config.getoption("--apache") else [])]
        metafunc.parametrize("node", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """The broker that Kafka's own tools are pointed at: ours, and with --apache Apache Kafka too."""
    if request.param == "apache":
        kafka = request.getfixturevalue("apache_kafka")
        yield Node(kafka.port, kafka.data)
        return
    with Broker(overrides=ALIKE) as broker:
        yield Node(broker.port, broker.data)
