"""A proxy on a socket of this machine, over our broker, and over Apache Kafka too with --apache."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import pytest

from barnabas.testing.waiting import wait_until
from both_brokers import KEEPS_ALL, parametrize_broker
from rest.serving import HTTP, Served, serving

_numbers = itertools.count(1)
ALLOWING = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """The bootstrap server of one broker for a file. It has an authorizer; everybody may do everything."""
    if request.param == "apache":
        yield request.getfixturevalue("apache_with_acls")
        return
    from barnabas.testing import Broker

    with Broker(overrides={**ALLOWING, **KEEPS_ALL}) as ours:
        yield ours.bootstrap


@pytest.fixture(scope="session")
def apache_with_acls() -> Iterator[str]:
    """The bootstrap server of an Apache Kafka node with an authorizer."""
    from barnabas.testing.apache import ApacheKafka, available

    if missing := available():
        pytest.skip(missing)
    with ApacheKafka(overrides=ALLOWING) as node:
        yield node.bootstrap


@pytest.fixture(scope="module")
def proxy(broker: str) -> Iterator[Served]:
    with serving(broker) as served:
        yield served


@pytest.fixture
def fresh_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.originalname)[:60]
    return lambda: f"{stem}.{next(_numbers)}"


@pytest.fixture
def topic(proxy: Served, fresh_name: Callable[[], str]) -> str:
    """A topic with two partitions."""
    name = fresh_name()
    body = {"topic_name": name, "partitions_count": 2, "replication_factor": 1}
    response = HTTP.post(f"{proxy.cluster}/topics", json=body)
    assert response.status_code == 201, response.text
    # Apache Kafka's broker may hear of the topic after the controller has answered.
    wait_until(lambda: HTTP.get(f"{proxy.cluster}/topics/{name}").is_success, what="the topic is known")
    return name
