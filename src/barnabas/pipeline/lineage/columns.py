"""Finds the columns that a query's columns are computed from, with sqlglot.

In: SQL in Spark's dialect, and the columns of the tables that it may name. Out: for each column of the
result, its origins and how it is computed. A query that cannot be analysed gives nothing: lineage must not
stop a pipeline that Spark can run. Does not know: pipelines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from barnabas.pipeline.lineage.graph import Use
from barnabas.pipeline.spec.refined_sql import readable

DIALECT = "spark"


@dataclass(frozen=True, slots=True, order=True)
class From:
    """A column of a table that the query names."""

    table: str
    column: str


def tables_of(sql: str) -> list[str]:
    """The tables that a query reads, as it names them, those of WITH apart; empty if it cannot be parsed."""
    try:
        parsed = sqlglot.parse_one(readable(sql), dialect=DIALECT)
    except SqlglotError:
        return []
    within = {each.alias_or_name for each in parsed.find_all(exp.CTE)}
    found: list[str] = []
    for table in parsed.find_all(exp.Table):
        name = f"{table.db}.{table.name}" if table.db else table.name
        if name not in within and name not in found:
            found.append(name)
    return found


def columns_of(sql: str, tables: Mapping[str, Mapping[str, str]]) -> dict[str, dict[From, Use]]:
    """`tables` maps names as the query has them (`orders`, `trusted.orders`) to columns with their types."""
    try:
        parsed = sqlglot.parse_one(readable(sql), dialect=DIALECT)
        flat = _flattened(parsed, tables)
        schema: dict[str, object] = {
            flat_name(name): dict(columns) for name, columns in tables.items() if columns
        }
        qualified = qualify(
            flat,
            dialect=DIALECT,
            schema=schema,
            validate_qualify_columns=False,
            identify=False,
            quote_identifiers=False,
        )
        scope = build_scope(qualified)
        if scope is None or not isinstance(scope.expression, exp.Query):
            return {}
        names = {flat_name(name): name for name in tables}
        return {
            select.alias_or_name: _origins(select.alias_or_name, scope, schema, names)
            for select in scope.expression.selects
            if select.alias_or_name not in ("", "*")
        }
    except (SqlglotError, ValueError, KeyError, RecursionError, AttributeError):
        return {}


def flat_name(name: str) -> str:
    """`trusted.orders` as one word, so that tables with and without a zone live in one schema."""
    return name.replace(".", "__")


def _flattened(parsed: exp.Expr, tables: Mapping[str, Mapping[str, str]]) -> exp.Expr:
    for table in parsed.find_all(exp.Table):
        name = f"{table.db}.{table.name}" if table.db else table.name
        if table.db and name in tables:
            alias = table.alias or table.name
            table.set("db", None)
            table.set("this", exp.to_identifier(flat_name(name)))
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    return parsed


def _origins(
    column: str, scope: Scope, schema: dict[str, object], names: Mapping[str, str]
) -> dict[From, Use]:
    root = lineage(column, scope.expression, schema=schema, scope=scope, dialect=DIALECT)
    assert isinstance(root, Node)
    found: dict[From, Use] = {}
    _walk(root, Use.IDENTITY, names, found)
    return found


def _walk(node: Node, use: Use, names: Mapping[str, str], found: dict[From, Use]) -> None:
    if isinstance(node.expression, exp.Table):
        name = names.get(node.expression.name, node.expression.name)
        place = From(name, node.name.rpartition(".")[2])
        found[place] = stronger(found.get(place, Use.IDENTITY), use)
        return
    here = stronger(use, use_of(node.expression))
    for below in node.downstream:
        _walk(below, here, names, found)


def use_of(expression: exp.Expr) -> Use:
    inner = expression.unalias()
    if isinstance(inner, exp.Query):
        return Use.IDENTITY
    if inner.find(exp.AggFunc) is not None:
        return Use.AGGREGATION
    return Use.IDENTITY if isinstance(inner, exp.Column) else Use.TRANSFORMATION


def stronger(one: Use, other: Use) -> Use:
    order = (Use.IDENTITY, Use.TRANSFORMATION, Use.MASKED, Use.AGGREGATION)
    return max(one, other, key=order.index)
