"""The logic of a task from a plan: the interpreter over the task's state file.

In: a plan, the number of a sub-topology. Out: `MakeLogic` for its tasks. Global tables are read to the end of
their topics before each batch, and kept in the memory of the worker. Does not know: Spark, transactions.
"""

from __future__ import annotations

import base64
import json
import logging
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.plans.interpreter import loading
from barnabas.plans.interpreter.records import Output, Record
from barnabas.plans.interpreter.task import NUMBERS, TASK_STORE, TIME, Handlers, State, Task, state_of
from barnabas.plans.nodes import Process
from barnabas.plans.plan import Plan
from barnabas.plans.stores import MemoryBackend
from barnabas.spark.basics.cluster import WorkerCluster, shared_cluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.fetcher import EARLIEST, LATEST, OffsetRange
from barnabas.streams.columns.logic import run_by_columns
from barnabas.streams.columns.task import Part
from barnabas.streams.spark import kept_tasks
from barnabas.streams.spark.restoring import restore_store
from barnabas.streams.spark.state_files import StateFile
from barnabas.streams.spark.task_port import InputRecord, TaskCounts
from barnabas.streams.spark.task_records import read_range

FACTS_CHARS_MAX = 3500  # brokers take 4096 bytes of metadata (offset.metadata.max.bytes)
KeptFor = tuple[StateFile, object]  # the state of a task, and what makes its logic
log = logging.getLogger("barnabas.streams")

assert loading.OPERATORS  # imported for the operators that it registers


class PlanLogic:
    """One task of a sub-topology for one batch. A task with processors of the user is `kept` for the next
    one: they may have fields and timers."""

    def __init__(self, make_task: Callable[[], Task], kept: KeptFor | None = None) -> None:
        self._make_task, self._kept = make_task, kept
        self._newest: Task | None = None

    def _made(self) -> Task:
        self._newest = self._make_task()
        return self._newest

    @cached_property
    def _task(self) -> Task:
        found = None if self._kept is None else kept_tasks.pop(*self._kept)
        if found is None:
            return self._made()
        found.begin_batch(int(time.time() * 1000))
        self._newest = found
        return found

    def committed(self) -> None:
        if self._kept is not None and self._newest is not None:
            self._newest.forget()
            kept_tasks.keep(self._newest, *self._kept)

    def failed(self) -> None:
        if self._kept is not None and self._newest is not None:
            kept_tasks.close(self._newest)

    @property
    def counts(self) -> TaskCounts:
        task = self._newest
        if task is None:
            return TaskCounts()
        return TaskCounts(
            dict(task.dropped), task.problems, task.next_wall_clock_ms, dict(task.node_counts or {})
        )

    def process_parts(self, parts: Sequence[Part]) -> list[pa.Table] | None:
        return run_by_columns(self._made, parts) if self._kept is None else None

    def process(self, topic: str, record: InputRecord) -> Sequence[Output]:
        self._task.feed(topic, Record(*record))
        return ()  # results wait until the batch ends

    def finish(self) -> Sequence[Output]:
        task = self._task
        outputs = task.punctuate(int(time.time() * 1000)) if task.punctuations else []
        task.flush()
        outputs = [*task.pop_outputs(), *outputs]
        if self._kept is None:
            task.close()
        return outputs


