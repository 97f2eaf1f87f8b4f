"""The host of decisions for coroutines: each awaits its reply, and gets it when everything is committed.

In: a state machine (`apply(records, first_offset)`, which cannot fail) and a journal to append to. Out:
replies and errors, each only when everything it depends on is committed. When a commit fails, all that wait
are refused and the host is closed: its owner drops it and replays the journal into a new one.
A decision may come in steps, and thousands of records are prepared in steps. All records take effect at once,
at the end.
Does not know: what the records mean, how the journal commits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any, Generic, Protocol, TypeVar

from barnabas.decisions.commit_waits import CommitFuture, CommitWaits
from barnabas.decisions.host import DecisionHost
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import Pieces, Steps

RECORDS_AT_ONCE_MAX = 100  # more are prepared in pieces
ATTEMPTS_MAX = 3  # for a decision made in pieces
QUEUE_FULL = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too many requests wait for a long one")
FULL = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too many requests wait for the commit of records")
UNUSED_MS = -1  # the journal has a clock of its own
UNAPPLIED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a decision could not be applied")

Record = TypeVar("Record")
RecordIn = TypeVar("RecordIn", contravariant=True)
RecordOut = TypeVar("RecordOut", covariant=True)
Reply = TypeVar("Reply")
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

    @property
    def commit_waits(self) -> CommitWaits[CommitFuture]:
        """The queue of waiters for commits, of this host and of others."""

    def append(self, records: Sequence[RecordIn]) -> int:
        """Append the records together and return the offset after them. Raises KafkaError and changes nothing
        if it cannot."""

    def committed(self, offset: int) -> Awaitable[None] | None:
        """Wait until everything below `offset` is committed; None when it is already."""


Prepare = Callable[[Sequence[Record]], Steps[Callable[[], int]]]
"""Does the slow work for many records. Its result appends and applies them at once and returns the end
offset."""
Decide = Callable[[], Decided[Record, Reply] | Steps[Decided[Record, Reply]]]


class AwaitedHost(DecisionHost[Decided[Record, Any]], Generic[Record]):
    __slots__ = ("_journal", "_prepare", "machine", "observe")

    def __init__(
        self,
        machine: StateMachine[Record],
        journal: Journal[Record],
        pieces: Pieces | None = None,
        prepare: Prepare[Record] | None = None,
    ) -> None:
        """`prepare` does the slow work for many records; without it they are appended and applied like
        few."""
        # The default never ends a piece, so that everything is done at once.
        super().__init__(
            pieces if pieces is not None else Pieces(lambda: 0.0),
            journal.commit_waits,
            queue_full=QUEUE_FULL,
            full=FULL,
        )
        self.machine = machine
        self._journal = journal
        self._prepare = prepare
        # Called after each decision: when it was asked for and when its turn came, in nanoseconds.
        self.observe: Callable[[int, int], None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a decision is in progress that others wait for."""
        return self.work_queue.is_busy

    def close(self, error: KafkaError) -> None:
        """Refuse everything from now on: this node has lost the state, or its journal has failed."""
        if self.error is None:
            self.error = error

    async def write(self, decide: Decide[Record, Reply]) -> Reply:
        """Make a decision and wait for its commit. Errors wait too: they may depend on uncommitted
        records."""
        self.check_open()
        self.check_room()
        try:
            reply, offset = await self.work_queue.run(self._made(decide, perf_counter_ns()))
        except KafkaError:
            self.check_open()
            await self._wait_committed(self._journal.end_offset)
            raise
        await self._wait_committed(offset)
        return reply

    async def read(self, look: Callable[[], Reply]) -> Reply:
        """Read the state, and return once everything read is committed."""
        self.check_open()
        self.check_room()
        reply = look()
        await self._wait_committed(self._journal.end_offset)
        return reply

    def write_at_once(self, decided: Decided[Record, Any]) -> None:
        """Append and apply a decision, and wait for nothing. KafkaError: it was refused."""
        self.check_open()
        self.append_and_apply(decided, UNUSED_MS)

    def _made(self, decide: Decide[Record, Reply], asked_ns: int) -> Steps[tuple[Reply, int]]:
        """Make a decision. Out: the reply, and the offset below which the journal must be committed for
        it."""
        began_ns = perf_counter_ns()
        decided = yield from self.in_steps(Attempts(self, self._journal, decide))
        if self.observe is not None:
            self.observe(asked_ns, began_ns)
        return decided.reply, self._journal.end_offset

    def prepared(self, decided: Decided[Record, Any]) -> Steps[Callable[[], object]]:
        """Do the slow work for many records. The result appends and applies them at once."""
        if self._prepare is None or len(decided.records) <= RECORDS_AT_ONCE_MAX:
            return partial(self.append_and_apply, decided, UNUSED_MS)
        append_and_apply = yield from self._prepare(decided.records)
        return partial(self._closing_on_a_bug, append_and_apply)

    def append(self, decided: Decided[Record, Any], now_ms: int) -> None:
        self._journal.append(decided.records)

    def apply(self, decided: Decided[Record, Any]) -> None:
        records = decided.records
        first_offset = self._journal.end_offset - len(records)
        self._closing_on_a_bug(partial(self.machine.apply, records, first_offset))

    def _closing_on_a_bug(self, apply: Callable[[], object]) -> None:
        try:
            apply()
        except KafkaError:
            raise  # nothing was appended
        except BaseException:
            # Continuing would decide on a state that differs from the journal.
            self.close(UNAPPLIED)
            raise

    async def _wait_committed(self, offset: int) -> None:
        try:
            waiting = self._journal.committed(offset)
            if waiting is not None:
                await waiting
        except KafkaError as error:
            self.close(error)
            raise


class Attempts(Generic[Record, Reply]):
    """A decision that is repeated if other records were appended meanwhile: the quorum's own do not wait in
    the queue, and a decision may depend on the offset of its records."""

    __slots__ = ("_append_and_apply", "_decide", "_host", "_journal")

    def __init__(
        self, host: AwaitedHost[Record], journal: Journal[Record], decide: Decide[Record, Reply]
    ) -> None:
        self._host = host
        self._journal = journal
        self._decide = decide
        self._append_and_apply: Callable[[], object]

    def decide(self) -> Steps[Decided[Record, Reply]]:
        for _ in range(ATTEMPTS_MAX):
            begin = self._journal.end_offset
            decided = self._decide()
            if isinstance(decided, Generator):
                decided = yield from decided
            self._append_and_apply = yield from self._host.prepared(decided)
            if begin == self._journal.end_offset:
                return decided
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "every attempt at this decision was overtaken")

    def write(self, decided: Decided[Record, Reply]) -> Steps[None]:
        self._append_and_apply()
        return
        yield

    def keeps_state_after(self, error: KafkaError) -> bool:
        return True  # nothing was applied
