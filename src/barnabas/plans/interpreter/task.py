"""A task: one sub-topology over one partition of its sources, record by record.

In: a sub-topology, a backend for its state, records of topics in bytes. Out: records for topics in bytes,
changelogs included. A batch is: `process` for each record, `punctuate`, `flush`. Each node is a function
(key, value, timestamp) that calls its children. Does not know: partitions of topics, consumers,
transactions.
"""

from __future__ import annotations

import json
import logging
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.plans.interpreter import payloads
from barnabas.plans.interpreter.records import (
    ErrorSink,
    Failure,
    Handler,
    Headers,
    Output,
    Problem,
    Record,
    TaskError,
    Verdict,
    fail,
    ignore,
    nothing,
)
from barnabas.plans.interpreter.state.buffers import BufferState, PayloadFormat
from barnabas.plans.interpreter.state.tables import TableState, VersionedState
from barnabas.plans.interpreter.state.windowed_tables import WindowedTableState
from barnabas.plans.interpreter.state.windows import JoinState, SessionState, WindowState
from barnabas.plans.nodes import Branch, Node, Source
from barnabas.plans.plan import Subtopology
from barnabas.plans.serdes import FromBytes, RegistryAway, ToBytes
from barnabas.plans.stores import StateBackend, StoreKind, StoreSpec

Process = Callable[[Any, Any, int], None]
Build = Callable[["Task", Any, Process], Process]
State = TableState | VersionedState | WindowState | JoinState | SessionState | BufferState
BUILDERS: dict[type[Node], Build] = {}  # the modules of operators fill it
TASK_STORE = "__task"
FAILURES_LOGGED_MAX = 10  # of a kind and batch; all are counted
log = logging.getLogger("barnabas.streams")
TIME, NUMBERS = b"time", b"numbers"
_TIME = struct.Struct(">q")

_STATES: dict[StoreKind, Any] = {
    StoreKind.KEY_VALUE: TableState,
    StoreKind.TIMESTAMPED: TableState,
    StoreKind.WINDOWED_TABLE: WindowedTableState,
    StoreKind.VERSIONED: VersionedState,
    StoreKind.WINDOW: WindowState,
    StoreKind.JOIN_WINDOW: JoinState,
    StoreKind.SESSION: SessionState,
    StoreKind.SUBSCRIPTIONS: TableState,
}
BUFFERS = (StoreKind.SUPPRESS, StoreKind.OUTER_JOIN, StoreKind.JOIN_BUFFER)


def state_of(spec: StoreSpec, backend: StateBackend, application_id: str) -> State:
    """A store of a task over its pages: for the task itself, and for those who read its changelog."""
    topic = spec.changelog_topic(application_id) or spec.name
    write, read = serializer_of(spec.value_serde, topic), deserializer_of(spec.value_serde, topic)
    if spec.kind in BUFFERS:
        return BufferState(spec, backend, _payload_format(spec, application_id, topic, write, read))
    return _STATES[spec.kind](spec, backend, write, read)  # type: ignore[no-any-return]


def _payload_format(
    spec: StoreSpec, application_id: str, topic: str, write: ToBytes, read: FromBytes
) -> PayloadFormat:
    read_key = key_reader_of(spec, application_id)
    if spec.kind == StoreKind.SUPPRESS:
        return payloads.suppressed(write, read, read_key)
    if spec.kind == StoreKind.JOIN_BUFFER:
        return payloads.delayed(write, read, read_key)
    right = serializer_of(spec.right_serde, topic), deserializer_of(spec.right_serde, topic)
    return payloads.unmatched((write, read), right, read_key)


def key_writer_of(spec: StoreSpec, application_id: str) -> ToBytes:
    return serializer_of(spec.key_serde, spec.changelog_topic(application_id) or spec.name, True)


def key_reader_of(spec: StoreSpec, application_id: str) -> FromBytes:
    return deserializer_of(spec.key_serde, spec.changelog_topic(application_id) or spec.name, True)


def serializer_of(serde: Any, topic: str, is_key: bool = False) -> ToBytes:
    return _as_bytes if serde is None else serde.serializer(topic, is_key)


def deserializer_of(serde: Any, topic: str, is_key: bool = False) -> FromBytes:
    return _as_they_are if serde is None else serde.deserializer(topic, is_key)


def builds(kind: type[Node]) -> Callable[[Build], Build]:
    """Mark the function that builds nodes of a kind."""

    def register(build: Build) -> Build:
        BUILDERS[kind] = build
        return build

    return register


