"""The same batches through the interpreter and through columns: what each wrote, and its pages."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from barnabas.plans.interpreter import loading
from barnabas.plans.interpreter.records import Record
from barnabas.plans.interpreter.task import Task
from barnabas.plans.plan import Plan, Subtopology
from barnabas.plans.stores import MemoryBackend
from barnabas.spark.reading.columns import schema_of
from barnabas.streams import StreamsBuilder
from barnabas.streams.columns.logic import run_by_columns
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.task_records import COLUMNS, in_order

assert loading.OPERATORS
Given = tuple[bytes | None, bytes | None, int]  # key, value, timestamp
Latest = dict[tuple[str, bytes | None], tuple[bytes | None, int]]


def plan(build: Callable[[StreamsBuilder], None]) -> Plan:
    builder = StreamsBuilder("app")
    build(builder)
    return builder.build()


def part(topic: str, records: list[Given]) -> Part:
    keys, values, times = zip(*records, strict=True)
    count = len(records)
    columns: dict[str, Any] = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([time * 1000 for time in times]).cast(pa.timestamp("us", tz="UTC")),
        "headers": pa.nulls(count, schema_of(("headers",)).field(0).type),
    }
    arrays = [columns[name] for name in COLUMNS]
    return Part(topic, 0, pa.RecordBatch.from_arrays(arrays, schema=schema_of(COLUMNS)))


@dataclass
class Side:
    """One of the two: its state, the last value of each key of each topic, and all that it wrote."""

    subtopology: Subtopology
    globals: Mapping[str, Any]
    backend: MemoryBackend = field(default_factory=MemoryBackend)
    latest: Latest = field(default_factory=dict)
    written: list[tuple[str, bytes | None, bytes | None, int]] = field(default_factory=list)

    def task(self) -> Task:
        return Task(self.subtopology, self.backend, application_id="app", global_states=self.globals)

    def take(self, topic: str, key: bytes | None, value: bytes | None, time: int) -> None:
        self.latest[topic, key] = (value, time)
        self.written.append((topic, key, value, time))


class Both:
    """A sub-topology, run twice."""

    def __init__(self, plan: Plan, number: int = 0, globals: Mapping[str, Any] | None = None) -> None:
        some = plan.subtopologies[number]
        self.interpreter, self.columns = Side(some, globals or {}), Side(some, globals or {})

    def run(self, parts: list[Part]) -> None:
        side = self.interpreter
        task = side.task()
        outputs = task.process_batch((topic, Record(*record)) for topic, record in in_order(parts))
        for each in outputs:
            side.take(each.topic, each.key, each.value, each.timestamp)
        side = self.columns
        tables = run_by_columns(side.task, parts)
        assert tables is not None, "the batch ran record by record"
        for table in tables:
            columns = [table.column(name).to_pylist() for name in ("topic", "key", "value")]
            times = table.column("timestamp").cast(pa.int64()).to_pylist()
            for topic, key, value, time in zip(*columns, times, strict=True):
                side.take(topic, key, value, time // 1000)

    def check(self) -> None:
        assert self.columns.latest == self.interpreter.latest
        assert self.columns.backend.pages == self.interpreter.backend.pages


def global_state(plan: Plan, records: list[Given]) -> dict[str, Any]:
    """The stores of a plan's global tables, with records of their topics."""
    [some] = [each for each in plan.subtopologies if each.is_global]
    task = Task(some, MemoryBackend(), application_id="app")
    for record in records:
        task.process(some.source_topics[0], Record(*record))
    return dict(task.states)


def random_records(
    rng: random.Random, count: int, values: list[bytes | None], *, null_keys: float = 0.1, start: int = 0
) -> list[Given]:
    """Records out of order, with null keys."""
    found: list[Given] = []
    now = start
    for _ in range(count):
        now += rng.choice((0, 0, 1, 2, 5))
        key = None if rng.random() < null_keys else rng.choice((b"a", b"b", b"cc", b"", b"a longer key"))
        found.append((key, rng.choice(values), max(0, now - rng.choice((0, 0, 1, 4, 16, 40)))))
    return found
