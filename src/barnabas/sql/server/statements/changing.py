"""Statements that change something: checked, appended to the command log, carried out by the runner.

In: a session and a statement. Out: the entity with what became of it. Its topics and schemas are made by
this node before the command is appended. Does not know: the engine's work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.services.errors import ApiError
from barnabas.sql.execution.port import Prepared, TopicNeeded
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.server.commands.command import Command, CommandId
from barnabas.sql.server.commands.command_log import LogUnavailable
from barnabas.sql.server.commands.runner import QUEUED
from barnabas.sql.server.settings.properties import IMMUTABLE, is_known
from barnabas.sql.server.statements.entities import Entity, entity
from barnabas.sql.server.statements.errors import (
    COMMAND_BEHIND,
    NOT_READY,
    SERVER_ERROR,
    SHUT_DOWN,
    StatementRefused,
)
from barnabas.sql.server.statements.session import Server, Session
from barnabas.sql.syntax import statements as made

LOGGED = (
    made.CreateSource, made.CreateAs, made.InsertInto, made.DropSource, made.AlterSource, made.CreateType,
    made.DropType,
)  # fmt: skip
PREPARED = (*LOGGED, made.InsertValues)
BEHIND_S_MAX = 30.0  # until commands before a new one are carried out


@dataclass(frozen=True, slots=True)
class AppendedCommand:
    """A command's place in the log; `number` is None for a statement that changes nothing."""

    number: int | None
    id: CommandId
    message: str
    warnings: tuple[str, ...] = ()


def check_writable(server: Server) -> None:
    if server.runner.is_terminated:
        raise ApiError(503, SHUT_DOWN, "The cluster of this server was terminated: start it anew")
    reason = server.why_read_only()
    if reason is not None:
        raise StatementRefused(reason)


async def change(session: Session, statement: made.Statement, text: str) -> Entity:
    """Take a statement of the kinds `LOGGED`."""

    async def choose(number: int) -> tuple[Command | None, AppendedCommand]:
        server = session.server
        await all_before(server, number)
        prepared = await prepare(session, statement, text, server.metastore, number)
        found = command_id(statement, prepared)
        if not prepared.changes:
            return None, AppendedCommand(None, found, prepared.message, prepared.warnings)
        server.metastore.apply(prepared.changes)
        check_persistent_limit(server, prepared)
        await server.engine.create_resources(prepared)
        server.runner.expect(number, prepared)
        command = Command(found, prepared.text or text, dict(session.properties), defaults_of(session))
        return command, AppendedCommand(number, found, prepared.message, prepared.warnings)

    return await append(session, choose, text)


async def control(session: Session, statement: made.ControlQuery, text: str) -> Entity:
    """TERMINATE, PAUSE and RESUME. Push queries of this node end here, without a command."""
    if statement.query_id is not None and statement.query_id not in session.server.metastore.queries:
        if statement.action == "TERMINATE" and session.server.selects.end(statement.query_id):
            return entity("terminate_query", text, queryId=statement.query_id, wasTerminated=True)
        session.server.metastore.query(statement.query_id, statement.at)
    name = statement.query_id or "ALL"
    return await append_plain(session, CommandId(statement.action.lower(), name, "execute"), text)


async def alter_system(session: Session, statement: made.AlterSystem, text: str) -> Entity:
    if statement.name in IMMUTABLE or not is_known(statement.name, session.server.settings.shown):
        raise StatementRefused(f"{statement.name} cannot be altered: no statement may change it", text)
    return await append_plain(session, CommandId("cluster_property", statement.name, "alter"), text)


async def terminate_cluster(session: Session, topics: list[str]) -> Entity:
    found = CommandId("cluster", "TerminateCluster", "terminate")
    session.properties = {"ksql.delete.topic.list": json.dumps(topics)}
    return await append_plain(session, found, "TERMINATE CLUSTER;")


async def append_plain(session: Session, command_id: CommandId, text: str) -> Entity:
    async def choose(number: int) -> tuple[Command | None, AppendedCommand]:
        await all_before(session.server, number)
        return Command(command_id, text, dict(session.properties)), AppendedCommand(number, command_id, "")

    return await append(session, choose, text)


async def append(session: Session, choose: object, text: str) -> Entity:
    server = session.server
    check_writable(server)
    try:
        taken: AppendedCommand = await server.commands.append(choose)  # type: ignore[arg-type]
    except LogUnavailable as error:
        raise StatementRefused(str(error), text, code=SERVER_ERROR, status=500) from None
    if taken.number is None:
        return entity("warning_entity", text, taken.warnings, message=taken.message)
    statuses = server.runner.statuses
    await statuses.wait(taken.number, server.settings.response_timeout_s)
    status = statuses.by_number.get(taken.number, QUEUED)
    return entity(
        "currentStatus",
        text,
        taken.warnings,
        commandId=str(taken.id),
        commandStatus=status.to_json(),
        commandSequenceNumber=taken.number,
    )


async def all_before(server: Server, number: int) -> None:
    if not await server.runner.statuses.wait(number - 1, BEHIND_S_MAX):
        raise ApiError(
            503, COMMAND_BEHIND, "Statements before this one are still being carried out: try again"
        )


async def prepare(
    session: Session,
    statement: made.Statement,
    text: str,
    metastore: Metastore,
    number: int,
    new_topics: Sequence[TopicNeeded] = (),
) -> Prepared:
    """SqlError says what is wrong with the statement. `new_topics`: those of statements before it."""
    properties = session.all_properties
    return await session.server.engine.prepare(statement, text, metastore, properties, number, new_topics)


def check_persistent_limit(server: Server, prepared: Prepared) -> None:
    running, limit = len(server.metastore.queries), server.settings.persistent_max
    if prepared.starts is not None and prepared.starts not in server.metastore.queries and running >= limit:
        raise StatementRefused(
            f"{running} persistent queries are running, and ksql.query.persistent.active.limit={limit} "
            "allows no more: terminate one of them, or raise the limit"
        )


def defaults_of(session: Session) -> dict[str, str]:
    """Facts that other nodes need to understand the statement as this node does."""
    return {**session.server.settings.defaults, **session.server.runner.system}


def command_id(statement: made.Statement, prepared: Prepared) -> CommandId:
    kind, name = prepared.entity if prepared.entity[0] else ("stream", "")
    match statement:
        case made.DropSource() | made.DropType():
            action = "drop"
        case made.AlterSource():
            action = "alter"
        case _:
            action = "create"
    return CommandId(kind.lower(), name or "UNNAMED", action)


def not_ready(reason: str) -> ApiError:
    return ApiError(
        503, NOT_READY, f"KSQL is not yet ready to serve requests: {reason}", {"retry-after": "1"}
    )
