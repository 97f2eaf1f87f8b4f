"""Members added, paused and killed: every record is processed at least once, commits never move back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Served, wait_until_served
from .crowd import Crowd

# Members of the consumer protocol are missed after a moment; a classic client says itself how long.
IMPATIENT = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
}
PARTITIONS = 4


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    if request.param == "apache":
        request.getfixturevalue("java")
        from barnabas.testing.apache import ApacheKafka

        with ApacheKafka(overrides=IMPATIENT, heap="512M") as kafka:
            yield Served("apache", kafka.bootstrap)
        return
    from barnabas.testing import Broker

    with Broker(overrides=IMPATIENT, in_process=False) as ours:
        yield Served("barnabas", ours.bootstrap)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds: list[object] = ["barnabas"]
    if metafunc.config.getoption("--apache"):
        kinds.append(pytest.param("apache", marks=pytest.mark.java))
    metafunc.parametrize("served", kinds, indirect=True, scope="module")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "way", [pytest.param("range", marks=pytest.mark.long), "cooperative-sticky", "consumer"]
)
def test_members_are_added_paused_and_killed(served: Served, way: str, tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = f"crowd.{way}"
    admin = AdminClient({"bootstrap.servers": served.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    wait_until_served(served, topic, PARTITIONS)
    with Crowd(served.bootstrap, topic, PARTITIONS, way, tmp_path) as crowd:
        first = crowd.add()
        crowd.progress()
        second = crowd.add()
        crowd.progress()
        crowd.pause(first)  # until the others go on without it
        crowd.progress()
        third = crowd.add()
        crowd.resume(first)
        crowd.progress()
        crowd.kill(second)
        crowd.progress()
        third.terminate()
        third.wait(30)
        crowd.progress()
        crowd.finish()
