"""Records that go into a task and come out of it, changes of tables, and what went wrong with one.

Does not know: the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple

from barnabas.plans.type_variables import K, V

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """A record of a topic, in bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    partition: int = 0
    offset: int = -1


class Output(NamedTuple):
    """A record for a topic, in bytes. `partition` None: by the default partitioner, from the key."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    partition: int | None = None
    is_changelog: bool = False


class Change(NamedTuple):
    """A change of a table. `is_latest` is False for an update that is older than what a versioned table
    has."""

    new: Any
    old: Any
    is_latest: bool = True


class Message(NamedTuple, Generic[K, V]):
    """A record as processors of the user see it."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()


class TaskError(Exception):
    """A record stopped its task: the message names the node and the record."""


Stage = Literal["deserialization", "processing", "production"]


@dataclass(frozen=True, slots=True)
class Failure:
    """One record that failed, for a handler to judge. `node` is where, `record` is what the source read."""

    stage: Stage
    node: str
    topic: str
    record: Record
    error: Exception


@dataclass(frozen=True, slots=True)
class Problem:
    """An expression that had no value for one record: the query goes on with null. `logger` and `message`
    are the expression's, the place is that of the record which the task was processing. `row` is the value
    that the expression had before it."""

    logger: str
    message: str
    cause: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    row: Any = None


class Verdict(NamedTuple):
    """The decision about a record that failed: drop it and count it, or stop the task. `records` are written
    with the results of the batch, to topics of their own."""

    action: Literal["continue", "fail"]
    records: tuple[Output, ...] = ()


# A handler judges a record that failed, by a verdict or by its action alone.
Handler = Callable[[Failure], Verdict | Literal["continue", "fail"]]
# Told of every failure and problem. What it gives is written with the results of the batch: lines of a
# processing log, dead letters. It travels to executors and is shared by tasks, so it keeps nothing.
ErrorSink = Callable[["Failure | Problem"], Iterable[Output]]


def fail(failure: Failure) -> Literal["continue", "fail"]:
    """The default: a record that fails stops its task."""
    return "fail"


def ignore(problem: Problem) -> None:
    """The default for problems: they are counted only."""


def nothing(event: Failure | Problem) -> Iterable[Output]:
    """The default of sinks."""
    return ()


def log_and_continue(failure: Failure) -> Literal["continue", "fail"]:
    return "continue"
