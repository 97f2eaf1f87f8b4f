"""Runs decisions for a state machine: decide, append, apply, wait for the commit, return the reply.

In: a state machine (`apply(records, first_offset)`, which cannot fail) and a journal to append to. Out:
replies, each returned only when everything it depends on is committed. A decision sees everything appended
before it, committed or not, so many decisions can wait for their commit at once. When a commit fails, all of
them are refused and the host is closed: its owner drops it and replays the journal into a new one.
A decision may come in steps, and thousands of records are prepared in steps. That takes several turns of the
loop, and the next decision waits meanwhile. All records take effect at once, at the end.
Does not know: what the records mean, how the journal commits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Generic, Protocol, TypeVar

from barnabas.decisions.work_queue import WorkQueue
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import Pieces, Steps

RECORDS_AT_ONCE_MAX = 100  # more are prepared in pieces
ATTEMPTS_MAX = 3  # for a decision made in pieces
QUEUE_FULL = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too many requests wait for a long one")

Record = TypeVar("Record")
RecordIn = TypeVar("RecordIn", contravariant=True)
RecordOut = TypeVar("RecordOut", covariant=True)
Reply = TypeVar("Reply")
T = TypeVar("T")
ReplyOut = TypeVar("ReplyOut", covariant=True)


class Decided(Protocol[RecordOut, ReplyOut]):
    """A decision: records to append, and the reply for when they are committed."""

    @property
    def records(self) -> Sequence[RecordOut]: ...
    @property
    def reply(self) -> ReplyOut: ...


class StateMachine(Protocol[RecordIn]):
    def apply(self, records: Sequence[RecordIn], first_offset: int) -> None:
        """Apply records that were decided or replayed. Cannot fail, does not look at the clock."""


class Journal(Protocol[RecordIn]):
    """The log that one host appends to."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""

    def append(self, records: Sequence[RecordIn]) -> int:
        """Append the records together and return the offset after them. Raises KafkaError and changes nothing
        if it cannot."""

    def committed(self, offset: int) -> Awaitable[None] | None:
        """Wait until everything below `offset` is committed; None when it is already."""


Prepare = Callable[[Sequence[Record]], Steps[Callable[[], int]]]
"""Does the slow work for many records. Its result appends and applies them at once and returns the end
offset."""
Decide = Callable[[], Decided[Record, Reply] | Steps[Decided[Record, Reply]]]


class DecisionHost(Generic[Record]):
    __slots__ = ("_error", "_journal", "_prepare", "_queue", "machine")

    def __init__(
        self,
        machine: StateMachine[Record],
        journal: Journal[Record],
        pieces: Pieces | None = None,
        prepare: Prepare[Record] | None = None,
    ) -> None:
        """`prepare` does the slow work for many records; without it they are appended and applied like
        few."""
        self.machine = machine
        self._journal = journal
        # The default never ends a piece, so that everything is done at once.
        self._queue = WorkQueue(pieces if pieces is not None else Pieces(lambda: 0.0), QUEUE_FULL)
        self._prepare = prepare
        self._error: KafkaError | None = None

    @property
    def error(self) -> KafkaError | None:
        """The reason why this host refuses everything; None while it is open."""
        return self._error

    @property
    def is_busy(self) -> bool:
        """Whether a decision is in progress that others wait for."""
        return self._queue.is_busy

    def close(self, error: KafkaError) -> None:
        """Refuse everything from now on: this node has lost the state, or its journal has failed."""
        if self._error is None:
            self._error = error

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    async def write(self, decide: Decide[Record, Reply]) -> Reply:
        """Make a decision and wait for its commit. Errors wait too: they may depend on uncommitted
        records."""
        self._check()
        try:
            reply, offset = await self._queue.run(self._decide(decide))
        except KafkaError as error:
            if error is not self._error:
                await self._wait_committed(self._journal.end_offset)
            raise
        await self._wait_committed(offset)
        return reply

    async def read(self, look: Callable[[], Reply]) -> Reply:
        """Read the state, and return once everything read is committed."""
        self._check()
        reply = look()
        await self._wait_committed(self._journal.end_offset)
        return reply

    def _decide(self, decide: Decide[Record, Reply]) -> Steps[tuple[Reply, int]]:
        """Make a decision. Out: the reply, and the offset below which the journal must be committed for it.
        Other decisions wait meanwhile; the quorum's own records do not. A decision may depend on the offset
        of its records, so it is repeated if something was appended meanwhile."""
        for _ in range(ATTEMPTS_MAX):
            self._check()
            begin = self._journal.end_offset
            decided = decide()
            if isinstance(decided, Generator):
                decided = yield from decided
            append = yield from self._prepared(decided.records)
            self._check()
            if begin == self._journal.end_offset:
                return decided.reply, append()
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "every attempt at this decision was overtaken")

    def _prepared(self, records: Sequence[Record]) -> Steps[Callable[[], int]]:
        if self._prepare is None or len(records) <= RECORDS_AT_ONCE_MAX:
            return lambda: self._append(records)
        append = yield from self._prepare(records)
        return lambda: self._apply(append)

    def _append(self, records: Sequence[Record]) -> int:
        first_offset = self._journal.end_offset
        if not records:
            return first_offset
        offset = self._journal.append(records)
        self._apply(lambda: self.machine.apply(records, first_offset))
        return offset

    def _apply(self, apply: Callable[[], T]) -> T:
        try:
            return apply()
        except KafkaError:
            raise  # nothing was appended
        except BaseException:
            # A bug. Continuing would decide on a state that differs from the journal.
            self.close(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a decision could not be applied"))
            raise

    async def _wait_committed(self, offset: int) -> None:
        try:
            waiting = self._journal.committed(offset)
            if waiting is not None:
                await waiting
        except KafkaError as error:
            self.close(error)
            raise
