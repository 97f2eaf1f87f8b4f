from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker

NEVER_MS = 86_400_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # Tests produce records of any age; none of them is to disappear while they look.
    overrides = {
        "log.flush.scheduler.interval.ms": 50,
        "log.retention.check.interval.ms": NEVER_MS,
        "log.initial.task.delay.ms": NEVER_MS,
    }
    with Broker(overrides=overrides) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.replace("[", "-").replace("]", "")
    broker.create_topic(name, partitions=2)
    return name
