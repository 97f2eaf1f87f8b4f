"""Brokers that can be killed, and how often they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--kills"))


@pytest.fixture
def broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker in a process of its own, which can be killed, with the `SETTINGS` of the test's module."""
    with Broker(tmp_path / "data", overrides=request.module.SETTINGS, in_process=False) as made:
        yield made
