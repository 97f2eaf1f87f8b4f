"""A registry for a file of tests, and clients of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.schemas import SchemaRegistryClient
from both_brokers import parametrize_broker
from schemas.served import instant_registry

_numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc)


@pytest.fixture(scope="module")
def registry_url() -> Iterator[str]:
    with instant_registry() as url:
        yield url


@pytest.fixture
def ours(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient(registry_url) as client:
        yield client


@pytest.fixture
def theirs(registry_url: str) -> Iterator[Any]:
    from confluent_kafka.schema_registry import SchemaRegistryClient as Client

    client = Client({"url": registry_url})
    yield client
    client._rest_client.session.close()


@pytest.fixture
def topic() -> str:
    """A name that nobody used."""
    return f"topic-{next(_numbers)}"
