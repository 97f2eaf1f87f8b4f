"""One broker for a file's tests; each test has a cluster of servers of its own name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from both_brokers import KEEPS_ALL

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with Broker(overrides={**KEEPS_ALL, "group.initial.rebalance.delay.ms": 0}) as ours:
        yield ours.bootstrap


@pytest.fixture
def service_id() -> str:
    """A name that nobody used."""
    return f"test{next(_numbers)}_"
