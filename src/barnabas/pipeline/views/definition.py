"""A view's definition: which columns are keys, which are measures, and how each measure merges.

In: the model's `View`, and the name of its table's event time. Out: a `Definition`, or every problem in
one sentence (`problems_of`). Both layers run the same SQL on parts of the rows, so results of parts must
merge into the result of all rows. SQL for which that is impossible is refused here, before Spark starts.
Does not know: Spark, the store, types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from barnabas.pipeline.lake.tables import TableName
from barnabas.pipeline.spec.model import View
from barnabas.pipeline.views import measures
from barnabas.pipeline.views.layout import Merge

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
UNSTEADY = (exp.Rand, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.CurrentDatetime, exp.Uuid)
UNSTEADY_NAMES = {
    "now",
    "uuid",
    "random",
    "randn",
    "monotonically_increasing_id",
    "input_file_name",
    "shuffle",
}


class DefinitionError(Exception):
    """A view that cannot be computed as it is written; one line for each problem."""


@dataclass(frozen=True)
class Definition:
    """A view that both layers can compute."""

    name: str
    table: TableName
    sql: str
    keys: tuple[str, ...]
    measures: Mapping[str, Merge]
    derived: Mapping[str, str]
    event_time: str

    @cached_property
    def tree(self) -> exp.Select:
        tree = sqlglot.parse_one(self.sql, dialect="spark")
        assert isinstance(tree, exp.Select)
        return tree

    @cached_property
    def lookups(self) -> tuple[str, ...]:
        """Other tables that the SQL joins; a part sees them as they are when it is computed."""
        own = names_of(self.table)
        return tuple(dict.fromkeys(name for name in map(written, tables_of(self.tree)) if name not in own))


def define(view: View, event_time: str = "") -> Definition:
    """DefinitionError where the view has problems."""
    if problems := problems_of(view, event_time):
        raise DefinitionError("\n".join(f"view {view.name}: {problem}" for problem in problems))
    merges = {name: Merge(text) for name, text in view.measures.items() if text in set(Merge)}
    derived = {name: text for name, text in view.measures.items() if name not in merges}
    return Definition(view.name, view.table, view.sql, tuple(view.keys), merges, derived, event_time)


def problems_of(view: View, event_time: str = "") -> list[str]:
    """Every problem that the text of a view shows, in one sentence each."""
    try:
        trees = sqlglot.parse(view.sql, dialect="spark")
    except SqlglotError as problem:
        return [f"the SQL cannot be read: {str(problem).splitlines()[0]}"]
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        return ["the SQL is one SELECT … FROM … GROUP BY"]
    tree = trees[0]
    found = [*columns_wrong(view, tree), *shape_wrong(view, tree)]
    projections = {each.alias_or_name: each for each in tree.expressions}
    for name, text in view.measures.items():
        if text not in set(Merge):
            found += measures.derived_wrong(view, name, text)
        elif name in projections:
            found += measures.measure_wrong(name, Merge(text), projections[name], event_time)
    return found


def columns_wrong(view: View, tree: exp.Select) -> Iterator[str]:
    if not view.measures:
        yield "it has no measures: say how each column that is not a key merges, as in {orders: count}"
    given = [each.alias_or_name for each in tree.expressions]
    merged = [name for name, text in view.measures.items() if text in set(Merge)]
    if tree.is_star or "" in given or "*" in given:
        yield "each column of the SQL needs a name: write AS name, and no *"
        return
    for name in [*view.keys, *view.measures]:
        if not PLAIN.fullmatch(name):
            yield f"{name!r} is not a name of a column: letters, digits and _, a letter first"
    lower = [name.lower() for name in (*given, *(set(view.measures) - set(merged)))]
    for name in sorted({name for name in lower if lower.count(name) > 1}):
        yield f"the column {name} is there twice"
    for name in view.keys:
        if name in view.measures:
            yield f"{name} is a key and a measure"
        if name not in given:
            yield f"the SQL gives no column {name}, which is a key: it gives {', '.join(given)}"
    for name in merged:
        if name not in given:
            yield f"the SQL gives no column {name}, which is a measure: it gives {', '.join(given)}"
    for name in given:
        if name not in view.keys and name not in merged:
            yield f"the column {name} is neither key nor measure: add it to one of them"


def shape_wrong(view: View, tree: exp.Select) -> Iterator[str]:
    own = names_of(view.table)
    uses = [table for table in tables_of(tree) if written(table) in own]
    if len(uses) != 1:
        yield f"the SQL names its table {view.table} {len(uses)} times: once, as {view.table.name}"
    for word in ("having", "distinct", "limit", "offset", "order", "qualify"):
        if tree.args.get(word):
            yield f"{word.upper()} is for questions: a view holds all its keys, so that parts can be merged"
    yield from groups_wrong(view, tree)
    for select in enclosing(uses[0]) if uses else []:
        if select is not tree and (
            any(select.args.get(word) for word in ("group", "distinct", "limit", "having", "qualify"))
            or select.find(exp.AggFunc)
        ):
            yield f"{view.table.name} is aggregated twice: parts of the rows could not be merged"
        yield from joins_wrong(view, select, uses[0])
    if uses and uses[0].find_ancestor(exp.Where, exp.In, exp.Exists):
        yield f"{view.table.name} stands in a condition: the view's rows come FROM {view.table.name}"
    if uses and (cte := uses[0].find_ancestor(exp.CTE)) is not None:
        times = sum(table.name.lower() == cte.alias.lower() for table in tree.find_all(exp.Table))
        if times != 1:
            yield f"{cte.alias} is used {times} times: each row of {view.table.name} counts once"
    if uses and uses[0].find_ancestor(exp.SetOperation):
        yield f"{view.table.name} is inside a UNION: a view is one SELECT over its table"
    for node in tree.walk():
        if isinstance(node, exp.Window):
            yield "window functions need all rows at once: compute them in a refined table"
        if isinstance(node, UNSTEADY) or (
            isinstance(node, exp.Anonymous) and node.name.lower() in UNSTEADY_NAMES
        ):
            text = node.sql(dialect="spark")
            yield f"{text} gives something else each time: both layers must compute the same"


def groups_wrong(view: View, tree: exp.Select) -> Iterator[str]:
    group = tree.args.get("group")
    if group is None:
        if view.keys:
            yield f"the SQL does not group: GROUP BY {', '.join(view.keys)}"
        return
    if any(group.args.get(word) for word in ("grouping_sets", "cube", "rollup")):
        yield "GROUPING SETS, CUBE and ROLLUP give rows of several kinds: write a view for each"
        return
    if group.args.get("all"):
        return
    grouped = set()
    for each in group.expressions:
        name = key_of(each, tree)
        if name not in view.keys:
            yield f"the SQL groups by {each.sql(dialect='spark')}, which is not a key"
        grouped.add(name)
    for name in view.keys:
        if name not in grouped and any(each.alias_or_name == name for each in tree.expressions):
            yield f"the SQL does not group by the key {name}"


def key_of(grouped: exp.Expr, tree: exp.Select) -> str:
    """The column of the result that a term of GROUP BY means: by number, by name, or by expression."""
    if isinstance(grouped, exp.Literal) and grouped.is_int:
        place = int(grouped.name) - 1
        return tree.expressions[place].alias_or_name if 0 <= place < len(tree.expressions) else ""
    for each in tree.expressions:
        if each.unalias() == grouped:
            return str(each.alias_or_name)
    if isinstance(grouped, exp.Column) and any(
        each.alias_or_name == grouped.name for each in tree.expressions
    ):
        return grouped.name
    return ""


def joins_wrong(view: View, select: exp.Select, use: exp.Table) -> Iterator[str]:
    for join in select.args.get("joins") or ():
        is_joined = use is join.this or any(use is inner for inner in join.this.find_all(exp.Table))
        if (
            join.side in ("RIGHT", "FULL")
            or (is_joined and join.side == "LEFT")
            or (is_joined and join.kind in ("SEMI", "ANTI"))
        ):
            yield (
                f"a {' '.join(filter(None, (join.side, join.kind)))} JOIN gives rows that are not rows of "
                f"{view.table.name}: write FROM {view.table.name} LEFT JOIN …"
            )


def enclosing(table: exp.Table) -> Iterator[exp.Select]:
    """The SELECTs around a table, from the inside out."""
    select = table.find_ancestor(exp.Select)
    seen: set[int] = set()
    while select is not None and id(select) not in seen:
        seen.add(id(select))
        yield select
        select = select.find_ancestor(exp.Select)


def tables_of(tree: exp.Expr) -> list[exp.Table]:
    """Tables of the lake that a statement names, without those of its own WITH."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    return [table for table in tree.find_all(exp.Table) if table.db or table.name.lower() not in own]


def written(table: exp.Table) -> str:
    return f"{table.db}.{table.name}" if table.db else table.name


def names_of(table: TableName) -> tuple[str, str]:
    """The names that SQL may use for a table of the lake."""
    return (table.name, str(table))
