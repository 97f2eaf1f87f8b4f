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

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Generic, Protocol, TypeVar

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import Pieces, Steps, Work

RECORDS_AT_ONCE_MAX = 100  # more are prepared in pieces
ATTEMPTS_MAX = 3  # for a decision made in pieces

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
    __slots__ = ("_error", "_is_busy", "_journal", "_pieces", "_prepare", "_turns", "machine")

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
        self._pieces = pieces if pieces is not None else Pieces(lambda: 0.0)
        self._prepare = prepare
        self._error: KafkaError | None = None
        self._is_busy = False  # whether a decision takes several turns of the loop
        self._turns: deque[asyncio.Future[None]] = deque()  # decisions that wait, in order

    @property
    def error(self) -> KafkaError | None:
        """The reason why this host refuses everything; None while it is open."""
        return self._error

    @property
    def is_busy(self) -> bool:
        """Whether a decision is in progress that others wait for."""
        return self._is_busy

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
        if self._is_busy:
            await self._wait_for_turn()
            try:
                reply, offset = await self._decide(decide)
            finally:
                self._pass_turn()
        else:
            reply, offset = await self._decide(decide)
        await self._wait_committed(offset)
        return reply

    async def read(self, look: Callable[[], Reply]) -> Reply:
        """Read the state, and return once everything read is committed."""
        self._check()
        reply = look()
        await self._wait_committed(self._journal.end_offset)
        return reply

    # -- deciding --------------------------------------------------------------------------------

    async def _decide(self, decide: Decide[Record, Reply]) -> tuple[Reply, int]:
        """The reply, and the offset below which the journal must be committed for it."""
        self._check()
        try:
            work = self._begin(decide)
            is_small = work.is_done and not self._is_large(work.result.records)
        except KafkaError:
            await self._wait_committed(self._journal.end_offset)
            raise
        if is_small:
            return work.result.reply, self._append(work.result.records)
        had_turn, self._is_busy = self._is_busy, True
        try:
            return await self._decide_slowly(decide, work)
        except KafkaError:
            await self._wait_committed(self._journal.end_offset)
            raise
        finally:
            if not had_turn:
                self._pass_turn()

    async def _decide_slowly(
        self, decide: Decide[Record, Reply], work: Work[Decided[Record, Reply]]
    ) -> tuple[Reply, int]:
        """Make a decision in pieces. Other decisions wait; the quorum's own records do not. A decision may
        depend on the offset of its records, so it is repeated if something was appended meanwhile."""
        for _ in range(ATTEMPTS_MAX):
            begin = self._journal.end_offset
            try:
                decided = await work.wait()
            except asyncio.CancelledError:
                work.cancel()
                raise
            append = await self._prepared(decided.records)
            self._check()
            if begin == self._journal.end_offset:
                return decided.reply, append()
            work = self._begin(decide)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "every attempt at this decision was overtaken")

    def _begin(self, decide: Decide[Record, Reply]) -> Work[Decided[Record, Reply]]:
        decided = decide()
        return self._pieces.begin(decided if isinstance(decided, Generator) else _decided(decided))

    def _is_large(self, records: Sequence[Record]) -> bool:
        return self._prepare is not None and len(records) > RECORDS_AT_ONCE_MAX

    async def _prepared(self, records: Sequence[Record]) -> Callable[[], int]:
        if self._prepare is None or not self._is_large(records):
            return lambda: self._append(records)
        append = await self._pieces.run(self._prepare(records))
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

    # -- turns -----------------------------------------------------------------------------------

    async def _wait_for_turn(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._pass_turn()
            raise

    def _pass_turn(self) -> None:
        while self._turns:
            future = self._turns.popleft()
            if not future.done():
                future.set_result(None)
                return
        self._is_busy = False

    async def _wait_committed(self, offset: int) -> None:
        try:
            waiting = self._journal.committed(offset)
            if waiting is not None:
                await waiting
        except KafkaError as error:
            self.close(error)
            raise


def _decided(decision: T) -> Steps[T]:
    """A decision that takes no steps."""
    yield from ()
    return decision
