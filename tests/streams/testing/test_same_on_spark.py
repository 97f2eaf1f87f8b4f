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
from tests.streams.spark.local import KEEPS_OLD_RECORDS
from tests.streams.spark.on_spark import run_on_spark
from tests.streams.testing import oracle
from tests.streams.testing.topologies import TOPOLOGIES, plan_of

from barnabas.plans.interpreter.records import Output
from barnabas.plans.nodes import Node, Sink, Source
from barnabas.plans.plan import Plan
from barnabas.streams import TestDriver
from barnabas.streams.spark.task_port import InputRecord
from barnabas.streams.spark.task_records import merged
from barnabas.testing.broker import Broker

# Timers by the wall clock; one side that comes through a topic, so a batch later; an aggregation of every
# update of another one.
EXCLUDED = {"process", "cogroup_keys", "chained_windows"}
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
    if name.startswith("global"):  # a global table is read before a batch
        steps = sorted(steps, key=lambda step: step[1] != "two")
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
    inputs = {f"app-{name}": [record_of(name, *step[1:]) for step in steps[name]] for name in names}
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as broker:
        once = guarantee == "exactly once"
        results = run_on_spark(broker, tmp_path, list(plans.values()), inputs, once=once)
    wrong = {}
    for name in names:
        found = [(text(each.key), text(each.value), each.timestamp) for each in results[f"{name}-out"]]
        wanted = expected(name, plans[name], steps[name])
        if name.startswith("foreign"):  # answers come when they come: the rows that are left count
            same = rows_left(found) == rows_left(wanted)
        else:
            same = found == wanted or last(found) == last(wanted)
        if not same:
            wrong[name] = (len(found), len(wanted), found[:3], wanted[:3])
    assert wrong == {}


def rows_left(rows: Iterable[Row]) -> dict[Any, Any]:
    return {key: value for key, (value, _) in last(rows).items() if value is not None}


def record_of(name: str, topic: str, key: str | None, value: str | None, time: int) -> Output:
    data = [None if each is None else each.encode() for each in (key, value)]
    return Output(f"{name}-{topic}", data[0], data[1], time, partition=0)


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
