"""Random records through Spark and a broker give what they give in the test driver, which is Java's.

All topologies run in one application of Spark at once. Records of two topics are piped into the driver in
the order in which a task takes them. Over columns an aggregation tells one update of a key in a batch, so
there last values are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark_sessions import STARTS_FAST
from tests.streams.spark.local import KEEPS_OLD_RECORDS
from tests.streams.testing import oracle
from tests.streams.testing.topologies import TOPOLOGIES, plan_of

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.plans.interpreter.records import Output
from barnabas.plans.nodes import Node, Sink, Source
from barnabas.plans.plan import Plan
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.fetcher import LATEST, OffsetRange
from barnabas.streams import TestDriver
from barnabas.streams.spark.conductor import Conductor
from barnabas.streams.spark.queries_of_plan import queries_of
from barnabas.streams.spark.task_batches import write
from barnabas.streams.spark.task_port import InputRecord, TaskSettings
from barnabas.streams.spark.task_records import merged, read_range
from barnabas.testing.broker import Broker

# Its timers run by the wall clock; one side of the other comes through a topic, so a batch later.
EXCLUDED = {"process", "cogroup_keys"}
RECORDS = 200
Row = tuple[Any, Any, int]


def on_topics_of(plan: Plan, prefix: str) -> Plan:
    """The plan with topics of its own, where they are not internal."""

    def renamed(node: Node) -> Node:
        if isinstance(node, Source) and not node.is_internal and not node.carries_changes:
            return replace(node, topics=tuple(f"{prefix}-{topic}" for topic in node.topics))
        if isinstance(node, Sink) and not node.is_internal and isinstance(node.topic, str):
            return replace(node, topic=f"{prefix}-{node.topic}")
        return node

    return replace(plan, nodes=tuple(map(renamed, plan.nodes)))


def in_order_of_a_task(steps: list[oracle.Step]) -> list[oracle.Step]:
    """Records of several topics as a batch takes them: the oldest head first."""
    topics = sorted({step[1] for step in steps})
    parts = []
    for topic in topics:
        some = [step for step in steps if step[1] == topic]
        numbered = [InputRecord(None, None, step[4], offset=at) for at, step in enumerate(some)]
        parts.append((topic, numbered, some))
    by_topic = {topic: some for topic, _, some in parts}
    order = merged([(topic, numbered) for topic, numbered, _ in parts])
    return [by_topic[topic][record.offset] for topic, record in order]


def expected(name: str, plan: Plan, steps: list[oracle.Step]) -> list[Row]:
    with TestDriver(plan) as driver:
        for _, topic, key, value, time in steps:
            driver.input(f"{name}-{topic}", value=str).pipe(key, value, time)
        return [
            (each.key, each.value, each.timestamp) for each in driver.output(f"{name}-out", value=str).read()
        ]


def last(rows: Iterable[Row]) -> dict[Any, Any]:
    return {key: (value, time) for key, value, time in rows}


@pytest.mark.long
@pytest.mark.parametrize("guarantee", ["exactly once", "at least once"])
def test_all_topologies_on_spark(tmp_path: Path, guarantee: str) -> None:
    names = [name for name in TOPOLOGIES if name not in EXCLUDED]
    plans = {name: on_topics_of(plan_of(name, f"app-{name}"), name) for name in names}
    steps = {name: in_order_of_a_task(oracle.steps(name, 3, RECORDS)) for name in names}
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as broker:
        client = ClientSettings(broker.bootstrap, isolation_level="read_committed")
        cluster = WorkerCluster(client)
        spark = session(SparkSettings("local[2]", settings=STARTS_FAST), sets=())
        producer = Transaction(cluster)
        run(producer.init())
        conductor = Conductor(spark, client)
        for name in names:
            for topic in sorted({*(step[1] for step in steps[name]), *topics_of(plans[name], name), "out"}):
                run(TopicAdmin(cluster).create_topic(NewTopic(f"{name}-{topic}", 1, 1)))
            records = [
                Output(
                    f"{name}-{topic}",
                    None if key is None else key.encode(),
                    None if value is None else value.encode(),
                    time,
                    partition=0,
                )
                for _, topic, key, value, time in steps[name]
            ]
            settings = TaskSettings(
                f"app-{name}", client, str(tmp_path), is_exactly_once=guarantee == "exactly once"
            )
            write(settings, cluster, producer, records)
            for query in queries_of(plans[name], settings, cluster):
                conductor.add(query)
        conductor.run_until_idle(240)
        assert {query.name: query.error for query in conductor.queries if query.error} == {}
        wrong = {}
        for name in names:
            place = TopicPartition(f"{name}-out", 0)
            end = cluster.offsets({place: LATEST})[place]
            found = [
                (text(record.key), text(record.value), record.timestamp)
                for record in read_range(cluster, OffsetRange(place.topic, b"", 0, 0, end), 10_000)
            ]
            wanted = expected(name, plans[name], steps[name])
            if found != wanted and last(found) != last(wanted):
                wrong[name] = (len(found), len(wanted), found[:3], wanted[:3])
        conductor.close()
        run(cluster.close())
        assert wrong == {}


def topics_of(plan: Plan, name: str) -> list[str]:
    sources = [node for node in plan.nodes if isinstance(node, Source) and not node.is_internal]
    names = [topic for node in sources if not node.carries_changes for topic in node.topics]
    return [topic.removeprefix(f"{name}-") for topic in names]


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
