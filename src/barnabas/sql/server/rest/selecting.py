"""SELECT and PRINT: from a request's text to rows.

In: a session and a text. Out: `Answer`, which yields texts in a form. Rows are taken from the engine as the
reader takes them, so a slow reader holds them up and costs no memory. Does not know: HTTP's frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from barnabas.services.errors import ApiError
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Prepared, PullResult, Row, RunningSelect, SelectKind
from barnabas.sql.server.printing.printer import printed
from barnabas.sql.server.rest.forms import Form
from barnabas.sql.server.statements.changing import prepare
from barnabas.sql.server.statements.errors import (
    SERVER_ERROR,
    StatementRefused,
    bad_request,
    error_json,
    refused,
)
from barnabas.sql.server.statements.request import parsed, shown
from barnabas.sql.server.statements.selects import OpenSelect
from barnabas.sql.server.statements.session import Server, Session
from barnabas.sql.syntax.splitting import StatementText, split
from barnabas.sql.syntax.statements import Print, Query

PULLED_AT_ONCE = 500  # rows in one piece of a response
ROWS_A_TURN = 50  # of a push query, until other tasks run
SELECT_ID_BITS = 63
PULL_NUMBERS = itertools.count(1)

log = logging.getLogger("barnabas.sql")


@dataclass(frozen=True, slots=True)
class Selection:
    """A SELECT that may start, or a PRINT."""

    statement: Query | Print
    text: str
    prepared: Prepared | None = None


async def selection(session: Session, text: str) -> Selection:
    """StatementRefused says why the text is nothing that can be selected."""
    piece = one_piece(text)
    try:
        statement, whole = parsed(session, piece)
        if isinstance(statement, Print):
            return Selection(statement, whole)
        if not isinstance(statement, Query):
            raise StatementRefused(
                "Only SELECT and PRINT are supported here: send other statements to /ksql",
                whole,
            )
        number = random.getrandbits(SELECT_ID_BITS)  # its id ends with it, and must be its own
        prepared = await prepare(session, statement, whole, session.server.metastore, number)
    except SqlError as error:
        raise refused(error, shown(piece)) from None
    if prepared.select is SelectKind.PUSH:
        session.server.selects.check_push()
    return Selection(statement, whole, prepared)


def one_piece(text: str) -> StatementText:
    """The statement; its semicolon may be left out."""
    try:
        pieces = list(split(text))
    except SqlError as error:
        raise refused(error, text) from None
    if len(pieces) != 1:
        raise bad_request(f"Expected exactly one KSQL statement; found {len(pieces)} instead")
    return pieces[0]


async def pulled(server: Server, selected: Selection) -> PullResult:
    assert selected.prepared is not None
    with server.selects.pulling():
        try:
            return await server.engine.pull(selected.prepared)
        except SqlError as error:
            raise refused(error, selected.text) from None


def started(server: Server, selected: Selection) -> RunningSelect:
    assert selected.prepared is not None
    try:
        return server.engine.select(selected.prepared)
    except SqlError as error:
        raise refused(error, selected.text) from None


async def pull_texts(result: PullResult, form: Form) -> AsyncIterator[str]:
    yield form.header(f"query_{next(PULL_NUMBERS)}", result.schema)
    rows = iter(result.rows)
    while some := list(itertools.islice(rows, PULLED_AT_ONCE)):
        yield "".join(form.row(Row(each), result.schema) for each in some)
        await asyncio.sleep(0)
    yield form.end("")


async def push_texts(
    server: Server, select: RunningSelect, text: str, form: Form, stopping: asyncio.Event
) -> AsyncIterator[str]:
    async with server.selects.noted(select, text) as opened, ending(opened, stopping):
        yield form.header(select.query_id, select.schema)
        try:
            async for row in taking_turns(select):
                yield form.row(row, select.schema)
        except (SqlError, ApiError) as error:
            problem = refused(error, text) if isinstance(error, SqlError) else error
            yield form.error(error_json(problem))
            return
        except Exception as error:
            log.exception("the query %s failed", select.query_id)
            yield form.error(error_json(ApiError(500, SERVER_ERROR, f"the query failed: {error}")))
            return
        yield form.end(select.end)


async def taking_turns(select: RunningSelect) -> AsyncIterator[Row]:
    """The rows. Other tasks run in between, also while rows are there all the time: one of them may know
    that the reader has gone."""
    count = 0
    async for row in select:
        yield row
        count += 1
        if count % ROWS_A_TURN == 0:
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def ending(opened: OpenSelect, stopping: asyncio.Event) -> AsyncIterator[None]:
    """Close the SELECT when it is ended from elsewhere, or the server stops: its iteration ends then."""

    async def watch() -> None:
        waits = [asyncio.ensure_future(each.wait()) for each in (opened.ended, stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        await opened.select.close()

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()


async def print_texts(server: Server, statement: Print, stopping: asyncio.Event) -> AsyncIterator[str]:
    registry = server.registry() if server.settings.registry_url else None
    lines = printed(server.cluster, statement, registry)
    async for line in until(lines, stopping.is_set):
        yield line + "\n"


async def until(lines: AsyncIterator[str], is_over: Callable[[], bool]) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if is_over():
            return
