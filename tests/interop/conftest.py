"""Our broker for the whole folder, set up like the Apache Kafka node it is compared with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def our_port() -> Iterator[int]:
    from barnabas.testing import Broker

    with Broker() as broker:
        yield broker.port
