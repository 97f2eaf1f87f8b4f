from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker(overrides={"log.flush.scheduler.interval.ms": 50}) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.replace("[", "-").replace("]", "")
    broker.create_topic(name, partitions=2)
    return name
