"""The log of commands: a topic that every node reads, and that one node at a time appends to.

In: functions that decide on a command when everything before it is known. Out: commands in one order, by a
callback. Each append takes the fence of the topic where another node had it, so two nodes that decide at once
cannot both append: the later one decides anew. `MemoryLog` has the same face for a server without a topic.
Does not know: statements.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.transaction import Fenced
from barnabas.registry.log.changes import KeyValue
from barnabas.registry.log.fenced_writer import TooLarge
from barnabas.registry.log.schema_log import LogSettings, SchemaLog, StoreFailed, StoreTimedOut
from barnabas.sql.server.commands.command import Command, decode, encode

T = TypeVar("T")
ATTEMPTS_MAX = 10  # of nodes that take the fence from each other
SELDOM_S = 0.05

OnCommand = Callable[[Command], None]
Choose = Callable[[int], Awaitable[tuple[Command | None, T]]]


class LogUnavailable(Exception):
    """The command was not appended, or nobody knows: brokers cannot be reached, or refuse it."""


class CommandLog(Protocol):
    next_number: int

    async def start(self) -> None:
        """Hand over all commands that are there; those that come later follow."""

    async def stop(self) -> None: ...

    def why_not_ready(self) -> str | None: ...

    async def catch_up(self) -> None:
        """Read what other nodes have appended up to now."""

    async def append(self, choose: Choose[T]) -> T:
        """Append the command that `choose` returns; none for None. `choose` gets the command's number, runs
        alone, and may run again. LogUnavailable if the command cannot be appended."""


@dataclass(frozen=True, slots=True)
class Chosen(Generic[T]):
    records: Sequence[KeyValue]
    reply: T


class TopicLog:
    def __init__(self, cluster: ClusterCore, settings: LogSettings, on_command: OnCommand) -> None:
        self.next_number = 0
        self._on_command = on_command
        self._log = SchemaLog(cluster, settings, self)
        self._tasks: set[asyncio.Task[object]] = set()

    def apply(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        command = decode(key, value, self.next_number)
        if command is not None:
            self.next_number += 1
            self._on_command(command)

    async def start(self) -> None:
        await self._log.start()

    async def stop(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._log.stop()

    def why_not_ready(self) -> str | None:
        return self._log.why_not_ready()

    async def catch_up(self) -> None:
        try:
            await self._log.catch_up()
        except (StoreFailed, StoreTimedOut) as error:
            raise LogUnavailable(str(error)) from error

    async def append(self, choose: Choose[T]) -> T:
        # A caller that disconnects must not leave a batch in doubt.
        task = asyncio.create_task(self._append(choose))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved: the caller may have disconnected

    async def _append(self, choose: Choose[T]) -> T:
        async def decide() -> Chosen[T]:
            command, reply = await choose(self.next_number)
            return Chosen([] if command is None else [encode(command)], reply)

        try:
            for attempt in range(ATTEMPTS_MAX):
                try:
                    return await self._log.change(decide, lambda: None)
                except Fenced:
                    self._log.give_up_writing()
                    await asyncio.sleep(attempt * SELDOM_S)
        except TooLarge as error:
            raise LogUnavailable(f"the statement is too large for the command topic: {error}") from None
        except (StoreFailed, StoreTimedOut) as error:
            raise LogUnavailable(f"Could not write the statement into the command topic: {error}") from error
        raise LogUnavailable("other nodes write statements all the time: try again")


class MemoryLog:
    """Commands of one process, kept nowhere: for the statements of a file."""

    def __init__(self, on_command: OnCommand) -> None:
        self.next_number = 0
        self._on_command = on_command
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return

    def why_not_ready(self) -> str | None:
        return None

    async def catch_up(self) -> None:
        return

    async def append(self, choose: Choose[T]) -> T:
        async with self._lock:
            command, reply = await choose(self.next_number)
            if command is not None:
                found = decode(*encode(command), self.next_number)
                assert found is not None
                self.next_number += 1
                self._on_command(found)
            return reply
