"""The broker that the client is tried on: ours, and Apache Kafka too with --apache."""

import asyncio
import itertools
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

NEVER_MS = 86_400_000

_numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "broker" in metafunc.fixturenames:
        kinds: list[object] = ["barnabas"]
        if metafunc.config.getoption("--apache"):
            kinds.append(pytest.param("apache", marks=pytest.mark.java))
        metafunc.parametrize("broker", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    from barnabas.testing import Broker

    # Tests produce records of any age; none of them is to disappear while they look.
    with Broker(
        overrides={"log.retention.check.interval.ms": NEVER_MS, "log.initial.task.delay.ms": NEVER_MS}
    ) as ours:
        yield ours.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that nobody used."""
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.originalname)[:60]
    return f"{stem}-{next(_numbers)}"


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    return asyncio.run
