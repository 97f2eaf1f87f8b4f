"""A sub-topology over columns: nodes in their order, each over all rows of the batch.

In: a task of the interpreter (its stores and clocks), record batches of the sources' topics. Out: tables for
topics, changelogs included. A node whose step cannot be built makes the plan NotColumnar; a batch that a step
cannot take raises, and leaves the backend untouched. Does not know: transactions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.plans.interpreter.records import Output
from barnabas.plans.interpreter.task import Task
from barnabas.plans.nodes import Node, Source
from barnabas.streams.columns.column import Column, Fields, NotColumnar, Rows
from barnabas.streams.columns.origins import Origins

US_A_MS = 1000
Results = Rows | Mapping[str, Rows] | None  # rows for all children, or for each child its own
Step = Callable[[Rows], Results]
Build = Callable[["ColumnTask", Any], Step]
BUILDERS: dict[type[Node], Build] = {}


def builds(kind: type[Node]) -> Callable[[Build], Build]:
    """Mark the function that builds the steps of a kind of node."""

    def register(build: Build) -> Build:
        BUILDERS[kind] = build
        return build

    return register


@dataclass(frozen=True, slots=True)
class Part:
    """Records of one partition: key, value, offset, timestamp in microseconds, headers."""

    topic: str
    partition: int
    records: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Written:
    """Records for one topic. `order` is that of the records that led to them."""

    topic: str
    keys: pa.Array
    values: pa.Array
    times: Any
    order: Any
    headers: pa.Array | None = None
    partition: int | None = None


class ColumnTask:
    """Runs one batch."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.written: list[Written] = []
        self.results: dict[str, Results] = {}
        self.sides: dict[str, Any] = {}  # what stores of joins got, by store
        self.pending: list[Callable[[], None]] = []  # what writes to the backend, when all steps are done
        self.origins = Origins(task, (), ())
        self._steps: dict[str, Step] = {}

    @classmethod
    def built(cls, task: Task) -> ColumnTask:
        """Build a task with the steps of all nodes."""
        found = cls(task)
        found._steps = {node.name: found._step(node) for node in task.subtopology.nodes}
        return found

    def _step(self, node: Node) -> Step:
        try:
            build = BUILDERS[type(node)]
        except KeyError:
            raise NotColumnar(f"{type(node).__name__} runs record by record") from None
        return build(self, node)

    def compute(self, parts: Sequence[Part]) -> None:
        """All records of the batch, in the order in which the interpreter would take them. Nothing is written
        to the backend yet."""
        order = orders(parts)
        self.origins = Origins(self.task, parts, order)
        for place, node in enumerate(self.task.subtopology.nodes):
            given = self._given(node, parts, order)
            if given is not None and len(given):
                self.task.node_name, self.origins.node = node.name, place
                if self.task.node_counts is not None:
                    self.task.node_counts[node.name] += len(given)
                self.results[node.name] = self._steps[node.name](given)
        if self.task.punctuations:
            raise NotColumnar("timers run between records")
        self.origins.finish()  # asks handlers and writes log lines, so it comes behind all that may raise

    def write(self) -> list[pa.Table]:
        """Write state to the backend; the tables for topics."""
        for write in self.pending:
            write()
        self.task.flush()
        self.written += [of_outputs(some) for some in by_topic(self.task.pop_outputs())]
        return self._tables()

    def _given(self, node: Node, parts: Sequence[Part], order: Sequence[Any]) -> Rows | None:
        if isinstance(node, Source):
            some = [
                replace(rows_of(part.records, numbers), origins=self.origins)
                for part, numbers in zip(parts, order, strict=True)
                if reads(node, part.topic)
            ]
        else:
            some = [rows for parent in node.parents if (rows := self._of(parent, node.name)) is not None]
        some = [rows for rows in some if len(rows)]
        return None if not some else some[0] if len(some) == 1 else together(some)

    def _of(self, parent: str, child: str) -> Rows | None:
        found = self.results.get(parent)
        return found.get(child) if isinstance(found, Mapping) else found

    def rows_of_table(self, name: str) -> Rows | None:
        """The rows that a table got in this batch."""
        found = self.results.get(name)
        return found if isinstance(found, Rows) else None

    def _tables(self) -> list[pa.Table]:
        found: dict[str, list[Written]] = {}
        for each in self.written:
            found.setdefault(each.topic, []).append(each)
        return [table_of(some) for some in found.values()]


def reads(source: Source, topic: str) -> bool:
    if topic in source.topics:
        return True
    return source.pattern is not None and re.fullmatch(source.pattern, topic) is not None


