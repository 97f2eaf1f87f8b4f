"""Queries to a view as SQL over its merged tables.

In: an entry of the catalog, a bound query, a moment for time travel. Out: SQL and its values.
Does not know: transactions, HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlglot
from sqlglot import expressions as exp

from barnabas.pipeline.serving.store.catalog import Moment, ViewEntry
from barnabas.pipeline.serving.store.query import Bound, Filter, Operator
from barnabas.pipeline.serving.store.transaction import FROM, TO, Dialect, listed, quoted
from barnabas.pipeline.views.layout import Column, Role


def select(
    dialect: Dialect, entry: ViewEntry, bound: Bound, moment: Moment | None, limit: int, offset: int
) -> tuple[str, list[Any]]:
    """SQL of a query. Rows are ordered by key at last, so that pages are stable."""
    sql = f"SELECT {listed(column.name for column in bound.columns)} FROM "
    # Columns that nothing asks for are not computed: window functions read the whole view.
    wanted = {column.name for column in (*bound.columns, *entry.layout.keys)}
    wanted |= {item.column for item in bound.filters} | {item.column for item in bound.order}
    columns = [column for column in entry.layout.visible if column.name in wanted]
    sql += f"({source(dialect, entry, columns, moment)}) AS answer"
    conditions: list[str] = []
    values: list[Any] = []
    for item in bound.filters:
        conditions.append(condition(item))
        values += item.values
    if conditions:
        sql += " WHERE " + " AND ".join(conditions)
    order = [(item.column, item.is_descending) for item in bound.order]
    named = {name for name, _ in order}
    order += [(column.name, False) for column in entry.layout.keys if column.name not in named]
    if order:
        known = {column.name: column for column in entry.layout.visible}
        # Nulls are last in both directions: the databases have different defaults.
        sql += " ORDER BY " + ", ".join(
            f"{what} {'DESC' if is_descending else 'ASC'} NULLS LAST"
            for name, is_descending in order
            for what in dialect.ordered(known[name])
        )
    return f"{sql} LIMIT {limit} OFFSET {offset}", values


def condition(item: Filter) -> str:
    column = quoted(item.column)
    match item.operator:
        case Operator.NULL | Operator.NOT_NULL:
            return f"{column} {item.operator.upper()}"
        case Operator.IN:
            return f"{column} IN ({', '.join('?' for _ in item.values)})"
        case Operator.UNEQUAL:
            return f"{column} <> ?"
        case _:
            return f"{column} {item.operator.upper()} ?"


def source(dialect: Dialect, entry: ViewEntry, columns: Iterable[Column], moment: Moment | None) -> str:
    """A SELECT of the merged view now, or at a moment."""
    shown = ", ".join(shown_as(dialect, column) for column in columns)
    condition = entry.layout.condition
    where = f" WHERE {translated(condition, dialect)}" if condition else ""
    if moment is None:
        return f"SELECT {shown} FROM {entry.tables.now}{where}"
    version = int(moment.version)
    stored = listed([column.name for column in entry.layout.stored])
    then = (
        f"SELECT {stored} FROM {entry.tables.now} WHERE {FROM} <= {version} UNION ALL "
        f"SELECT {stored} FROM {entry.tables.past} WHERE {FROM} <= {version} AND {version} < {TO}"
    )
    return f"SELECT {shown} FROM ({then}) AS moment{where}"


def shown_as(dialect: Dialect, column: Column) -> str:
    if column.role is not Role.DERIVED:
        return quoted(column.name)
    return f"{derived(column.expression or '', dialect, column.type)} AS {quoted(column.name)}"


def derived(expression: str, dialect: Dialect, type: str) -> str:
    return f"CAST({translated(expression, dialect)} AS {dialect.type_of(type)})"


def translated(expression: str, dialect: Dialect) -> str:
    """An expression over stored columns in the store's dialect; a division by zero gives null."""
    tree = sqlglot.parse_one(expression, dialect="spark")
    for column in tree.find_all(exp.Column):
        column.this.set("quoted", True)
    for division in list(tree.find_all(exp.Div, exp.Mod)):
        division.set(
            "expression", exp.Nullif(this=division.expression.copy(), expression=exp.Literal.number(0))
        )
    return str(tree.sql(dialect=dialect.name))
