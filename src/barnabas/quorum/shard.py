"""The host of a core in decide/apply form: decide, append, apply, wait for commit, answer.

In: a machine (`apply(records, first_offset)`, which cannot fail) and a journal to append to. Out: answers,
each given only when everything it rests on is committed. Decisions see what was appended before them,
committed or not, so many can be on their way at once; when a commit fails, all of them are refused and the
shard is closed: its owner drops it and replays the journal into a new one.
A decision may come in steps, and thousands of records are prepared in steps: then it takes several turns of
the loop, and the next decision waits for its turn. What takes effect does so at once, at the end.
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
ATTEMPTS_MAX = 3  # of a decision in pieces

Record = TypeVar("Record")
RecordIn = TypeVar("RecordIn", contravariant=True)
RecordOut = TypeVar("RecordOut", covariant=True)
Reply = TypeVar("Reply")
T = TypeVar("T")
ReplyOut = TypeVar("ReplyOut", covariant=True)


class Decided(Protocol[RecordOut, ReplyOut]):
    """A decision: records to append, and the answer for when they are committed."""

    @property
    def records(self) -> Sequence[RecordOut]: ...
    @property
    def reply(self) -> ReplyOut: ...


class Machine(Protocol[RecordIn]):
    def apply(self, records: Sequence[RecordIn], first_offset: int) -> None:
        """Take over records that were decided or replayed. Cannot fail, does not look at the clock."""


class Journal(Protocol[RecordIn]):
    """The log of one shard."""

    @property
    def end_offset(self) -> int:
        """Where the next record will stand."""

    def append(self, records: Sequence[RecordIn]) -> int:
        """Append together, or raise a KafkaError and leave everything as it was; the offset behind them."""

    def committed(self, offset: int) -> Awaitable[None] | None:
        """Waits until everything below `offset` is committed; None when it is already."""


Prepare = Callable[[Sequence[Record]], Steps[Callable[[], int]]]
"""Does what records need before they take effect; what it gives appends and applies them, at once, and says
where they end."""
Decide = Callable[[], Decided[Record, Reply] | Steps[Decided[Record, Reply]]]


class Shard(Generic[Record]):
    __slots__ = ("_error", "_is_busy", "_journal", "_pieces", "_prepare", "_turns", "machine")

    def __init__(
        self,
        machine: Machine[Record],
        journal: Journal[Record],
        pieces: Pieces | None = None,
        prepare: Prepare[Record] | None = None,
    ) -> None:
        """`prepare` is for many records; without it, they are appended and applied as few are."""
        self.machine = machine
        self._journal = journal
        # Without: a piece that never ends, so that everything is done at once.
        self._pieces = pieces if pieces is not None else Pieces(lambda: 0.0)
        self._prepare = prepare
        self._error: KafkaError | None = None
        self._is_busy = False  # a decision takes several turns of the loop
        self._turns: deque[asyncio.Future[None]] = deque()  # who decides next

    @property
    def error(self) -> KafkaError | None:
        """Why this shard takes nothing any more; None while it does."""
        return self._error

    @property
    def is_busy(self) -> bool:
        """Whether a decision is under way that others have to wait for."""
        return self._is_busy

    def close(self, error: KafkaError) -> None:
        """Refuse everything from now on: this node has lost the shard, or its journal has failed."""
        if self._error is None:
            self._error = error

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    async def write(self, decide: Decide[Record, Reply]) -> Reply:
        """Runs a decision and waits for its commit. Errors wait too: they may rest on what is not committed
        yet."""
        self._check()
        if self._is_busy:
            await self._take_turn()
            try:
                reply, offset = await self._decide(decide)
            finally:
                self._pass_turn()
        else:
            reply, offset = await self._decide(decide)
        await self._settled(offset)
        return reply

    async def read(self, look: Callable[[], Reply]) -> Reply:
        """Looks at the state, and answers once what was seen is committed."""
        self._check()
        reply = look()
        await self._settled(self._journal.end_offset)
        return reply

    # -- deciding --------------------------------------------------------------------------------

    async def _decide(self, decide: Decide[Record, Reply]) -> tuple[Reply, int]:
        """The reply, and up to where the journal has to be committed for it."""
        self._check()
        try:
            work = self._begin(decide)
            is_small = work.is_done and not self._is_large(work.result.records)
        except KafkaError:
            await self._settled(self._journal.end_offset)
            raise
        if is_small:
            return work.result.reply, self._append(work.result.records)
        had_turn, self._is_busy = self._is_busy, True
        try:
            return await self._decide_slowly(decide, work)
        except KafkaError:
            await self._settled(self._journal.end_offset)
            raise
        finally:
            if not had_turn:
                self._pass_turn()

    async def _decide_slowly(
        self, decide: Decide[Record, Reply], work: Work[Decided[Record, Reply]]
    ) -> tuple[Reply, int]:
        """Others wait meanwhile, except those that append without asking (the quorum's own records). A
        decision may rest on where its records will stand: then it is taken anew."""
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
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too much was written beside a decision")

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
            # It never should; going on would decide on a state that the journal does not tell.
            self.close(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a decision could not be applied"))
            raise

    # -- turns -----------------------------------------------------------------------------------

    async def _take_turn(self) -> None:
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

    async def _settled(self, offset: int) -> None:
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
