"""Input of a running connector or task: settings, offsets, and ways to tell the worker something.

The runtime fills these in; the test kit fills in its own. A connector calls the methods and reads the fields,
and needs nothing else of the worker. Does not know: workers, threads of tasks, topics of offsets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.client.core.topology import TopicPartition

if TYPE_CHECKING:
    from barnabas.connect.config import Settings
    from barnabas.connect.data import Records

SourcePartition = Mapping[str, Any]  # which part of the source: a file, a table
SourceOffset = Mapping[str, Any]  # how far it was read
SinkOffsets = Mapping[TopicPartition, int]  # the next record to be read of each partition

POLL_SECONDS = 1.0


class OffsetReader(Protocol):
    """Offsets that are durable: what an earlier run of the connector has reached."""

    def read(self, partitions: Sequence[SourcePartition]) -> list[dict[str, Any] | None]:
        """The offset of each of these source partitions, None where none is stored."""
        ...


class TransactionContext(Protocol):
    """Calls with which a task ends its transactions (`transaction.boundary=connector`)."""

    def commit(self) -> None:
        """End the transaction after the records of this poll."""
        ...

    def abort(self) -> None:
        """Drop the records since the last commit, those of this poll included."""
        ...


def nothing(*_: Any) -> None:
    """A report that nobody listens to."""


@dataclass(slots=True)
class ConnectorContext:
    """The argument of `Connector.start`."""

    connector: str
    config: Mapping[str, str]  # as written, references resolved
    reconfigure: Callable[[], None] = nothing  # ask for `task_configs` again: there is more or less to do
    failed: Callable[[BaseException], None] = nothing  # the connector cannot go on
    stopping: threading.Event = field(default_factory=threading.Event)
    offsets: OffsetReader | None = None  # sources only


@dataclass(slots=True)
class TaskContext:
    """Input of tasks of all kinds."""

    connector: str
    task: int
    settings: Settings
    config: Mapping[str, str]
    stopping: threading.Event = field(default_factory=threading.Event)
    progress: Callable[[int, int | None], None] = nothing  # (done, total): rows or bytes of a snapshot


@dataclass(slots=True)
class SourceContext(TaskContext):
    """The argument of `SourceTask.start` and `SparkSource.start`."""

    offsets: OffsetReader = None  # type: ignore[assignment]  # the runtime always gives one
    reconfigure: Callable[[], None] = nothing
    poll_seconds: float = POLL_SECONDS  # how long `poll` may wait for data
    transaction: TransactionContext | None = None


@dataclass(slots=True)
class SinkContext(TaskContext):
    """The argument of `SinkTask.start` and `SparkSink.start`."""

    assignment: set[TopicPartition] = field(default_factory=set)
    pause: Callable[[Iterable[TopicPartition]], None] = nothing
    resume: Callable[[Iterable[TopicPartition]], None] = nothing
    seek: Callable[[SinkOffsets], None] = nothing  # a sink that keeps offsets of its own
    request_commit: Callable[[], None] = nothing
    retry_after_ms: Callable[[int], None] = nothing  # the pause after the next RetriableError of `put`
    errant: Callable[[Records, Sequence[int], BaseException], None] = nothing
