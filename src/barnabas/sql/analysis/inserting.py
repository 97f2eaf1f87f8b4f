"""INSERT INTO … VALUES: one row, checked and converted.

Values are expressions without columns. Those that are not given are null; ROWTIME may be given. Does not
know: bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.plans.evaluation import compile_expression
from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.stages import rows_of
from barnabas.sql.analysis.times import NoTime, millis_of
from barnabas.sql.analysis.work import InsertRow, QueryWork, WorkKind
from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.execution.port import Prepared
from barnabas.sql.expressions.casting import total
from barnabas.sql.expressions.resolving import Resolver
from barnabas.sql.expressions.scopes import Scope
from barnabas.sql.expressions.typed import Typed, coerce, literal
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.metastore.schemas import ROWTIME, Column
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.statements import InsertValues
from barnabas.sql.types.sql_types import BIGINT, NULL, SqlType, is_number


def insert_values(statement: InsertValues, context: Context) -> Prepared:
    target = context.metastore.source(statement.target, statement.at)
    check_target(target, statement)
    writable = list(target.schema)
    names = list(statement.columns) or [column.name for column in writable]
    if len(names) != len(statement.values):
        raise SqlError(
            f"Expected a value for each column. Expected Columns: {names}. "
            f"Got {len(statement.values)} values",
            statement.at,
        )
    resolver = Resolver(Scope(()), context.metastore.types, "VALUES")
    row: dict[str, Any] = {}
    for name, value in zip(names, statement.values, strict=True):
        if name in row:
            raise SqlError(f"The column {name} is given twice", statement.at)
        row[name] = evaluated(value, column_kind(target, name, statement), name, resolver)
    work = QueryWork(WorkKind.INSERT, insert=row_for(target, row, context.facts.now_ms, statement))
    return Prepared(
        statement,
        context.text,
        "INSERT_VALUES",
        schema=target.schema,
        entity=("table" if target.is_table else "stream", target.name),
        properties=context.properties,
        work=work,
    )


def check_target(target: DataSource, statement: InsertValues) -> None:
    if target.is_source:
        raise SqlError(
            f"Cannot insert values into read-only {target.kind.lower()}: {target.name}", statement.at
        )
    if target.schema.headers:
        names = ", ".join(column.name for column in target.schema.headers)
        raise SqlError(
            f"Cannot insert into {target.name} because it has header columns ({names})", statement.at
        )
    if target.window is not None:
        raise SqlError("Cannot insert values into windowed stream/table!", statement.at)


def column_kind(target: DataSource, name: str, statement: InsertValues) -> SqlType:
    if name == ROWTIME:
        return BIGINT
    found = target.schema.find(name)
    if found is None:
        known = [column.name for column in target.schema]
        raise SqlError(f"Column name `{name}` does not exist.{did_you_mean(name, known)}", statement.at)
    return found.kind


def evaluated(value: tree.Expression, wanted: SqlType, name: str, resolver: Resolver) -> Any:
    typed = resolver.resolve(value)
    try:
        fitted = fit(typed, wanted, name)
        return compile_expression(fitted.node)((None, None, 0, None, None))
    except SqlError as error:
        raise SqlError(error.message, error.at or value.at) from None
    except Exception as error:  # a function, perhaps of the user, has no value for these arguments
        raise SqlError(f"Failed to insert a value into {name}: {error}", value.at) from None


def fit(typed: Typed, wanted: SqlType, name: str) -> Typed:
    """The value as the column's type. Numbers of literals may become narrower where nothing is lost."""
    if typed.kind in (NULL, wanted):
        return typed
    if typed.is_literal and is_number(typed.kind) and is_number(wanted):
        value = total(typed.kind, wanted)(typed.value)
        if value != typed.value and wanted.base != "DOUBLE":
            raise SqlError(f"Expected type {wanted} for field {name} but got {typed.kind} ({typed.value})")
        return literal(value, wanted)
    return coerce(typed, wanted, name)


def row_for(target: DataSource, row: Mapping[str, Any], now_ms: int, statement: Any = None) -> InsertRow:
    """The record of a row by column names; columns that are not there are null."""
    at = getattr(statement, "at", None)
    key_columns: tuple[Column, ...] = target.schema.key
    key: tuple[Any, ...] | None = tuple(row.get(column.name) for column in key_columns)
    if not key_columns or (len(key_columns) == 1 and key == (None,)):
        key = None
    if target.is_table and (key is None or None in key):
        raise SqlError(
            f"Failed to insert values into '{target.name}'. Value for primary key column(s) "
            f"{', '.join(column.name for column in key_columns)} is required for tables",
            at,
        )
    value: dict[str, Any] | None = {column.name: row.get(column.name) for column in target.schema.value}
    is_bare = len(target.schema.value) == 1 and not target.value_format.is_wrapped
    if is_bare and value is not None and next(iter(value.values())) is None:
        value = None
    timestamp = row.get(ROWTIME)
    if timestamp is None and target.timestamp is not None:
        column = target.schema.find(target.timestamp.name)
        if column is not None and row.get(column.name) is not None:
            try:
                timestamp = millis_of(row[column.name], column.kind, target.timestamp.pattern)
            except NoTime as error:
                raise SqlError(f"Failed to insert a value into {column.name}: {error}", at) from error
    if timestamp is not None and timestamp < 0:
        raise SqlError(f"ROWTIME is {timestamp}: it cannot be negative", at)
    return InsertRow(rows_of(target), key, value, now_ms if timestamp is None else timestamp)
