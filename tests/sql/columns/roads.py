"""A statement's plan, run record by record and over columns: records, pages, counts and log lines of both."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa
from tests.streams.columns.batches import Given, part

from barnabas.plans.interpreter.records import Record, TaskError
from barnabas.plans.interpreter.task import Task
from barnabas.plans.plan import Plan, Subtopology
from barnabas.plans.stores import MemoryBackend
from barnabas.sql.columns import loading
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.running.binding import bound
from barnabas.sql.running.processing_log import LogSettings, ProcessingLog
from barnabas.sql.testing import SqlTestDriver
from barnabas.streams.columns.logic import run_by_columns
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.task_records import in_order

assert loading.FORMS
Written = tuple[str, bytes | None, bytes | None, int]


def plan_of(*statements: str) -> Plan:
    """The plan of the last statement."""
    driver = SqlTestDriver(*statements[:-1])
    work = driver.prepare(statements[-1]).work
    return bound(work.plan, RegistryPlace())


@dataclass
class Side:
    """One of the two roads, with the state that it leaves behind."""

    subtopology: Subtopology
    backend: MemoryBackend = field(default_factory=MemoryBackend)
    written: list[Written] = field(default_factory=list)
    lines: list[Any] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    log: ProcessingLog = field(
        default_factory=lambda: ProcessingLog(LogSettings("Q", "log", includes_rows=True))
    )

    def task(self) -> Task:
        self.newest = Task(self.subtopology, self.backend, application_id="app", handlers=self.log.handlers())
        return self.newest

    def end(self) -> None:
        self.dropped.update(self.newest.dropped)
        for each in self.log.pop_lines():
            line = orjson.loads(each.value or b"")
            self.lines.append((line["logger"], line["message"]))

    @property
    def latest(self) -> dict[tuple[str, bytes | None], tuple[bytes | None, int]]:
        """The last record of each key; a tombstone of a key is as good as none."""
        found = {(topic, key): (value, time) for topic, key, value, time in self.written}
        return {place: row for place, row in found.items() if row[0] is not None}


class Roads:
    def __init__(self, plan: Plan, number: int = 0) -> None:
        some = plan.subtopologies[number]
        self.records, self.columns = Side(some), Side(some)

    def run(self, parts: list[Part]) -> list[Written]:
        """What the interpreter wrote in this batch."""
        side = self.records
        task = side.task()
        given = task.process_batch((topic, Record(*record)) for topic, record in in_order(parts))
        found = [(each.topic, each.key, each.value, each.timestamp) for each in given]
        side.written += found
        side.end()
        side = self.columns
        tables = run_by_columns(side.task, parts)
        assert tables is not None, "the batch ran record by record"
        for table in tables:
            columns = [table.column(name).to_pylist() for name in ("topic", "key", "value")]
            times = table.column("timestamp").cast(pa.int64()).to_pylist()
            side.written += zip(*columns, (each // 1000 for each in times), strict=True)
        side.end()
        return found

    def check(self, *, is_stateless: bool) -> None:
        one, two = self.records, self.columns
        if is_stateless:
            assert two.written == one.written
        assert two.latest == one.latest
        assert two.backend.pages == one.backend.pages
        assert two.dropped == one.dropped
        assert two.lines == one.lines


def run_all(plan: Plan, topic: str, batches: list[list[Given]], *, is_stateless: bool) -> list[Written]:
    """All sub-topologies of a plan, each with what the one before it wrote. Out: what the last one wrote."""
    given = {topic: batches}
    written: list[Written] = []
    for number, sub in enumerate(plan.subtopologies):
        roads = Roads(plan, number)
        out: dict[str, list[list[Given]]] = {}
        [source] = sub.source_topics
        for batch in given[source]:
            try:
                written = roads.run([part(source, batch)])
            except TaskError as error:
                assert "production of" in str(error)  # a row that the format of the sink cannot write
                return []
            by_topic: dict[str, list[Given]] = {}
            for name, key, value, time in written:
                by_topic.setdefault(name, []).append((key, value, time))
            for name, some in by_topic.items():
                out.setdefault(name, []).append(some)
        roads.check(is_stateless=is_stateless or number + 1 < len(plan.subtopologies))
        written = roads.records.written
        given = out
        if number + 1 < len(plan.subtopologies) and not set(
            plan.subtopologies[number + 1].source_topics
        ) <= set(given):
            break  # nothing went on
    return written