def counted(process: Process, name: str, counts: Counter[str]) -> Process:
    """A node's process that counts its records."""

    def counting(key: Any, value: Any, timestamp: int) -> None:
        counts[name] += 1
        process(key, value, timestamp)

    return counting


def nowhere(key: Any, value: Any, timestamp: int) -> None:
    """The forward of a node without children."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """Functions that decide what becomes of records that fail, and those that are told of failures and of
    expressions without a value."""

    deserialization: Handler = fail
    processing: Handler = fail
    production: Handler = fail
    problem: Callable[[Problem], None] = ignore
    sink: ErrorSink = nothing


class Task:
    """Runs a sub-topology. `global_states` are the stores of global tables, which tasks share."""

    def __init__(
        self,
        subtopology: Subtopology,
        backend: StateBackend,
        *,
        application_id: str = "application",
        partition: int = 0,
        handlers: Handlers | None = None,
        global_states: Mapping[str, State] | None = None,
        now_ms: int = 0,
        counts_nodes: bool = False,
    ) -> None:
        self.subtopology, self.backend, self.application_id = subtopology, backend, application_id
        self.partition, self.handlers = partition, handlers or Handlers()
        self.outputs: list[Output] = []
        self.dropped: Counter[str] = Counter()
        self.problems = 0  # expressions that had no value
        self.node_counts: Counter[str] | None = Counter() if counts_nodes else None  # records by node
        self.now_ms = now_ms
        stored = backend.get(TASK_STORE, TIME)
        self.stream_time: int = _TIME.unpack(stored)[0] if stored else -1
        stored = backend.get(TASK_STORE, NUMBERS)
        self.numbers: dict[str, int] = json.loads(stored) if stored else {}  # small state of nodes, by name
        self._has_numbers = bool(self.numbers)
        # The record that is being processed, as processors see it.
        self.topic, self.offset, self.timestamp = "", -1, -1
        self.headers: Headers = ()
        self.record: Record | None = None
        self.node_name = ""
        self.punctuations: list[Any] = []
        self.closers: list[Callable[[], None]] = []
        self.by_name = {node.name: node for node in subtopology.nodes}
        self.states: dict[str, State] = {
            spec.name: state_of(spec, backend, application_id) for spec in subtopology.stores
        }
        self.global_states = dict(global_states or {})
        self.shared: dict[str, Any] = {}  # what several nodes have in common, by a name of theirs
        self.processes: dict[str, Process] = {}
        self._entries: dict[str, Process] = {}
        self._patterns: list[tuple[str, Process]] = []
        for node in reversed(subtopology.nodes):
            self._build(node)

    def serializer(self, serde: Any, topic: str, is_key: bool = False) -> ToBytes:
        return serializer_of(serde, topic, is_key)

    def deserializer(self, serde: Any, topic: str, is_key: bool = False) -> FromBytes:
        return deserializer_of(serde, topic, is_key)

    def key_writer(self, store: str) -> ToBytes:
        """The function that turns keys into the bytes under which a store keeps them."""
        return key_writer_of(self.state(store).spec, self.application_id)

    def key_reader(self, store: str) -> FromBytes:
        return key_reader_of(self.state(store).spec, self.application_id)

    def state(self, name: str) -> Any:
        return self.states[name] if name in self.states else self.global_states[name]

    def _build(self, node: Node) -> None:
        children = [self.processes[each.name] for each in self.subtopology.nodes if node.name in each.parents]
        try:
            build = BUILDERS[type(node)]
        except KeyError:
            raise TaskError(f"{node.name}: the interpreter cannot run a {type(node).__name__}") from None
        forward = nowhere if isinstance(node, Branch) else self._fan_out(children)
        process = build(self, node, forward)
        if self.node_counts is not None:
            process = counted(process, node.name, self.node_counts)
        self.processes[node.name] = process
        if isinstance(node, Source):
            self._entries.update(dict.fromkeys(node.topics, process))
            if node.pattern is not None:
                self._patterns.append((node.pattern, process))

    @staticmethod
    def _fan_out(children: list[Process]) -> Process:
        if not children:
            return nowhere
        if len(children) == 1:
            return children[0]

        def forward(key: Any, value: Any, timestamp: int) -> None:
            for child in children:
                child(key, value, timestamp)

        return forward

    def _entry(self, topic: str) -> Process:
        for pattern, process in self._patterns:
            if re.fullmatch(pattern, topic):
                self._entries[topic] = process
                return process
        raise TaskError(f"no source of sub-topology {self.subtopology.number} reads the topic {topic!r}")

    def feed(self, topic: str, record: Record) -> None:
        """Process one record; results gather in `outputs`."""
        entry = self._entries.get(topic) or self._entry(topic)
        self.topic, self.offset, self.headers, self.record = topic, record.offset, record.headers, record
        try:
            entry(record, None, record.timestamp)
        except TaskError:
            raise
        except Exception as error:
            self.judge(Failure("processing", self.node_name, topic, record, error), self.handlers.processing)
        if self.punctuations:
            self.run_punctuations("stream", self.stream_time)

    def process(self, topic: str, record: Record) -> list[Output]:
        """Process one record and give what it led to."""
        self.feed(topic, record)
        return self.pop_outputs()

    def process_batch(self, records: Iterable[tuple[str, Record]]) -> list[Output]:
        """Process records in order, then write state and changelogs once."""
        for topic, record in records:
            self.feed(topic, record)
        self.flush()
        return self.pop_outputs()

    def punctuate(self, now_ms: int) -> list[Output]:
        """Tell the wall clock's time; due punctuators run."""
        self.now_ms = now_ms
        self.run_punctuations("wall clock", now_ms)
        return self.pop_outputs()

    @property
    def next_wall_clock_ms(self) -> int | None:
        """When the next timer by the wall clock is due; None without one."""
        return min((each.due for each in self.punctuations if each.clock == "wall clock"), default=None)

    def run_punctuations(self, clock: str, time: int) -> None:
        for punctuation in list(self.punctuations):
            if punctuation.clock == clock:
                punctuation.run_if_due(time)

    def pop_outputs(self) -> list[Output]:
        taken, self.outputs = self.outputs, []
        return taken

    def drop(self, reason: str) -> None:
        """Count a record that an operator leaves out."""
        self.dropped[reason] += 1

    def report(self, logger: str, message: str, error: Exception, row: Any = None) -> None:
        """Count and tell an expression that raised: its value is null, the record goes on."""
        self.problems += 1
        cause = f"{type(error).__name__}: {error}"
        place = self.topic, self.partition, self.offset, self.timestamp
        problem = Problem(logger, message, cause, *place, row)
        self.handlers.problem(problem)
        self.outputs += self.handlers.sink(problem)

    def judge(self, failure: Failure, handler: Handler) -> None:
        """Ask the handler about a record that failed; raise where it says so. A record that cannot
        be judged because its registry is away fails the batch: no handler may drop it."""
        if isinstance(failure.error, RegistryAway):
            raise failure.error
        where = f"{failure.stage} of record {failure.topic}-{self.partition}@{failure.record.offset} failed"
        text = f"{where} in {failure.node or 'the source'}: {type(failure.error).__name__}: {failure.error}"
        self.outputs += self.handlers.sink(failure)
        try:
            found = handler(failure)
        except Exception as error:
            raise TaskError(f"{text}; its handler failed: {type(error).__name__}: {error}") from error
        verdict = Verdict(found) if isinstance(found, str) else found
        if verdict.action != "continue":
            raise TaskError(text) from failure.error
        self.outputs += verdict.records
        self.drop(failure.stage)
        if self.dropped[failure.stage] <= FAILURES_LOGGED_MAX:
            log.warning("%s; the task goes on without it", text)

    def flush(self) -> None:
        """Write what changed to the backend, and add the records of the changelogs to `outputs`."""
        for state in self.states.values():
            changes = state.flush()
            spec = state.spec
            topic = spec.changelog_topic(self.application_id)
            if topic is not None and spec.source_topic is None and not spec.is_global:
                self.outputs += [Output(topic, k, v, t, (), self.partition, True) for k, v, t in changes]
        self.backend.put(TASK_STORE, TIME, _TIME.pack(self.stream_time))
        if self.numbers or self._has_numbers:
            self._has_numbers = True
            self.backend.put(TASK_STORE, NUMBERS, json.dumps(self.numbers).encode())

    def begin_batch(self, now_ms: int) -> None:
        """The task goes on after a batch that was committed: counts and results begin anew."""
        self.now_ms, self.problems = now_ms, 0
        self.dropped.clear()
        if self.node_counts is not None:
            self.node_counts.clear()
        self.outputs = []

    def forget(self) -> None:
        """Drop what is cached, after a flush: the next access reads the backend again."""
        for state in self.states.values():
            state.forget()

    def close(self) -> None:
        for close in self.closers:
            close()


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    raise TypeError(f"a {type(value).__name__} needs a serde: only bytes go without one")


def _as_they_are(data: bytes) -> Any:
    return data
