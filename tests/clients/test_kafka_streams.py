"""Kafka Streams with `group.protocol=streams` (KIP-1071): Java applications, killed and moved."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from barnabas.testing import Broker
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

from .streams_app import BROKER_SETTINGS, Application, require_streams

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
STREAMS = "group.protocol=streams"
WORDS = ["to", "be", "or", "not"]
SETTLED_TIMEOUT_S = 90.0
_numbers = itertools.count(1)

Make = Callable[..., Application]


@pytest.fixture(scope="module")
def streams_broker() -> Iterator[Broker]:
    with Broker(overrides=BROKER_SETTINGS) as running:
        yield running


@pytest.fixture
def application(java: None, streams_broker: Broker, tmp_path: Path) -> Iterator[Make]:
    """Makes a word count with topics of its own."""
    require_streams()
    made: list[Application] = []

    def make(partitions: int = 2, standbys: int = 0) -> Application:
        name = f"words-{next(_numbers)}"
        for topic in (f"{name}.in", f"{name}.out"):
            streams_broker.create_topic(topic, partitions=partitions)
        if standbys:
            set_standbys(streams_broker.bootstrap, name, standbys)
        found = Application(streams_broker.bootstrap, tmp_path / name, name, f"{name}.in", f"{name}.out")
        made.append(found)
        return found

    yield make
    for each in made:
        each.stop()


def set_standbys(bootstrap: str, group: str, count: int) -> None:
    entry = ConfigEntry(
        "streams.num.standby.replicas", str(count), incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def wait_for_tasks(expected: int, *instances: object, kind: str = "active") -> None:
    def has_all() -> bool:
        found = [each.tasks(kind) for each in instances]  # type: ignore[attr-defined]
        return len(set().union(*found)) == expected == sum(map(len, found)) and all(found)

    wait_until(has_all, SETTLED_TIMEOUT_S, f"{expected} {kind} tasks over {len(instances)} instances")


def test_a_word_count_runs_with_the_streams_protocol(application: Make, streams_broker: Broker) -> None:
    app = application()
    app.write(WORDS, 10)
    app.start(STREAMS)
    app.wait_until_counted()
    topics = AdminClient({"bootstrap.servers": streams_broker.bootstrap}).list_topics(timeout=10).topics
    internal = {
        name: len(topic.partitions)
        for name, topic in topics.items()
        if name.endswith(("-repartition", "-changelog"))
    }
    assert sorted(internal.values()) == [2, 2], internal


@pytest.mark.long
def test_a_standby_takes_over_when_an_instance_is_killed(application: Make) -> None:
    app = application(standbys=1)
    app.write(WORDS, 20)
    one = app.start(STREAMS, "application.server=localhost:1")
    two = app.start(STREAMS, "application.server=localhost:2")
    wait_for_tasks(4, one, two)
    wait_for_tasks(2, one, two, kind="standby")
    wait_until(lambda: len(two.ask("hosts")) == 2, SETTLED_TIMEOUT_S, "both endpoints are known")
    app.write(WORDS, 20)
    one.kill()
    app.write(WORDS, 20)
    wait_for_tasks(4, two)
    app.wait_until_counted()
    three = app.start(STREAMS)
    wait_for_tasks(4, two, three)
    app.write(WORDS, 20)
    app.wait_until_counted()


@pytest.mark.long
def test_an_application_moves_from_the_classic_to_the_streams_protocol(application: Make) -> None:
    app = application()
    app.write(WORDS, 20)
    old = app.start("group.protocol=classic", state="kept")
    app.wait_until_counted()
    old.close()
    app.write(WORDS, 20)
    new = app.start(STREAMS, state="kept")
    app.wait_until_counted()
    wait_for_tasks(4, new)
    new.close()
    app.write(WORDS, 20)
    app.start("group.protocol=classic", state="kept")
    app.wait_until_counted()


@pytest.mark.long
def test_one_instance_shuts_the_whole_application_down(application: Make) -> None:
    app = application()
    one, two = app.start(STREAMS), app.start(STREAMS)
    wait_for_tasks(4, one, two)
    one.ask("fail")
    app.write(WORDS, 20)
    wait_until(lambda: two.ask("state") == ["ERROR"], SETTLED_TIMEOUT_S, "the other instance stops")


@pytest.mark.long
def test_an_application_counts_on_while_coordinators_are_killed(java: None, tmp_path: Path) -> None:
    require_streams()
    settings = {**BROKER_SETTINGS, "default.replication.factor": "3", "min.insync.replicas": "2"}
    with Cluster(combined=3, overrides=settings) as cluster:
        for topic in ("in", "out"):
            cluster.create_topic(topic, 3, 3)
        set_standbys(cluster.bootstrap, "words", 1)
        app = Application(cluster.bootstrap, tmp_path, "words", "in", "out")
        try:
            one, two = app.start(STREAMS), app.start(STREAMS)
            app.write(WORDS, 20)
            wait_for_tasks(6, one, two)
            for node in cluster.brokers:
                node.kill()
                app.write(WORDS, 10)
                node.start()
                app.write(WORDS, 10)
            wait_for_tasks(6, one, two)
            app.wait_until_counted()
        finally:
            app.stop()
