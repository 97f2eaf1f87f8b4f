"""Fixtures of the tests of security."""

from collections.abc import Iterator

import pytest

from .kdc import Kdc, missing
from .provider import Provider


@pytest.fixture(scope="session")
def kdc() -> Iterator[Kdc]:
    """A KDC for the whole run, which this process and its children use. Skips where Kerberos is missing."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with Kdc() as started, pytest.MonkeyPatch.context() as patch:
        for name, value in started.environment.items():
            patch.setenv(name, value)
        yield started


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    with Provider() as started:
        yield started
