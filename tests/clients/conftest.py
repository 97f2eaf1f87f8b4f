"""The broker that a client test talks to: ours, and Apache Kafka too with --apache."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from both_brokers import KEEPS_ALL, SHARES_SOON, parametrize_broker

READY_TIMEOUT_S = 30.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Served:
    """A running broker of either kind, as a client sees it."""

    kind: str
    bootstrap: str

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])


class NewTopicName(Protocol):
    def __call__(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str: ...


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[Served]:
    """One broker for a file; every test makes topics of its own."""
    if request.param == "apache":
        yield Served("apache", request.getfixturevalue("apache_kafka").bootstrap)
        return
    from barnabas.testing import Broker

    # As the Apache Kafka node of the tests has it: a first member need not wait for others.
    overrides = {
        "group.initial.rebalance.delay.ms": 0,
        **KEEPS_ALL,
        **SHARES_SOON,
    }
    with Broker(overrides=overrides) as ours:
        yield Served("barnabas", ours.bootstrap)


@pytest.fixture
def fresh_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Names of topics that nobody used, telling which test they belong to."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.originalname)[:60]
    return lambda: f"{stem}.{next(_numbers)}"


@pytest.fixture
def new_topic(broker: Served, fresh_name: Callable[[], str]) -> NewTopicName:
    """Makes a topic and returns its name when its leaders serve it."""

    def make(partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        name = fresh_name()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
        admin.create_topics([topic])[name].result(READY_TIMEOUT_S)
        wait_until_served(broker, name, partitions)
        return name

    return make


def wait_until_served(broker: Served, topic: str, partitions: int) -> None:
    """Metadata may show a new topic a moment before its leaders serve it."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "ready"})
    try:
        for partition in range(partitions):
            while True:
                try:
                    consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=5)
                    break
                except KafkaException:
                    if time.monotonic() > deadline:
                        raise
    finally:
        consumer.close()
