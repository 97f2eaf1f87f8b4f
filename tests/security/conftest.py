"""Fixtures of the tests of security."""

from collections.abc import Iterator

import pytest

from .kdc import Kdc, missing
from .locked_broker import Locked, add_users, locked_apache, locked_broker
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


@pytest.fixture(scope="module")
def locked(request: pytest.FixtureRequest, provider: Provider) -> Locked:
    kdc: Kdc | None = request.getfixturevalue("kdc") if missing() is None else None
    return Locked(provider, kdc)


@pytest.fixture(
    scope="module",
    params=["barnabas", pytest.param("apache", marks=[pytest.mark.long, pytest.mark.java])],
)
def running(request: pytest.FixtureRequest, locked: Locked) -> Iterator[Locked]:
    """The settings of a broker that runs with them."""
    if request.param == "apache":
        request.getfixturevalue("java")
        broker = locked_apache(locked)
    else:
        broker = locked_broker(locked)
    with broker:
        add_users(broker.bootstrap)
        yield locked
