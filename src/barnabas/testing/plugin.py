"""The pytest plugin: `barnabas_broker`, a broker for the session; `barnabas_topic`, a new topic for the
test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker


@pytest.fixture(scope="session")
def barnabas_broker() -> Iterator[Broker]:
    """A broker in this process, shared by the session's tests."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def barnabas_topic(barnabas_broker: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of one partition, named after the test, deleted afterwards."""
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in request.node.name)[:200]
    barnabas_broker.create_topic(name)
    yield name
    barnabas_broker.delete_topic(name)