def milliseconds(records: pa.RecordBatch) -> Any:
    return records.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False) // US_A_MS


def orders(parts: Sequence[Part]) -> list[Any]:
    """The place of each record: taking the oldest head again and again is sorting by the largest time so far
    in each part."""
    if len(parts) == 1:
        return [np.arange(parts[0].records.num_rows)]
    times = [np.maximum.accumulate(milliseconds(part.records)) for part in parts]
    sorted_rows = np.argsort(np.concatenate(times), kind="stable") if times else np.empty(0, np.int64)
    places = np.empty(len(sorted_rows), np.int64)
    places[sorted_rows] = np.arange(len(sorted_rows))
    return np.split(places, np.cumsum([len(each) for each in times])[:-1]) if times else []


def rows_of(records: pa.RecordBatch, order: Any) -> Rows:
    headers = records.column("headers")
    return Rows(
        Column(records.column("key")),
        Column(records.column("value")),
        milliseconds(records),
        order,
        None if headers.null_count == len(headers) else headers,
    )


def joined(columns: Sequence[Column]) -> Column:
    """Columns one after the other, as an array where all are."""
    first = columns[0]
    if isinstance(first, Fields) and all(first.has_shape_of(each) for each in columns):
        parts: list[Fields] = [each for each in columns if isinstance(each, Fields)]
        inner = [joined([each.columns[place] for each in parts]) for place in range(len(first.names))]
        nulls = np.concatenate([each.is_null for each in parts])
        return Fields(first.names, inner, len(nulls), nulls, is_tuple=first.is_tuple)
    if all(each.is_array for each in columns) and len({each.array.type for each in columns}) == 1:
        return Column(pa.concat_arrays([each.array for each in columns]))
    return Column(items=[item for each in columns for item in each.items])


def together(some: Sequence[Rows]) -> Rows:
    """Rows of several nodes, in the order of the records that led to them."""
    if any(rows.old is not None for rows in some):
        raise NotColumnar("tables whose old values a step needs are merged")
    windowed = {rows.window_ms for rows in some}
    if len(windowed) > 1:
        raise NotColumnar("windows of several sizes are merged")
    headers = None
    if any(rows.headers is not None for rows in some):
        kind = next(rows.headers.type for rows in some if rows.headers is not None)
        headers = pa.concat_arrays(
            [pa.nulls(len(rows), kind) if rows.headers is None else rows.headers for rows in some]
        )
    found = Rows(
        joined([rows.keys for rows in some]),
        joined([rows.values for rows in some]),
        np.concatenate([rows.times for rows in some]),
        np.concatenate([rows.order for rows in some]),
        headers,
        None if some[0].starts is None else np.concatenate([rows.starts for rows in some]),
        some[0].window_ms,
        origins=some[0].origins,
    )
    return found.take(np.argsort(found.order, kind="stable"))


def by_topic(outputs: Sequence[Output]) -> list[list[Output]]:
    found: dict[tuple[str, int | None], list[Output]] = {}
    for each in outputs:
        found.setdefault((each.topic, each.partition), []).append(each)
    return list(found.values())


def of_outputs(some: Sequence[Output]) -> Written:
    """Records of a changelog, which the stores gave one by one."""
    return Written(
        some[0].topic,
        pa.array([each.key for each in some], pa.binary()),
        pa.array([each.value for each in some], pa.binary()),
        np.fromiter((each.timestamp for each in some), np.int64, len(some)),
        np.arange(len(some)),
        None,
        some[0].partition,
    )


def table_of(some: Sequence[Written]) -> pa.Table:
    """The output of a topic's sinks, by the order of the records that led to it."""
    count = sum(len(each.times) for each in some)
    columns: dict[str, Any] = {
        "key": pa.chunked_array([each.keys for each in some], pa.binary()),
        "value": pa.chunked_array([each.values for each in some], pa.binary()),
        "timestamp": pa.array(np.concatenate([each.times for each in some]) * US_A_MS).cast(
            pa.timestamp("us", tz="UTC")
        ),
        "topic": pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [some[0].topic]).cast(
            pa.string()
        ),
    }
    if any(each.headers is not None for each in some):
        kind = next(each.headers.type for each in some if each.headers is not None)
        columns["headers"] = pa.chunked_array(
            [pa.nulls(len(each.times), kind) if each.headers is None else each.headers for each in some]
        )
    if some[0].partition is not None:
        columns["partition"] = pa.array(np.full(count, some[0].partition, np.int32))
    table = pa.table(columns)
    if len(some) > 1:
        order = np.concatenate([each.order for each in some])
        table = table.take(pa.array(np.argsort(order, kind="stable")))
    return table
