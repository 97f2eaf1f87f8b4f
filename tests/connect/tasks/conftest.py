"""A broker for the tests of this folder, ours or with `--apache` Apache Kafka too, and topics of one test."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from barnabas.testing.apache import ApacheKafka, available
from barnabas.testing.broker import Broker

AnyBroker = Broker | ApacheKafka


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "barnabas_broker" in metafunc.fixturenames:
        kinds: list[object] = ["barnabas"]
        if metafunc.config.getoption("--apache"):
            kinds.append(pytest.param("apache", marks=pytest.mark.java))
        metafunc.parametrize("barnabas_broker", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def barnabas_broker(request: pytest.FixtureRequest) -> Iterator[AnyBroker]:
    if request.param == "apache" and (missing := available()):
        pytest.skip(missing)
    with ApacheKafka() if request.param == "apache" else Broker() as found:
        yield found


@pytest.fixture
def barnabas_topic(barnabas_broker: AnyBroker, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of one partition, named after the test, deleted afterwards."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:200]
    barnabas_broker.create_topic(name)
    yield name
    admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap})
    for future in admin.delete_topics([name]).values():
        future.result(30)
