"""Parts of the language that a server may switch off, by ksqlDB's settings. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from barnabas.sql.analysis.context import Context
from barnabas.sql.errors import Position, SqlError
from barnabas.sql.syntax import statements as s
from barnabas.sql.syntax import tree

INSERT_VALUES = "ksql.insert.into.values.enabled"
LIMITS = "ksql.query.pull.limit.clause.enabled"
PARTS = s.Query | s.Join | s.Item | s.CreateAs | s.InsertInto | s.InsertValues  # that have expressions


def check_switches(statement: s.Statement, context: Context) -> None:
    """SqlError for a part that the server does not allow, with the setting that would."""
    for setting, what, at in used_parts(statement):
        if (context.setting(setting) or "true").lower() == "false":
            raise SqlError(switched_off(what, setting), at or statement.at)


def switched_off(what: str, setting: str) -> str:
    return f"This server has {what} switched off: {setting}=true allows it"


def used_parts(statement: s.Statement) -> Iterator[tuple[str, str, Position | None]]:
    match statement:
        case s.InsertValues():
            yield INSERT_VALUES, "INSERT INTO … VALUES", None
        case s.CreateSource() | s.CreateAs():
            if statement.or_replace:
                yield "ksql.create.or.replace.enabled", "CREATE OR REPLACE", None
    if isinstance(statement, s.CreateSource):
        for column in statement.columns or ():
            if column.role == s.Role.HEADERS:
                yield "ksql.headers.columns.enabled", "HEADERS columns", column.at
    query = statement if isinstance(statement, s.Query) else getattr(statement, "query", None)
    if isinstance(query, s.Query):
        if query.emit == "FINAL":
            yield "ksql.suppress.enabled", "EMIT FINAL", None
        if query.emit is None and query.limit is not None:
            yield LIMITS, "LIMIT in pull queries", None
    for found in lambdas_in(statement):
        yield "ksql.lambdas.enabled", "lambdas", found.at


def lambdas_in(value: Any) -> Iterator[tree.Lambda]:
    """All lambdas of a statement, an expression or a part of one."""
    if isinstance(value, tree.Lambda):
        yield value
    if isinstance(value, tuple):
        for each in value:
            yield from lambdas_in(each)
    elif isinstance(value, tree.Expression | PARTS):
        for field in dataclasses.fields(value):
            if field.name != "at":
                yield from lambdas_in(getattr(value, field.name))
