"""The host of a core in decide/apply form: decide, append, apply, wait for commit, answer.

In: a machine (`apply(records, first_offset)`, which cannot fail) and a journal to append to. Out: answers,
each given only when everything it rests on is committed. Decisions see what was appended before them,
committed or not, so many can be on their way at once; when a commit fails, all of them are refused and the
shard is closed: its owner drops it and replays the journal into a new one.
Does not know: what the records mean, how the journal commits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from barnabas.protocol import ErrorCode, KafkaError

Record = TypeVar("Record")
RecordIn = TypeVar("RecordIn", contravariant=True)
RecordOut = TypeVar("RecordOut", covariant=True)
Reply = TypeVar("Reply")
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


class Shard(Generic[Record]):
    __slots__ = ("_error", "_journal", "machine")

    def __init__(self, machine: Machine[Record], journal: Journal[Record]) -> None:
        self.machine = machine
        self._journal = journal
        self._error: KafkaError | None = None

    @property
    def error(self) -> KafkaError | None:
        """Why this shard takes nothing any more; None while it does."""
        return self._error

    def close(self, error: KafkaError) -> None:
        """Refuse everything from now on: this node has lost the shard, or its journal has failed."""
        if self._error is None:
            self._error = error

    async def write(self, decide: Callable[[], Decided[Record, Reply]]) -> Reply:
        """Runs a decision and waits for its commit. Errors wait too: they may rest on what is not committed
        yet."""
        if self._error is not None:
            raise self._error
        try:
            decision = decide()
        except KafkaError:
            await self._settled(self._journal.end_offset)
            raise
        records = decision.records
        offset = first_offset = self._journal.end_offset
        if records:
            offset = self._journal.append(records)
            try:
                self.machine.apply(records, first_offset)
            except BaseException:
                # It never should; going on would decide on a state that the journal does not tell.
                self.close(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a decision could not be applied"))
                raise
        await self._settled(offset)
        return decision.reply

    async def read(self, look: Callable[[], Reply]) -> Reply:
        """Looks at the state, and answers once what was seen is committed."""
        if self._error is not None:
            raise self._error
        reply = look()
        await self._settled(self._journal.end_offset)
        return reply

    async def _settled(self, offset: int) -> None:
        try:
            waiting = self._journal.committed(offset)
            if waiting is not None:
                await waiting
        except KafkaError as error:
            self.close(error)
            raise
