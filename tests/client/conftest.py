"""The broker that the client is tried on: ours, and Apache Kafka too with --apache."""

import asyncio
import itertools
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from both_brokers import KEEPS_ALL, SHARES_SOON, parametrize_broker

_numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    from barnabas.testing import Broker

    with Broker(overrides={**KEEPS_ALL, **SHARES_SOON}) as ours:
        yield ours.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that nobody used."""
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.originalname)[:60]
    return f"{stem}-{next(_numbers)}"


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    return asyncio.run
