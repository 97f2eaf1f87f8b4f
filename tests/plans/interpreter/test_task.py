"""A task runs stateless operators and counts, keeps its state in a backend, and survives a new start."""

from __future__ import annotations

from barnabas.plans import nodes as n
from barnabas.plans.aggregates import BuiltIn, BuiltIns
from barnabas.plans.expressions import col, key, struct, value
from barnabas.plans.interpreter import loading
from barnabas.plans.interpreter.records import Output, Record
from barnabas.plans.interpreter.task import Task
from barnabas.plans.plan import Plan
from barnabas.plans.serdes import PlainSerde
from barnabas.plans.stores import MemoryBackend, StoreKind, StoreSpec

TEXT = PlainSerde("string", str.encode, bytes.decode)
LONG = PlainSerde("int64", lambda x: x.to_bytes(8, "big"), lambda b: int.from_bytes(b, "big"))
assert loading.OPERATORS


def count_plan() -> Plan:
    return Plan(
        nodes=(
            n.Source(name="source", topics=("in",), key_serde=TEXT, value_serde=TEXT),
            n.Filter(name="filter", parents=("source",), predicate=value() != "no"),
            n.StreamAggregate(
                name="count",
                parents=("filter",),
                store="counts",
                aggregate=BuiltIns(((None, BuiltIn("count")),)),
            ),
            n.TableToStream(name="stream", parents=("count",)),
            n.Sink(name="sink", parents=("stream",), topic="out", key_serde=TEXT, value_serde=LONG),
        ),
        stores={"counts": StoreSpec("counts", StoreKind.TIMESTAMPED, TEXT, LONG)},
        application_id="app",
    )


def record(key: str | None, value: str | None, timestamp: int) -> Record:
    return Record(None if key is None else key.encode(), None if value is None else value.encode(), timestamp)


def test_a_count_goes_on_where_the_last_task_stopped() -> None:
    backend = MemoryBackend()
    plan = count_plan()
    for expected in (1, 2):
        task = Task(plan.subtopologies[0], backend, application_id="app")
        found = task.process_batch([("in", record("a", "x", 5)), ("in", record("a", "no", 6))])
        count = expected.to_bytes(8, "big")
        assert found == [
            Output("out", b"a", count, 5),
            Output("app-counts-changelog", b"a", count, 5, (), 0, True),
        ]
    assert task.stream_time == 6


def test_null_keys_and_values_are_dropped_and_counted() -> None:
    task = Task(count_plan().subtopologies[0], MemoryBackend())
    assert task.process("in", record(None, "x", 1)) == []
    assert task.process("in", record("a", None, 1)) == []
    assert task.dropped == {"null key or value": 1}  # null != "no" is null, so the filter took the other one


def test_expressions_select_and_compute() -> None:
    from barnabas.plans.evaluation import compile_expression

    row = struct(user=key(), total=col("a") * 2 + 1, missing=col("b") > 3)
    assert compile_expression(row)(("k", {"a": 4}, 0, None, None)) == {
        "user": "k",
        "total": 9,
        "missing": None,
    }
