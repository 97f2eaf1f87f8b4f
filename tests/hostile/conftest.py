"""A broker in a process of its own, and an honest client at work beside the hostile ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psutil
import pytest

from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.waiting import wait_until

from .worker import Worker

MIB = 1 << 20
Starter = Callable[..., AbstractContextManager["Broker | ApacheKafka"]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "start" in metafunc.fixturenames:
        kinds: list[object] = ["barnabas"]
        if metafunc.config.getoption("--apache"):
            kinds.append(pytest.param("apache", marks=pytest.mark.java))
        metafunc.parametrize("start", kinds, indirect=True)


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Starter:
    """Starts a broker with settings of the test's own."""
    if request.param == "apache":
        request.getfixturevalue("java")
        return lambda **settings: ApacheKafka(overrides=dotted(settings))
    return lambda **settings: Broker(overrides=dotted(settings), in_process=False)


def dotted(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


@pytest.fixture
def ours() -> Iterator[Broker]:
    """Our broker, where its memory is looked at: a JVM takes its heap whenever it likes."""
    with Broker(in_process=False) as broker:
        broker.create_topic("honest")
        yield broker


@contextmanager
def honest_work(port: int, topic: str) -> Iterator[Worker]:
    """Work that must go on during the block, and is checked at its end."""
    worker = Worker(port, topic)
    worker.start()
    wait_until(lambda: worker.rounds > 20 or worker.error is not None)
    yield worker
    before = worker.rounds
    wait_until(lambda: worker.rounds > before + 20 or worker.error is not None)
    worker.finish()


def resident_bytes(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)
