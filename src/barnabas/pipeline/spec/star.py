"""Star queries: one table in FROM, and others joined to it directly.

In: a SELECT. Out: a `Star`, or why the SELECT is none. A change in a joined table changes the result only for
rows of the first table that match the changed rows, so increments need no more than those. Pure. Does not
know: Spark, versions, which tables there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import expressions as exp

SIDES = ("", "LEFT")
KINDS = ("", "INNER", "OUTER", "SEMI", "ANTI")


class NotAStar(ValueError):
    """The SELECT is no star; the message says why, as the end of a sentence with "because"."""


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table that is joined: its name as written, its alias, and the condition over both aliases."""

    name: str
    alias: str
    condition: str


@dataclass(frozen=True, slots=True)
class Star:
    """The first table, and those joined to it."""

    name: str
    alias: str
    joined: tuple[JoinedTable, ...]


def star_of(tree: exp.Select) -> Star:
    """NotAStar if the SELECT has another form."""
    if tree.args.get("with_") or tree.args.get("with"):
        raise NotAStar("it has WITH")
    first = tree.args.get("from_") or tree.args.get("from")
    table = first.this if first is not None else None
    if not isinstance(table, exp.Table):
        raise NotAStar("it selects FROM a query" if first is not None else "it has no FROM")
    if tree.args.get("laterals") or tree.args.get("pivots") or table.args.get("pivots"):
        raise NotAStar("it has LATERAL or PIVOT")
    names = [written(each) for each in tree.find_all(exp.Table)]
    if len(set(names)) < len(names):
        raise NotAStar(f"it names {max(names, key=names.count)} several times")
    joins = [*(tree.args.get("joins") or ()), *(table.args.get("joins") or ())]
    if len(names) != 1 + len(joins):
        raise NotAStar("it has a query inside of the query")
    alias = table.alias or table.name
    return Star(written(table), alias, tuple(joined_by(alias, join) for join in joins))


def joined_by(alias: str, join: exp.Join) -> JoinedTable:
    table = join.this
    if not isinstance(table, exp.Table):
        raise NotAStar("it joins a query")
    text = " ".join(filter(None, (join.method, join.side, join.kind, "JOIN")))
    if join.method or join.side not in SIDES or join.kind not in KINDS:
        raise NotAStar(f"{text} gives rows that are not rows of the first table")
    own = table.alias or table.name
    using = join.args.get("using")
    if using:
        parts = [equal(alias, own, each.name) for each in using]
        return JoinedTable(written(table), own, exp.and_(*parts).sql(dialect="spark"))
    condition = join.args.get("on")
    if condition is None or isinstance(condition, exp.Boolean):
        raise NotAStar(f"{written(table)} is joined without a condition")
    for column in condition.find_all(exp.Column):
        if not column.table:
            raise NotAStar(f"{column.sql(dialect='spark')} in ON does not say of which table it is")
        if column.table.lower() not in (alias.lower(), own.lower()):
            raise NotAStar(f"{written(table)} is joined through {column.table}")
    return JoinedTable(written(table), own, condition.sql(dialect="spark"))


def equal(left: str, right: str, name: str) -> exp.Expr:
    return exp.EQ(
        this=exp.column(name, table=left, quoted=True), expression=exp.column(name, table=right, quoted=True)
    )


def affected_sql(star: Star, rows: str, changed: Callable[[str], str | None]) -> str:
    """SQL for the rows of `rows` that match changed rows; `changed` gives the place of a table's changed
    rows, or None if the table did not change."""
    conditions = list(conditions_of(star, changed))
    return f"SELECT `{star.alias}`.* FROM {rows} AS `{star.alias}` WHERE {' OR '.join(conditions) or 'false'}"


def conditions_of(star: Star, changed: Callable[[str], str | None]) -> Iterator[str]:
    for each in star.joined:
        place = changed(each.name)
        if place is not None:
            yield f"EXISTS (SELECT 1 FROM {place} AS `{each.alias}` WHERE {each.condition})"


def written(table: exp.Table) -> str:
    return f"{table.db}.{table.name}" if table.db else table.name
