"""Options and fixtures that several folders share: how much to run, and Apache Kafka as the reference."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from barnabas.testing import apache

pytest_plugins = ["lanes.plugin"]

# How long a property takes is the machine's business.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("short", settings.get_profile("patient"), max_examples=50)
settings.load_profile("patient")

# A shell lets what it starts in the background ignore interrupts, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("barnabas tests")
    group.addoption(
        "--apache",
        action="store_true",
        default=os.environ.get("BARNABAS_APACHE") == "1",
        help="run the client tests against Apache Kafka too (also BARNABAS_APACHE=1)",
    )
    group.addoption(
        "--long",
        action="store_true",
        default=os.environ.get("BARNABAS_LONG") == "1",
        help="also what takes a minute and more and is tested shorter elsewhere",
    )
    group.addoption("--record", action="store_true", help="write Apache Kafka's answers anew (tests/interop)")
    group.addoption("--kills", type=int, default=2, help="how often the crash tests kill -9 the broker")
    group.addoption("--soak-seconds", type=float, default=4.0, help="how long the soak tests run")
    group.addoption(
        "--histories", type=int, default=1, help="how many random histories pipelines live through"
    )
    group.addoption("--frames", type=int, default=20_000, help="how many hostile frames to send")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--long"):
        settings.load_profile("short")
    # Warnings are errors, those inside client libraries apart: they are not ours to mend.
    for package in ("kafka", "aiokafka", r"importlib\.resources"):
        config.addinivalue_line("filterwarnings", rf"ignore::DeprecationWarning:{package}\..*")
    # Threads that clients of earlier tests left behind use `random` while a strategy draws; it does not.
    config.addinivalue_line(
        "filterwarnings",
        "ignore:Do not use the `random` module inside:hypothesis.errors.HypothesisDeprecationWarning",
    )
    # kafka-python leaves the socket pair of its wake-ups to the garbage collector.
    config.addinivalue_line(
        "filterwarnings", r"ignore:unclosed <socket.socket fd=\d+, family=1,:ResourceWarning"
    )


# A timeout inside of Spark breaks the session for every test behind it: rather wait on a busy machine.
SPARK_FOLDERS = ("tests/pipeline/", "tests/spark/")
SPARK_TIMEOUT_S = 900


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SPARK_FOLDERS) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="--long runs it: it takes a minute and more")
        for item in items:
            if item.get_closest_marker("long") or not is_sample(item):
                item.add_marker(skip)


def is_sample(item: pytest.Item) -> bool:
    """A recording of Apache Kafka 4.3.1 stays true, so asking it again for a few of them is enough. Tests
    without such a recording always run."""
    marker = item.get_closest_marker("recorded")
    return marker is None or item.name.partition("[")[2].removesuffix("]") in marker.args


@pytest.fixture(scope="session")
def java() -> None:
    """Skips where Apache Kafka's jars cannot be run."""
    reason = apache.available()
    if reason is not None:
        pytest.skip(reason)
    apache.share_classes()


@pytest.fixture(scope="session")
def apache_kafka(java: None) -> Iterator[apache.ApacheKafka]:
    """One Apache Kafka node for the whole run; tests use topics of their own."""
    with apache.ApacheKafka() as kafka:
        yield kafka
