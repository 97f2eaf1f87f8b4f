"""New topics of a pattern and new partitions are read while an application runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication
from tests.streams.spark.test_starting_and_isolation import copies, outputs, run_here

from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.blocking import run
from barnabas.plans.interpreter.records import Output
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.streams import StreamsBuilder
from barnabas.streams.spark.conductor import Conductor
from barnabas.streams.spark.queries_of_plan import queries_of
from barnabas.streams.spark.renewing import PlanQueries
from barnabas.testing.broker import Broker

SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


@dataclass
class Running:
    application: LocalApplication
    now: float = 0.0

    def __post_init__(self) -> None:
        found = self.application
        self.conductor = Conductor(None, found.client, launch=run_here)  # type: ignore[arg-type]
        self.queries = PlanQueries(
            found.plan,
            lambda: queries_of(found.plan, found.settings, found.cluster, offset_reset="latest"),
            found.cluster,
            self.conductor,
            every_s=300,
            clock=lambda: self.now,
        )

    def run(self) -> None:
        self.conductor.run_until_idle(SECONDS_MAX)

    def look(self) -> None:
        self.now += 301
        self.queries.look_if_due()
        self.run()


def more_partitions(application: LocalApplication, topic: str, count: int) -> None:
    run(TopicAdmin(application.cluster).create_partitions({topic: count}))
    run(application.cluster.topics([topic]))


def write_to(application: LocalApplication, topic: str, partition: int, value: str) -> None:
    application.write([Output(topic, b"k", value.encode(), 1, (), partition)])


@pytest.mark.parametrize("once", [True, False])
def test_new_partitions_are_read_from_their_first_record(broker: Broker, tmp_path: Path, once: bool) -> None:
    name = f"wider-{once}".lower()
    with LocalApplication(broker, copies(name).build(), tmp_path, is_exactly_once=once) as application:
        application.create(f"{name}-in", f"{name}-out", partitions=1)
        running = Running(application)
        [old] = running.queries.start()
        write_to(application, f"{name}-in", 0, "first")
        running.run()
        more_partitions(application, f"{name}-in", 3)
        write_to(application, f"{name}-in", 2, "before the look")
        running.queries.look_if_due()  # not yet
        running.run()
        assert outputs(application) == ["first"]
        running.look()
        write_to(application, f"{name}-in", 1, "after it")
        running.run()
        assert outputs(application) == ["after it", "before the look", "first"]
        [query] = running.conductor.queries
        assert (query.error, query.records, query.batches >= old.batches) == (None, 3, True)
        running.conductor.close()


def test_new_topics_of_a_pattern_are_read(broker: Broker, tmp_path: Path) -> None:
    builder = StreamsBuilder("matching")
    builder.stream(pattern="matching-in-.*", value=str).to("matching-out")
    with LocalApplication(broker, builder.build(), tmp_path) as application:
        application.create("matching-in-a", "matching-out", partitions=1)
        running = Running(application)
        running.queries.start()
        write_to(application, "matching-in-a", 0, "a")
        running.run()
        application.create("matching-in-b", partitions=2)
        running.look()
        write_to(application, "matching-in-b", 1, "b")
        running.run()
        assert outputs(application) == ["a", "b"]
        running.conductor.close()


def test_a_changelog_that_does_not_fit_is_the_error_of_its_query(broker: Broker, tmp_path: Path) -> None:
    builder = StreamsBuilder("narrow")
    builder.stream("narrow-in", value=str).group_by_key().count().to_stream().to("narrow-out", value=int)
    builder.stream("narrow-other", value=str).to("narrow-out")
    with LocalApplication(broker, builder.build(), tmp_path) as application:
        application.create("narrow-in", "narrow-other", "narrow-out", partitions=1)
        running = Running(application)
        running.queries.start()
        running.run()
        more_partitions(application, "narrow-in", 2)
        running.look()
        counting, copying = running.conductor.queries
        assert "has 1 partitions, the plan needs 2" in (counting.error or "")
        with pytest.raises(KafkaError) as caught:
            running.conductor.restart(counting)
        assert caught.value.code == ErrorCode.INVALID_PARTITIONS
        write_to(application, "narrow-other", 0, "still")
        running.run()
        assert copying.error is None
        assert outputs(application) == ["still"]
        running.conductor.close()
