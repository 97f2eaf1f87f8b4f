"""A conductor without Spark: queries keep the offsets at which they began, and fail alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication

from barnabas.client.admin.acls import AclAdmin
from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType
from barnabas.streams import StreamsBuilder
from barnabas.streams.spark.conductor import Conductor, Query
from barnabas.streams.spark.jobs import PickledLogic, run_one
from barnabas.streams.spark.queries_of_plan import queries_of
from barnabas.streams.spark.task_port import TaskBatch, TaskResult, TaskSettings
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


def run_here(settings: TaskSettings, logic: PickledLogic, batches: Sequence[TaskBatch]) -> list[TaskResult]:
    return [run_one(settings, logic, batch) for batch in batches]


def fail(settings: TaskSettings, logic: PickledLogic, batches: Sequence[TaskBatch]) -> list[TaskResult]:
    return [TaskResult(batch.task, error="out of memory") for batch in batches]


def copies(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    builder.stream(f"{name}-in", value=str).to(f"{name}-out")
    return builder


def latest_queries(application: LocalApplication) -> list[Query]:
    return queries_of(application.plan, application.settings, application.cluster, offset_reset="latest")


def outputs(application: LocalApplication) -> list[str]:
    return sorted(value for _, value, _ in application.read(f"{application.plan.application_id}-out"))


@pytest.mark.parametrize("once", [True, False])
def test_latest_stays_where_it_was_at_the_first_start(broker: Broker, tmp_path: Path, once: bool) -> None:
    name = f"pinned-{once}".lower()
    with LocalApplication(broker, copies(name).build(), tmp_path, is_exactly_once=once) as application:
        application.create(f"{name}-in", f"{name}-out")
        application.produce(f"{name}-in", [("a", "before", 1), ("b", "before", 1)])
        launch: list[Callable[..., list[TaskResult]]] = [fail]
        conductor = Conductor(None, application.client, launch=lambda *batch: launch[0](*batch))  # type: ignore[arg-type]
        [query] = latest_queries(application)
        conductor.add(query)
        conductor.remove(query.name)  # paused before its first batch
        application.produce(f"{name}-in", [("a", "while paused", 2)])
        [query] = latest_queries(application)
        conductor.add(query)
        conductor.run_until_idle(SECONDS_MAX)
        assert query.error == "out of memory"
        application.produce(f"{name}-in", [("b", "while failed", 3)])
        launch[0] = run_here
        conductor.restart(query)
        conductor.run_until_idle(SECONDS_MAX)
        assert query.error is None
        assert outputs(application) == ["while failed", "while paused"]
        conductor.close()


def test_state_counts_once_behind_a_start_that_was_committed(broker: Broker, tmp_path: Path) -> None:
    builder = StreamsBuilder("once-pinned")
    counts = builder.stream("once-pinned-in", value=str).group_by_key().count()
    counts.to_stream().to("once-pinned-out", value=int)
    with LocalApplication(broker, builder.build(), tmp_path) as application:
        application.create("once-pinned-in", "once-pinned-out", partitions=1)
        application.produce("once-pinned-in", [("a", "before", 1)])
        conductor = Conductor(None, application.client, launch=run_here)  # type: ignore[arg-type]
        for query in latest_queries(application):
            conductor.add(query)
        for _ in range(2):
            application.produce("once-pinned-in", [("a", "x", 2)] * 3)
            conductor.run_until_idle(SECONDS_MAX)
        assert [query.error for query in conductor.queries] == [None]
        assert [value for _, value, _ in application.read("once-pinned-out", value=int)] == [3, 6]
        conductor.close()


def test_a_topic_whose_rights_were_taken_away_stops_its_query_only(tmp_path: Path) -> None:
    overrides = {
        **KEEPS_OLD_RECORDS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with (
        Broker(in_process=False, overrides=overrides) as broker,
        LocalApplication(broker, copies("denied").build(), tmp_path) as denied,
        LocalApplication(broker, copies("allowed").build(), tmp_path) as allowed,
    ):
        conductor = Conductor(None, denied.client, launch=run_here)  # type: ignore[arg-type]
        for application in (denied, allowed):
            name = application.plan.application_id
            application.create(f"{name}-in", f"{name}-out", partitions=1)
            for query in latest_queries(application):
                conductor.add(query)
        conductor.run_until_idle(SECONDS_MAX)
        run(AclAdmin(denied.cluster).create_acls([no_describe("denied-in")]))
        allowed.produce("allowed-in", [("a", "still", 1)])

        def is_refused() -> bool:
            conductor.run_until_idle(SECONDS_MAX)
            return conductor.queries[0].error is not None

        wait_until(is_refused, SECONDS_MAX)
        assert "TOPIC_AUTHORIZATION_FAILED" in (conductor.queries[0].error or "")
        conductor.run_until_idle(SECONDS_MAX)
        assert conductor.queries[1].error is None
        assert outputs(allowed) == ["still"]
        conductor.close()


def no_describe(topic: str) -> Rule:
    return Rule(
        ResourceType.TOPIC,
        topic,
        PatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        Operation.DESCRIBE,
        Permission.DENY,
    )


def made_again(application: LocalApplication, topic: str, records: int) -> None:
    run(TopicAdmin(application.cluster).delete_topics([topic]))
    wait_until(lambda: topic not in run(application.cluster.topics(None)), SECONDS_MAX)
    run(TopicAdmin(application.cluster).create_topic(NewTopic(topic, 1, 1)))
    application.produce(topic, [("a", "new", 2)] * records)


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_was_made_again_is_told_or_read_from_its_begin(
    broker: Broker, tmp_path: Path, fails: bool
) -> None:
    now = [0.0]
    name = f"again-{fails}".lower()
    with LocalApplication(broker, copies(name).build(), tmp_path) as application:
        application.create(f"{name}-in", f"{name}-out", partitions=1)
        application.produce(f"{name}-in", [("a", "old", 1)] * 10)
        settings = TaskSettings(
            name, application.client, str(tmp_path), is_exactly_once=True, fails_on_loss=fails
        )
        conductor = Conductor(None, application.client, launch=run_here, clock=lambda: now[0])  # type: ignore[arg-type]
        [query] = queries_of(application.plan, settings, application.cluster)
        conductor.add(query)
        conductor.run_until_idle(SECONDS_MAX)
        made_again(application, f"{name}-in", records=3)
        found = ["old"] * 10 if fails else ["new"] * 3 + ["old"] * 10

        for _ in range(200):  # a round may be over in a millisecond
            conductor.run_round()
        assert query.error is None
        assert outputs(application) == ["old"] * 10

        def is_noticed() -> bool:
            now[0] += 1
            conductor.run_round()
            return query.error is not None if fails else len(outputs(application)) == 13

        wait_until(is_noticed, SECONDS_MAX)
        conductor.run_until_idle(SECONDS_MAX)
        assert outputs(application) == found
        if fails:
            assert query.error == (
                f"{name}-in-0 ends at offset 3, committed is 10: the topic was made again"
                " or truncated. Reset the application, or set its offsets with streams-reset"
            )
        else:
            assert query.error is None
        conductor.close()


def test_a_query_is_removed_while_its_batch_runs(broker: Broker, tmp_path: Path) -> None:
    ends, began = threading.Event(), threading.Event()

    def slow(*batch: object) -> list[TaskResult]:
        began.set()
        ends.wait(SECONDS_MAX)
        return run_here(*batch)  # type: ignore[arg-type]

    with LocalApplication(broker, copies("removed").build(), tmp_path) as application:
        application.create("removed-in", "removed-out", partitions=1)
        application.produce("removed-in", [("a", "x", 1)])
        conductor = Conductor(None, application.client, launch=slow)  # type: ignore[arg-type]
        [query] = queries_of(application.plan, application.settings, application.cluster)
        conductor.add(query)
        conductor.run_round()
        assert began.wait(SECONDS_MAX)
        future = conductor.remove(query.name)
        assert isinstance(future, Future) and not future.done()
        [again] = queries_of(application.plan, application.settings, application.cluster)
        conductor.add(again)
        conductor.run_round()
        assert again.batches == 0  # it waits for the one that was removed
        ends.set()
        conductor.run_until_idle(SECONDS_MAX)
        assert (query.batches, again.error) == (0, None)
        assert outputs(application) == ["x"]
        conductor.close()