@dataclass(frozen=True)
class MakePlanLogic:
    """Pickled once for each query: it goes to executors with the plan and its functions."""

    plan: Plan
    number: int
    client: ClientSettings
    handlers: Handlers = field(default_factory=Handlers)
    counts_nodes: bool = False  # count the records of each node

    def __call__(self, state: StateFile, partition: int) -> PlanLogic:
        subtopology = self.plan.subtopologies[self.number]
        global_states = self._global_states() if subtopology.global_stores else None

        def make_task() -> Task:
            return Task(
                subtopology,
                state,
                application_id=self.plan.application_id,
                partition=partition,
                handlers=self.handlers,
                global_states=global_states,
                now_ms=int(time.time() * 1000),
                counts_nodes=self.counts_nodes,
            )

        has_processors = any(isinstance(node, Process) for node in subtopology.nodes)
        return PlanLogic(make_task, (state, self) if has_processors else None)

    # -- a state that was lost ---------------------------------------------------------------------

    def facts(self, state: StateFile) -> str:
        """Stream time and the small state of operators, which no changelog has."""
        time, numbers = state.get(TASK_STORE, TIME), state.get(TASK_STORE, NUMBERS)
        found = json.dumps(
            {
                "time": int.from_bytes(time or b"", "big", signed=True),
                "numbers": json.loads(numbers or b"{}"),
            },
            separators=(",", ":"),
        )
        packed = base64.b64encode(zlib.compress(found.encode())).decode()
        if len(packed) > FACTS_CHARS_MAX:
            log.warning("%d characters of facts are too many to be committed with offsets", len(packed))
            return ""
        return packed

    def restore(
        self, state: StateFile, partition: int, facts: str, positions: Mapping[TopicPartition, int]
    ) -> None:
        cluster = shared_cluster(self.client)
        application_id = self.plan.application_id
        for spec in self.plan.subtopologies[self.number].stores:
            changelog = spec.changelog_topic(application_id)
            if changelog is not None and not spec.is_global:
                store = state_of(spec, state, application_id)
                stop = None
                if spec.source_topic is not None:  # its next records are input that is not processed yet
                    stop = positions.get(TopicPartition(changelog, partition), 0)
                count = restore_store(cluster, store, changelog, partition, state.keep, stop)
                state.records_restored += count
                log.info("%d records of %s-%d were restored", count, changelog, partition)
        if facts:
            found = json.loads(zlib.decompress(base64.b64decode(facts)))
            state.put(TASK_STORE, TIME, found["time"].to_bytes(8, "big", signed=True))
            state.put(TASK_STORE, NUMBERS, json.dumps(found["numbers"]).encode())

    # -- global tables -----------------------------------------------------------------------------

    def _global_states(self) -> dict[str, State]:
        found: dict[str, State] = {}
        for subtopology in self.plan.subtopologies:
            if subtopology.is_global:
                key = (self.plan.application_id, subtopology.number, self.client)
                table = _global_tables.get(key)
                if table is None:
                    task = Task(subtopology, MemoryBackend(), application_id=self.plan.application_id)
                    table = _global_tables[key] = GlobalTable(task, shared_cluster(self.client))
                table.catch_up()
                found |= table.states
        return found


class GlobalTable:
    """All records of the topics of a global table, up to now, as its task sees them."""

    def __init__(self, task: Task, cluster: WorkerCluster) -> None:
        self._task = task
        self._cluster = cluster
        self._positions: dict[TopicPartition, int] = {}

    @property
    def states(self) -> dict[str, State]:
        return self._task.states

    def catch_up(self) -> None:
        timeout_ms = self._cluster.client.request_timeout_ms
        if not self._positions:
            topics = run(self._cluster.topics(list(self._task.subtopology.source_topics)))
            places = [
                TopicPartition(name, each) for name, topic in topics.items() for each in topic.partitions
            ]
            self._positions = self._cluster.offsets(dict.fromkeys(places, EARLIEST), timeout_ms=timeout_ms)
        ends = self._cluster.offsets(dict.fromkeys(self._positions, LATEST), timeout_ms=timeout_ms)
        for place, end in ends.items():
            start = self._positions[place]
            if end > start:
                asked = OffsetRange(place.topic, b"", place.partition, start, end)
                for record in read_range(self._cluster, asked, timeout_ms):
                    self._task.process(place.topic, Record(*record))
                self._positions[place] = end


_global_tables: dict[tuple[str, int, ClientSettings], GlobalTable] = {}
