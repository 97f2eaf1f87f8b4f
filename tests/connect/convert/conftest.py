"""A registry for the tests of converters, which are closed after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect.convert.made_converters import OPEN
from registry.running import instant, running


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(instant) as found:
        yield found


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()
