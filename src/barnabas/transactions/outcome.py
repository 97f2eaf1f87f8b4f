"""The result of a decision about transactions, after a request, a timer, or written markers.

The records are appended together. Once they are committed, `reply` is the response to the request, and
`markers` are to be written to their partitions; the host reports them with `markers_written`. The first four
fields are those of a group's outcome, so that one host serves both. No request about transactions waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, NewType, Protocol

from barnabas.protocol import Message
from barnabas.transactions.records import Entry

Token = NewType("Token", int)
"""Identifies one waiting request. A shard never uses one twice."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class CallerLike(Protocol):
    """The sender of a request; only the version matters here."""

    @property
    def version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Caller:
    version: int = 0


class ProducerIds(Protocol):
    """The source of new producer ids. The host makes sure before a request that one is available."""

    def pop(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """How a producer's transaction ends, as each partition learns it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


@dataclass(frozen=True, slots=True)
class Markers:
    """The end of one transaction, to be written to each of `partitions`. The markers carry
    `producer_epoch`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int

    @property
    def end(self) -> TransactionEnd:
        return TransactionEnd(
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.is_commit,
            self.transaction_version,
        )


@dataclass(slots=True)
class TransactionOutcome:
    """`reply` is set for a request, and only then."""

    records: list[Entry] = field(default_factory=list)
    reply: Message | None = None
    waiting_token: Token | None = None
    responses: list[tuple[Token, Message]] = field(default_factory=list)
    markers: list[Markers] = field(default_factory=list)
    encoded: None = None  # the host encodes the records

    @property
    def is_empty(self) -> bool:
        return not self.records and self.reply is None and not self.markers
