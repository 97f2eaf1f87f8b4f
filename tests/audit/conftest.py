"""Brokers that count, and topics that nobody used."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import pytest

from barnabas.testing import Broker
from both_brokers import KEEPS_ALL, parametrize_broker

_numbers = itertools.count(1)
COUNTS = {
    "barnabas.audit.counts.enable": "true",
    "barnabas.audit.counts.interval.ms": "100",
    **KEEPS_ALL,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """Any broker, for what needs only the protocol: ours, and Apache Kafka too with --apache."""
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    with Broker(overrides={"group.initial.rebalance.delay.ms": 0, **KEEPS_ALL}) as ours:
        yield ours.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that nobody used."""
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.originalname)[:60]
    return f"{stem}-{next(_numbers)}"


@pytest.fixture(scope="module")
def counting() -> Iterator[Broker]:
    """A broker that counts its records ten times a second."""
    with Broker(overrides=COUNTS) as broker:
        yield broker


@pytest.fixture
def new_topic(request: pytest.FixtureRequest, counting: Broker) -> Callable[..., str]:
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.originalname)[:60]

    def make(partitions: int = 1, **configs: object) -> str:
        name = f"{stem}-{next(_numbers)}"
        counting.create_topic(
            name, partitions, {key.replace("_", "."): value for key, value in configs.items()}
        )
        return name

    return make
