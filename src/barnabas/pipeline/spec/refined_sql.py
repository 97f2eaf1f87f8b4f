"""SQL of refined tables: which tables it reads, and whether it can run on new rows alone.

In: SQL in Spark's dialect. Out: names of tables, the SQL with other names. Pure. Does not know: Spark, the
lake.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Merging, Pipeline, Refined, Refresh

DIALECT = "spark"
NOT_ROW_WISE = (
    exp.AggFunc, exp.Window, exp.Distinct, exp.Group, exp.Having, exp.Order, exp.Limit, exp.Join,
    exp.SetOperation, exp.Subquery, exp.With, exp.Lateral,
)  # fmt: skip
# sqlglot reads `window` as a keyword, unless it is quoted. Texts in quotes stay as they are.
TIME_WINDOW = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)|\bwindow\s*\(""", re.IGNORECASE)
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class SqlProblem(ValueError):
    """The SQL cannot be parsed; the message says where."""


def readable(sql: str) -> str:
    """SQL as sqlglot reads it."""
    return TIME_WINDOW.sub(lambda found: found[1] or "`window`(", sql)


def parse(sql: str) -> exp.Query:
    try:
        found = sqlglot.parse_one(readable(sql), dialect=DIALECT)
    except SqlglotError as error:
        first = str(error).splitlines()[0] if str(error) else "no SQL"
        raise SqlProblem(first) from None
    if not isinstance(found, exp.Query):
        raise SqlProblem("only a SELECT can be used here")
    return found


def tables_in(sql: str) -> list[str]:
    """Names of tables as written (orders, trusted.orders), without those that WITH defines."""
    tree = parse(sql)
    defined = {each.alias for each in tree.find_all(exp.CTE)}
    names = [written(table) for table in tree.find_all(exp.Table)]
    return list(dict.fromkeys(name for name in names if name not in defined))


def written(table: exp.Table) -> str:
    return ".".join(part for part in (table.catalog, table.db, table.name) if part)


def resolve(pipeline: Pipeline, name: str) -> TableName | None:
    """The table of the lake that a name means; trusted tables come first."""
    zone, dot, rest = name.partition(".")
    known = {
        Zone.TRUSTED: {each.name for each in pipeline.trusted},
        Zone.REFINED: {each.name for each in pipeline.refined},
        Zone.STAGING: {each.name for each in pipeline.staging},
    }
    if dot:
        return TableName(Zone(zone), rest) if zone in known and rest in known[Zone(zone)] else None
    return next((TableName(zone, name) for zone, names in known.items() if name in names), None)


def with_names(sql: str, names: Mapping[str, str]) -> str:
    """The SQL with other names for its tables. A table without an alias keeps its name as alias."""
    tree = parse(sql)
    for table in list(tree.find_all(exp.Table)):
        other = names.get(written(table))
        if other is not None:
            alias = table.alias or table.name
            table.replace(exp.alias_(exp.to_table(other), alias, table=True))
    return tree.sql(dialect=DIALECT)


def without_having(sql: str) -> str:
    """The SQL with all of its groups."""
    tree = parse(sql)
    tree.set("having", None)
    return tree.sql(dialect=DIALECT)


def inputs_of(pipeline: Pipeline, refined: Refined) -> dict[str, TableName]:
    """The inputs of a refined table, by the names that its SQL uses."""
    names = list(refined.inputs) if refined.inputs else (tables_in(refined.sql) if refined.sql else [])
    found = {name: resolve(pipeline, name) for name in names}
    return {name: table for name, table in found.items() if table is not None}


def appends(pipeline: Pipeline, refined: Refined) -> bool:
    """Whether new rows of the input can be appended, without recomputing the table."""
    if refined.refresh is Refresh.FULL or refined.schedule or not refined.sql:
        return False
    tables = list(inputs_of(pipeline, refined).values())
    if len(tables) != 1 or tables[0].zone is not Zone.TRUSTED:
        return False
    source = pipeline.source_of(tables[0])
    if source is None or source.merging is not Merging.INSERT_NEW:
        return False
    return not any(parse(refined.sql).find_all(*NOT_ROW_WISE))


def in_order(pipeline: Pipeline) -> list[Refined]:
    """Refined tables, each after those it reads. ValueError if they read each other in a circle."""
    done: list[Refined] = []
    waiting = list(pipeline.refined)
    while waiting:
        names = {each.name for each in waiting}
        ready = [
            each
            for each in waiting
            if not any(
                table.zone is Zone.REFINED and table.name in names
                for table in inputs_of(pipeline, each).values()
            )
        ]
        if not ready:
            raise ValueError(f"refined tables read each other in a circle: {', '.join(sorted(names))}")
        done += ready
        waiting = [each for each in waiting if each not in ready]
    return done


def dependents(pipeline: Pipeline, tables: set[TableName]) -> tuple[list[Refined], list[str]]:
    """Refined tables and views (by name) that depend on these tables, in order."""
    touched = set(tables)
    refined = []
    for each in in_order(pipeline):
        if touched & set(inputs_of(pipeline, each).values()):
            refined.append(each)
            touched.add(TableName(Zone.REFINED, each.name))
    views = []
    for view in pipeline.views:
        try:
            reads = {resolve(pipeline, name) for name in tables_in(view.sql)} | {view.table}
        except ValueError:
            reads = {view.table}
        if touched & reads:
            views.append(view.name)
    return refined, views


def columns_in(sql: str) -> list[str]:
    """Names of columns that the SQL reads, without aliases that it defines."""
    try:
        tree = sqlglot.parse_one(readable(sql), dialect=DIALECT)
    except SqlglotError as error:
        raise SqlProblem(str(error).splitlines()[0] if str(error) else "no SQL") from None
    aliases = {each.alias.lower() for each in tree.find_all(exp.Alias)}
    aliases |= {each.alias.lower() for each in tree.find_all(exp.CTE, exp.Subquery, exp.Table) if each.alias}
    tables = {each.name.lower() for each in tree.find_all(exp.Table)}
    lambdas = {
        str(name).lower()
        for each in tree.find_all(exp.Lambda)
        for name in each.expressions
        for name in [name.name]
    }
    if any(each.name.lower() == "window" for each in tree.find_all(exp.Anonymous)):
        aliases.add("window")  # of window.start and window.end
    found = []
    for column in tree.find_all(exp.Column):
        # Before the dot stands a table, or a column with fields.
        if column.table.lower() == "window" and "window" in aliases:
            continue
        name = column.table if column.table and column.table.lower() not in aliases | tables else column.name
        if name and name != "*" and name.lower() not in aliases | lambdas:
            found.append(name)
    return list(dict.fromkeys(found))


def outputs_of(sql: str) -> list[str] | None:
    """The columns of the result; None if a star or an expression without a name hides them."""
    tree = parse(sql)
    names = [each.alias_or_name for each in tree.selects]
    return None if any(name in ("", "*") for name in names) else names
