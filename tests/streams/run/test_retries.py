"""A query that fails waits, starts again and is left at last; the others go on, the catalogue tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.spark_sessions import STARTS_FAST
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication

from barnabas.client.core.errors import ClientError
from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryState, QueryStatus
from barnabas.engine.places.place import place_at
from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.plans.interpreter.records import log_and_continue
from barnabas.plans.interpreter.task import Handlers
from barnabas.streams import StreamsBuilder
from barnabas.streams.run.retries import ATTEMPTS_MAX, Retries
from barnabas.streams.spark.conductor import Conductor, Query
from barnabas.streams.spark.queries_of_plan import queries_of
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(overrides=KEEPS_OLD_RECORDS, in_process=False) as ours:
        yield ours


def two_queries(name: str) -> StreamsBuilder:
    """One adds text to a number, which is a TypeError; the other is fine."""

    def add(text: Any) -> Any:
        return text if text != "bad" else text + 1

    builder = StreamsBuilder(name)
    builder.stream(f"{name}-one", value=str).map_values(add, value=str).to(f"{name}-one-out")
    builder.stream(f"{name}-two", value=str).to(f"{name}-two-out")
    return builder


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def status(folder: Path, application: str, query: str) -> QueryStatus:
    entry = Catalogue(place_at(str(folder))).application(application)
    assert entry is not None
    [program] = entry.programs
    return program.queries[query]


RECORDS = [("a", "good", 1), ("b", "bad", 2), ("c", "good", 3)]


def test_a_query_whose_handler_stops_it_gets_a_few_attempts(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, two_queries("few").build(), tmp_path) as application:
        application.create("few-one", "few-two", "few-one-out", "few-two-out", partitions=1)
        application.produce("few-one", RECORDS)
        with pytest.raises(AssertionError, match="TypeError"):
            application.run()
        failed, other = application.queries
        assert "processing of record few-one-0@1 failed in KSTREAM-MAPVALUES" in (failed.error or "")
        reporter = Reporter(place_at(str(tmp_path / "catalogue")), "few", "streams")
        conductor = Conductor(None, application.client)  # type: ignore[arg-type]
        conductor.add(failed)
        conductor.add(other)
        clock = Clock()
        retries = Retries(conductor, reporter, clock)
        delays: list[float] = []
        for _ in range(ATTEMPTS_MAX - 1):
            retries.look()
            assert failed.error is not None
            noticed = clock.now
            while failed.error is not None:
                clock.now += 0.5
                retries.look()
            delays.append(clock.now - noticed)
            application.run_once(failed)
        assert delays == [1, 2, 4, 8]
        for _ in range(10):
            retries.look()
            clock.now += 1000
        assert (failed.error is not None, other.error) == (True, None)
        reporter.close()
        conductor.close()
        found = status(tmp_path / "catalogue", "few", failed.name)
        assert (found.state, found.errors) == (QueryState.FAILED, ATTEMPTS_MAX)
        assert "starts again with the application" in found.detail
        assert "TypeError" in (found.last_error or "")


@dataclass
class Failing:
    """A conductor with one query that a handler stops, and brokers that are away at times."""

    query: Query
    is_away: bool = False
    restarts: int = 0

    @property
    def queries(self) -> list[Query]:
        return [self.query]

    def restart(self, query: Query) -> None:
        if self.is_away:
            raise ClientError("no broker answers")
        self.restarts += 1
        query.error, query.is_stopped_by_handler = None, False


def test_brokers_that_are_away_are_no_failures_of_the_handler(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, two_queries("away").build(), tmp_path) as application:
        application.create("away-one", "away-two", "away-one-out", "away-two-out", partitions=1)
        application.run()
        query = application.queries[0]
    conductor = Failing(query)
    reporter = Reporter(place_at(str(tmp_path / "catalogue")), "away", "streams")
    clock = Clock()
    retries = Retries(conductor, reporter, clock)  # type: ignore[arg-type]

    def fail() -> None:
        query.error, query.is_stopped_by_handler = "a function raised", True
        retries.look()

    def look_later() -> None:
        clock.now += 59
        retries.look()

    fail()
    conductor.is_away = True
    for _ in range(3 * ATTEMPTS_MAX):
        look_later()
    conductor.is_away = False
    for attempt in range(1, ATTEMPTS_MAX):
        clock.now += 61
        retries.look()
        assert conductor.restarts == attempt, "the outage has not used up the attempts"
        fail()
    for _ in range(5):
        clock.now += 61
        retries.look()
    assert conductor.restarts == ATTEMPTS_MAX - 1
    reporter.close()


def test_a_query_that_fails_otherwise_is_tried_until_it_works(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, two_queries("more").build(), tmp_path) as application:
        application.create("more-one", "more-two", "more-one-out", "more-two-out", partitions=1)
        application.run()
        failed = application.queries[0]
        reporter = Reporter(place_at(str(tmp_path / "catalogue")), "more", "streams")
        conductor = Conductor(None, application.client)  # type: ignore[arg-type]
        conductor.add(failed)
        clock = Clock()
        retries = Retries(conductor, reporter, clock)
        for _ in range(3 * ATTEMPTS_MAX):
            failed.error = "a leader is not there"
            retries.look()
            clock.now += 61
            retries.look()
            assert failed.error is None
        application.produce("more-one", RECORDS[:1])
        application.run_once(failed)
        assert len(application.read("more-one-out")) == 1
        reporter.close()
        conductor.close()


def test_a_handler_that_continues_drops_the_record(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, two_queries("drops").build(), tmp_path) as application:
        application.handlers = Handlers(processing=log_and_continue)
        application.create("drops-one", "drops-two", "drops-one-out", "drops-two-out", partitions=1)
        application.produce("drops-one", RECORDS)
        application.run()
        assert [key for key, _, _ in application.read("drops-one-out")] == ["a", "c"]
        assert application.queries[0].metrics.dropped == {"processing": 1}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_on_spark_the_other_query_goes_on(broker: Broker, tmp_path: Path) -> None:
    spark = session(SparkSettings("local[2]", settings=STARTS_FAST), sets=())
    with LocalApplication(broker, two_queries("spark").build(), tmp_path) as application:
        application.create("spark-one", "spark-two", "spark-one-out", "spark-two-out", partitions=1)
        application.produce("spark-one", RECORDS)
        reporter = Reporter(place_at(str(tmp_path / "catalogue")), "spark", "streams")
        conductor = Conductor(spark, application.client)
        for query in queries_of(application.plan, application.settings, application.cluster):
            conductor.add(query)
        failed, other = conductor.queries
        clock = Clock()
        retries = Retries(conductor, reporter, clock)

        def look() -> bool:
            conductor.run_round()
            retries.look()
            clock.now += 0.1
            return clock.now > 1000

        def goes_on() -> bool:
            look()
            return failed.error is not None and len(application.read("spark-two-out")) == 3

        wait_until(lambda: look() or failed.error is not None, 120)
        application.produce("spark-two", RECORDS)
        wait_until(goes_on, 120)
        conductor.close()
        reporter.close()
        found = status(tmp_path / "catalogue", "spark", failed.name)
        assert "TypeError" in (found.last_error or "")
        assert other.error is None
