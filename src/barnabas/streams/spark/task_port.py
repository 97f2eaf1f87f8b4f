"""The parts of a task's batch, and what it needs of the code that processes its records.

Values that travel between the driver and executors, and the port to a sub-topology's logic. Record and output
have the fields of a topic's record, in bytes. Does not know: Spark, brokers, operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from barnabas.client.core.topology import TopicPartition
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.fetcher import OffsetRange
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.batch_measures import NOTHING_MEASURED, BatchMeasures
from barnabas.streams.spark.state_files import StateFile

Headers = tuple[tuple[str, bytes | None], ...]
TRANSACTION_TIMEOUT_MS = 60_000
WAIT_MS = 60_000


class InputRecord(NamedTuple):
    """A record of a source topic."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    partition: int = 0
    offset: int = -1


class OutputRecord(Protocol):
    """A record for a topic; without a partition its key decides."""

    @property
    def topic(self) -> str: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def partition(self) -> int | None: ...


class TaskLogic(Protocol):
    """One task of a sub-topology for one batch. It reads and writes state through its backend."""

    def process(self, topic: str, record: InputRecord) -> Sequence[OutputRecord]:
        """The results of a source topic's record, changelogs included."""

    def finish(self) -> Sequence[OutputRecord]:
        """The batch ends: write pages that changed to the backend, give what is left."""


@runtime_checkable
class ColumnLogic(TaskLogic, Protocol):
    """A `TaskLogic` that may process all records of the batch at once."""

    def process_parts(self, parts: Sequence[Part]) -> list[pa.Table] | None:
        """Tables for topics, state written as by `finish`; None: it wants the records one by one."""


# Makes the logic of a task: of its state and its partition. Pickled once for each query.
MakeLogic = Callable[[StateFile, int], TaskLogic]


@runtime_checkable
class Restores(Protocol):
    """A `MakeLogic` that can make a state anew that was lost."""

    def facts(self, state: StateFile) -> str:
        """State that the changelogs do not have, in a few hundred characters: committed with the offsets."""

    def restore(
        self, state: StateFile, partition: int, facts: str, positions: Mapping[TopicPartition, int]
    ) -> None:
        """Bring the pages back from the changelogs. The state is empty; `restored` writes in steps.
        `positions` are the committed offsets: a source topic that serves as changelog is read so far."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Effects of a batch besides its results. `timer_ms`: when the next timer by the wall clock is due."""

    dropped: Mapping[str, int] = field(default_factory=dict)
    problems: int = 0
    timer_ms: int | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)  # records by node, where they are counted


@runtime_checkable
class Counts(Protocol):
    """A `TaskLogic` that tells what it did, once it has finished."""

    @property
    def counts(self) -> TaskCounts: ...


@runtime_checkable
class Lasting(Protocol):
    """A `TaskLogic` whose parts may outlive the batch."""

    def committed(self) -> None:
        """The batch is committed, and the state is at its version."""

    def failed(self) -> None:
        """The batch failed: its state is that of the batch before."""


class TaskId(NamedTuple):
    """Written as Kafka Streams does: `0_1`."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Shared by all tasks of an application. `state_dir` is seen by every executor that may run a task.
    `fails_on_loss`: records that retention deleted before they were read are an error, not left out."""

    application_id: str
    client: ClientSettings
    state_dir: str
    is_exactly_once: bool = False
    fails_on_loss: bool = True
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    wait_ms: int = WAIT_MS
    measures_details: bool = False  # stores and nodes: metrics.recording.level=DEBUG


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Offsets that one task processes together. A range begins where the group stands; its own start counts
    where the group has committed nothing. `is_tick`: timers by the wall clock are due, records or not. With
    `records_max` the task reads on to the end that it finds, up to so many records."""

    task: TaskId
    ranges: tuple[OffsetRange, ...]
    is_tick: bool = False
    records_max: int = 0


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Outcome of a batch: where its partitions stand now, or why it failed."""

    task: TaskId
    records: int = 0
    outputs: int = 0
    positions: dict[tuple[str, int], int] = field(default_factory=dict)
    error: str | None = None
    is_fenced: bool = False
    is_stopped_by_handler: bool = False
    counts: TaskCounts = TaskCounts()
    seconds: float = 0.0
    measures: BatchMeasures = NOTHING_MEASURED
