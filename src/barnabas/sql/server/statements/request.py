"""The statements of one request: all are checked, then they run in order.

In: a text with statements, a session. Out: entities, or StatementRefused with those of the statements before
the wrong one. While they are checked, each statement sees a metastore with the changes of those before it.
Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from barnabas.services.errors import ApiError
from barnabas.sql.errors import Position, SqlError
from barnabas.sql.execution.port import Prepared, TopicNeeded
from barnabas.sql.metastore.metastore import Metastore, RemoveQuery
from barnabas.sql.server.commands.command_log import LogUnavailable
from barnabas.sql.server.settings.properties import IMMUTABLE, is_known, plain_name
from barnabas.sql.server.statements import asserting, changing, connectors, describing, listing
from barnabas.sql.server.statements.entities import Entity
from barnabas.sql.server.statements.errors import QUERY_ENDPOINT, StatementRefused, refused
from barnabas.sql.server.statements.session import Session
from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax.parsing import parse_statement
from barnabas.sql.syntax.splitting import StatementText, split, substitute

STATEMENTS_MAX = 1000  # of one request
NEWS_S = 5.0  # for commands of other nodes
Run = Callable[[Session, Any, str], Awaitable[Entity]]

RUNS: Mapping[type[made.Statement], Run] = {
    **dict.fromkeys(changing.LOGGED, changing.change),
    made.ControlQuery: changing.control,
    made.AlterSystem: changing.alter_system,
    made.Listing: listing.show,
    made.Describe: describing.describe,
    made.DescribeAll: describing.describe_all,
    made.DescribeFunction: describing.describe_function,
    made.DescribeConnector: describing.describe_connector,
    made.Explain: describing.explain,
    made.CreateConnector: connectors.create_connector,
    made.DropConnector: connectors.drop_connector,
    made.AssertTopic: asserting.assert_topic,
    made.AssertSchema: asserting.assert_schema,
}
OF_SHELL = (made.RunScript, made.Spool)


async def run_request(
    session: Session, text: str, extend: Callable[[float], None] | None = None
) -> list[Entity]:
    """`extend` gives the request so many seconds more, which its ASSERTs may wait."""
    pieces = pieces_of(text)
    waits_s = asserting.waits_s(each.text for each in pieces)
    if extend is not None and waits_s:
        extend(waits_s)
    known = session.server.commands.next_number
    try:
        await validate(session.copy(), pieces)
    except StatementRefused:
        if not await has_news(session, known):
            raise
        await validate(session.copy(), pieces)
    entities: list[Entity] = []
    for piece in pieces:
        try:
            found = await run_one(session, piece)
        except ApiError as error:
            if isinstance(error, StatementRefused):
                error.statement = error.statement or shown(piece)
                error.entities = entities
            raise
        except SqlError as error:
            problem = refused(located(error, piece), shown(piece))
            problem.entities = entities
            raise problem from None
        if found is not None:
            entities.append(found)
    return entities


async def has_news(session: Session, known: int) -> bool:
    """Whether another node has appended commands that this one had not carried out: what a statement lacks
    may be among them."""
    commands = session.server.commands
    try:
        await commands.catch_up()
    except LogUnavailable:
        return False
    if commands.next_number == known:
        return False
    await session.server.runner.statuses.wait(commands.next_number - 1, NEWS_S)
    return True


def pieces_of(text: str) -> list[StatementText]:
    try:
        pieces = list(split(text))
    except SqlError as error:
        raise refused(error, text) from None
    if len(pieces) > STATEMENTS_MAX:
        raise StatementRefused(f"a request has at most {STATEMENTS_MAX} statements, not {len(pieces)}")
    if pieces and not pieces[-1].is_ended:
        raise StatementRefused("the statement ends too early: expected ';'", pieces[-1].text)
    return pieces


def shown(piece: StatementText) -> str:
    return f"{piece.text};" if piece.is_ended else piece.text


def parsed(session: Session, piece: StatementText) -> tuple[made.Statement, str]:
    text = piece.text
    if session.server.settings.substitutes_variables:
        text = substitute(text, session.variables)
    return parse_statement(text), f"{text};"


def located(error: SqlError, piece: StatementText) -> SqlError:
    """The error with its place in the whole text."""
    if error.at is not None and (piece.at.line, piece.at.column) != (1, 1):
        column = error.at.column + (piece.at.column - 1 if error.at.line == 1 else 0)
        error.at = Position(error.at.line + piece.at.line - 1, column)
        error.statement = f"{piece.text};"
    return error


async def validate(session: Session, pieces: list[StatementText]) -> None:
    metastore = session.server.metastore
    number = session.server.commands.next_number
    new_topics: list[TopicNeeded] = []
    for piece in pieces:
        try:
            statement, text = parsed(session, piece)
            metastore = await check(session, statement, text, metastore, number, new_topics)
        except SqlError as error:
            raise refused(located(error, piece), shown(piece)) from None
        except StatementRefused as error:
            error.statement = error.statement or shown(piece)
            raise
        number += isinstance(statement, changing.LOGGED)


async def check(
    session: Session,
    statement: made.Statement,
    text: str,
    metastore: Metastore,
    number: int,
    new_topics: list[TopicNeeded],
) -> Metastore:
    """The metastore after the statement, whose topics are added to the new ones. SqlError or
    StatementRefused if it cannot run."""
    match statement:
        case made.Query() | made.Print():
            raise StatementRefused(
                "The following statement types should be issued to the endpoint '/query-stream' or '/query': "
                "SELECT and PRINT",
                text,
                code=QUERY_ENDPOINT,
            )
        case made.SetProperty() | made.UnsetProperty() | made.Define() | made.Undefine():
            set_in_session(session, statement)
        case made.ControlQuery():
            return check_control(session, statement, metastore)
        case made.Describe():
            metastore.source(statement.name, statement.at)
        case _ if isinstance(statement, changing.PREPARED):
            changing.check_writable(session.server)
            prepared: Prepared = await changing.prepare(
                session, statement, text, metastore, number, new_topics
            )
            new_topics += prepared.topics
            return metastore.apply(prepared.changes)
        case _ if isinstance(statement, OF_SHELL):
            raise StatementRefused("only the shell runs this statement", text)
    return metastore


def check_control(session: Session, statement: made.ControlQuery, metastore: Metastore) -> Metastore:
    query_id = statement.query_id
    selects = session.server.selects
    is_push = query_id is not None and statement.action == "TERMINATE" and selects.find(query_id) is not None
    if query_id is not None and not is_push:
        metastore.query(query_id, statement.at)
    if statement.action != "TERMINATE" or is_push:
        return metastore
    chosen = list(metastore.queries) if query_id is None else [query_id]
    return metastore.apply([RemoveQuery(each) for each in chosen])


def set_in_session(session: Session, statement: made.Statement) -> None:
    match statement:
        case made.SetProperty():
            check_property(session, statement.name)
            session.set(statement.name, statement.value)
        case made.UnsetProperty():
            session.unset(statement.name)
        case made.Define():
            session.variables[statement.name] = statement.value
        case made.Undefine():
            session.variables.pop(statement.name, None)


def check_property(session: Session, name: str) -> None:
    if plain_name(name) in IMMUTABLE or not is_known(name, session.server.settings.shown):
        raise StatementRefused(f"Unknown property: {name}: LIST PROPERTIES; shows those that can be set")


async def run_one(session: Session, piece: StatementText) -> Entity | None:
    statement, text = parsed(session, piece)
    if isinstance(statement, made.SetProperty | made.UnsetProperty | made.Define | made.Undefine):
        set_in_session(session, statement)
        return None
    if isinstance(statement, made.InsertValues):
        await insert(session, statement, text)
        return None
    return await RUNS[type(statement)](session, statement, text)


async def insert(session: Session, statement: made.InsertValues, text: str) -> None:
    changing.check_writable(session.server)
    number = session.server.commands.next_number
    prepared = await changing.prepare(session, statement, text, session.server.metastore, number)
    await session.server.engine.insert(prepared)
