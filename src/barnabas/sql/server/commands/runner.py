"""Carries commands out, one after another: the metastore follows them on every node, queries run on one.

In: commands in the order of their log; whether this node leads. Out: the metastore, statuses. The node that
leads starts and stops queries, and takes all of them over when it begins to lead. An error of one command is
its status, and the next one is carried out. Does not know: HTTP, where commands come from.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Engine, Prepared
from barnabas.sql.metastore.metastore import Metastore, RemoveQuery
from barnabas.sql.server.commands.command import Command
from barnabas.sql.server.commands.statuses import CommandState, Status, Statuses
from barnabas.sql.syntax.parsing import parse_statement
from barnabas.sql.syntax.statements import AlterSystem, ControlQuery

ATTEMPTS_MAX = 30  # while brokers or the registry cannot be reached
RETRY_S, RETRY_S_MAX = 0.2, 5.0
TERMINATE_CLUSTER = "cluster"

# Gets the command and the topics that queries wrote.
OnTerminate = Callable[[Command, frozenset[str]], Awaitable[None]]

log = logging.getLogger("barnabas.sql")


class Runner:
    def __init__(self, make_engine: Callable[[], Engine]) -> None:
        self.metastore = Metastore()
        self.statuses = Statuses()
        self.paused: frozenset[str] = frozenset()
        self.system: dict[str, str] = {}  # of ALTER SYSTEM
        self.is_leading = False
        self.is_terminated = False
        self._told_to_lead = False
        self.on_terminate: OnTerminate | None = None
        self._make_engine = make_engine
        self._engine: Engine | None = None
        self._live: dict[str, Prepared] = {}  # by the query that each starts
        self._prepared: dict[int, Prepared] = {}  # of statements that this node took
        self._queue: asyncio.Queue[Command | bool] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = self._make_engine()
        return self._engine

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._engine is not None:
            await self._engine.close()
            self._engine = None

    def enqueue(self, command: Command) -> None:
        self.statuses.put(str(command.id), command.number, QUEUED)
        self._queue.put_nowait(command)

    def lead(self, is_leading: bool) -> None:
        """Whether this node runs the queries; the same twice changes nothing."""
        if is_leading != self._told_to_lead:
            self._told_to_lead = is_leading
            self._queue.put_nowait(is_leading)

    def expect(self, number: int, prepared: Prepared) -> None:
        """The command of this number was prepared here already."""
        self._prepared[number] = prepared

    async def _run(self) -> None:
        while True:
            found = await self._queue.get()
            if isinstance(found, bool):
                await self._follow_leadership(found)
                continue
            try:
                await self._carry_out(found)
            finally:
                await self.statuses.ended(found.number)

    # -- commands ------------------------------------------------------------------------------------

    async def _carry_out(self, command: Command) -> None:
        self.statuses.put(
            str(command.id), command.number, Status(CommandState.EXECUTING, "Executing statement")
        )
        try:
            status = await self._status_of(command)
        except SqlError as error:
            status = Status(CommandState.ERROR, str(error))
            log.error("the statement %d failed: %s: %s", command.number, error, command.statement)
        except Exception as error:
            status = Status(CommandState.ERROR, f"{type(error).__name__}: {error}")
            log.exception("the statement %d failed: %s", command.number, command.statement)
        self.statuses.put(str(command.id), command.number, status)

    async def _status_of(self, command: Command) -> Status:
        if command.id.kind == TERMINATE_CLUSTER:
            return await self._terminate_cluster(command)
        statement = parse_statement(command.statement)
        if isinstance(statement, ControlQuery):
            return await self._control(statement)
        if isinstance(statement, AlterSystem):
            self.system[statement.name] = statement.value
            return Status(CommandState.SUCCESS, f"System property {statement.name} was altered successfully.")
        prepared = self._prepared.pop(command.number, None)
        if prepared is None:
            prepared = await self._patiently(
                lambda: self.engine.prepare(
                    statement, command.statement, self.metastore, command.all_properties, command.number
                )
            )
        self.metastore = self.metastore.apply(prepared.changes)
        if prepared.starts is not None:
            self._live[prepared.starts] = prepared
        self._forget_ended()
        if self.is_leading:
            await self.engine.carry_out(prepared)
        return Status(CommandState.SUCCESS, prepared.message or "Statement executed", prepared.starts)

    async def _patiently(self, prepare: Callable[[], Awaitable[Prepared]]) -> Prepared:
        """A command that was accepted once is not lost because a broker is away for a moment."""
        pause_s = RETRY_S
        for _ in range(ATTEMPTS_MAX):
            try:
                return await prepare()
            except (KafkaError, ClientError, OSError) as error:
                log.warning("a statement cannot be carried out yet: %s", error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RETRY_S_MAX)
        return await prepare()

    async def _control(self, statement: ControlQuery) -> Status:
        chosen = sorted(self.metastore.queries) if statement.query_id is None else [statement.query_id]
        for query_id in chosen:
            self.metastore.query(query_id)
            match statement.action:
                case "TERMINATE":
                    self.metastore = self.metastore.apply([RemoveQuery(query_id)])
                    self.paused -= {query_id}
                    if self.is_leading:
                        await self.engine.stop(query_id)
                case "PAUSE":
                    self.paused |= {query_id}
                    if self.is_leading:
                        await self.engine.pause(query_id)
                case "RESUME":
                    self.paused -= {query_id}
                    if self.is_leading:
                        await self.engine.resume(query_id)
        self._forget_ended()
        done = {"TERMINATE": "terminated", "PAUSE": "paused", "RESUME": "resumed"}[statement.action]
        return Status(CommandState.SUCCESS, f"Query {done}.")

    async def _terminate_cluster(self, command: Command) -> Status:
        self.is_terminated = True
        for query_id in sorted(self.metastore.queries):
            if self.is_leading:
                await self.engine.stop(query_id)
        written = frozenset(each.topic for each in self.metastore.sources.values() if each.made_by)
        self.metastore = Metastore()
        self._live.clear()
        if self.is_leading and self.on_terminate is not None:
            await self.on_terminate(command, written)
        return Status(CommandState.SUCCESS, "Cluster terminated.")

    def _forget_ended(self) -> None:
        for query_id in [each for each in self._live if each not in self.metastore.queries]:
            del self._live[query_id]
        self.paused &= set(self.metastore.queries)

    # -- leading -------------------------------------------------------------------------------------

    async def _follow_leadership(self, is_leading: bool) -> None:
        if is_leading == self.is_leading:
            return
        self.is_leading = is_leading
        if not is_leading:
            log.warning("this node runs the queries no more")
            engine, self._engine = self._engine, None
            if engine is not None:
                await engine.close()
            return
        log.info("this node runs the queries: %d", len(self._live))
        for query_id, prepared in list(self._live.items()):
            try:
                await self.engine.carry_out(prepared)
                if query_id in self.paused:
                    await self.engine.pause(query_id)
            except Exception:
                log.exception("the query %s does not start", query_id)


QUEUED = Status(CommandState.QUEUED, "Statement written to the command topic")
