"""Fixtures of the tests of security."""

from collections.abc import Iterator

import pytest

from .kdc import Kdc, missing


@pytest.fixture(scope="session")
def kdc() -> Iterator[Kdc]:
    """A KDC for the whole run; skips where Kerberos is not installed."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with Kdc() as started:
        yield started
