"""What a shard of transactions answers to a request, to the passing of time, or to markers written.

Records are appended together; once they are committed, `reply` answers the request, and `markers` are to be
written to their partitions; the shard is told by `markers_written`. The first four fields are those of a
shard of groups, so that one host serves both; no request of transactions waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, NewType, Protocol

from barnabas.protocol import Message
from barnabas.transactions.records import Entry

Token = NewType("Token", int)
"""Names one waiting request; never used twice by a shard."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class CallerLike(Protocol):
    """Who sent a request; only the version matters here."""

    @property
    def version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Caller:
    version: int = 0


class ProducerIds(Protocol):
    """Where new producer ids come from; the host sees to it before a request that one is at hand."""

    def pop(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """How a producer's transaction ends, as each partition is told."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


@dataclass(frozen=True, slots=True)
class Markers:
    """The end of one transaction, to be written to each of `partitions`. `producer_epoch` is the one that the
    markers carry."""

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
    """`reply` is set for a request, and only for one."""

    records: list[Entry] = field(default_factory=list)
    reply: Message | None = None
    waits_as: Token | None = None
    answers: list[tuple[Token, Message]] = field(default_factory=list)
    markers: list[Markers] = field(default_factory=list)
    encoded: None = None  # hosts make the bytes of the records

    @property
    def is_nothing(self) -> bool:
        return not self.records and self.reply is None and not self.markers
