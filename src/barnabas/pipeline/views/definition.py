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
from barnabas.pipeline.spec.refined_sql import readable
from barnabas.pipeline.spec.star import NotAStar, Star, star_of, written
from barnabas.pipeline.spec.update_mode import is_unsteady
from barnabas.pipeline.views import measures
from barnabas.pipeline.views.decomposing import Decomposer, Hidden, NotDecomposable, aggregate_of
from barnabas.pipeline.views.layout import MERGES, Computed, Merge

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
WINDOW_BOUNDS = ("start", "end")


class DefinitionError(Exception):
    """A view that cannot be computed as it is written; one line for each problem."""


@dataclass(frozen=True)
class Definition:
    """A view that both layers can compute.

    `derived` has the columns that are computed when the view is queried, over keys, measures and `hidden`
    columns; `condition` is its HAVING."""

    name: str
    table: TableName
    sql: str
    keys: tuple[str, ...]
    measures: Mapping[str, Merge]
    derived: Mapping[str, str]
    event_time: str
    hidden: tuple[Hidden, ...] = ()
    condition: str = ""

    @cached_property
    def tree(self) -> exp.Select:
        (tree,) = parsed(self.sql)
        assert isinstance(tree, exp.Select)
        return tree

    @cached_property
    def lookups(self) -> tuple[str, ...]:
        """Other tables that the SQL joins."""
        own = names_of(self.table)
        return tuple(dict.fromkeys(name for name in map(written, tables_of(self.tree)) if name not in own))

    @cached_property
    def star(self) -> Star | None:
        """How other tables are joined, if changes in them can be followed; None if not, or without any."""
        return None if not self.lookups or why_not_followed(self) else star_of(self.tree)


def why_not_followed(definition: Definition) -> str:
    """Why changes of joined tables reach the view with the next batch part only; empty if they do not."""
    if not definition.lookups:
        return ""
    try:
        star = star_of(definition.tree)
    except NotAStar as reason:
        return str(reason)
    if star.name not in names_of(definition.table):
        return f"FROM does not begin with {definition.table.name}"
    return ""


def parsed(sql: str) -> list[exp.Expr | None]:
    """The statements of a text; SqlglotError if it is no SQL."""
    return list(sqlglot.parse(readable(sql), dialect="spark"))


def define(view: View, event_time: str = "") -> Definition:
    """DefinitionError where the view has problems."""
    if problems := problems_of(view, event_time):
        raise DefinitionError("\n".join(f"view {view.name}: {problem}" for problem in problems))
    merges = {name: Merge(text) for name, text in view.measures.items() if text in MERGES}
    (tree,) = parsed(view.sql)
    assert isinstance(tree, exp.Select)
    decomposer = decomposer_of(view, tree)
    for name, projection in computed_of(view, tree).items():
        decomposer.derived[name] = decomposer.over_columns(projection.unalias())
    derived = {name: each.sql(dialect="spark") for name, each in decomposer.derived.items()}
    for name, text in view.measures.items():
        if text not in MERGES and text not in set(Computed):
            whole = sqlglot.parse_one(text, dialect="spark")
            derived[name] = with_computed(whole, decomposer.derived).sql(dialect="spark")
            decomposer.derived[name] = sqlglot.parse_one(derived[name], dialect="spark")
    having = tree.args.get("having")
    condition = "" if having is None else decomposer.over_columns(having.this).sql(dialect="spark")
    return Definition(
        view.name,
        view.table,
        view.sql,
        tuple(view.keys),
        merges,
        derived,
        event_time,
        tuple(decomposer.hidden.values()),
        condition,
    )


def decomposer_of(view: View, tree: exp.Select) -> Decomposer:
    stored = {name for name, text in view.measures.items() if text in MERGES} | set(view.keys)
    given = {each.unalias(): each.alias_or_name for each in tree.expressions if each.alias_or_name in stored}
    return Decomposer(given)


def computed_of(view: View, tree: exp.Select) -> dict[str, exp.Expr]:
    """Columns of the SQL that are computed when the view is queried."""
    kinds = set(Computed)
    return {
        each.alias_or_name: each
        for each in tree.expressions
        if view.measures.get(each.alias_or_name) in kinds
    }


def with_computed(tree: exp.Expr, computed: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression with computed columns in place of their names."""

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in computed:
            return exp.Paren(this=computed[node.name].copy())
        return node

    return tree.transform(replaced)


def problems_of(view: View, event_time: str = "") -> list[str]:
    """Every problem that the text of a view shows, in one sentence each."""
    try:
        trees = parsed(view.sql)
    except SqlglotError as problem:
        return [f"the SQL cannot be read: {str(problem).splitlines()[0]}"]
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        return ["the SQL is one SELECT … FROM … GROUP BY"]
    tree = trees[0]
    found = [*columns_wrong(view, tree), *shape_wrong(view, tree)]
    projections = {each.alias_or_name: each for each in tree.expressions}
    for name, text in view.measures.items():
        if text in MERGES and name in projections:
            found += measures.measure_wrong(name, Merge(text), projections[name], event_time)
        elif text not in MERGES and text not in set(Computed):
            found += measures.derived_wrong(view, name, text)
    return [*found, *computed_wrong(view, tree)]


def computed_wrong(view: View, tree: exp.Select) -> Iterator[str]:
    """Problems of columns and conditions that are computed from merged columns."""
    decomposer = decomposer_of(view, tree)
    kinds: dict[Computed, tuple[type[exp.Expr], ...]] = {
        Computed.AVG: (exp.Avg,),
        Computed.VARIANCE: (exp.Variance, exp.VariancePop),
        Computed.STDDEV: (exp.Stddev, exp.StddevPop, exp.StddevSamp),
    }
    for name, projection in computed_of(view, tree).items():
        value = projection.unalias()
        kind = Computed(view.measures[name])
        inner = aggregate_of(measures.aggregate(value))
        if kind in kinds and not isinstance(inner, kinds[kind]):
            yield f"{name} merges by {kind}, so it is {kind}(…), not {value.sql(dialect='spark')}"
            continue
        try:
            decomposer.derived[name] = decomposer.over_columns(value)
        except NotDecomposable as problem:
            yield f"{name}: {problem}"
    having = tree.args.get("having")
    if having is None:
        return
    derived = {name: text for name, text in view.measures.items()
               if text not in MERGES and text not in set(Computed)}  # fmt: skip
    decomposer.derived.update((name, exp.null()) for name in (*derived, *computed_of(view, tree)))
    try:
        decomposer.over_columns(having.this)
    except NotDecomposable as problem:
        yield f"HAVING: {problem}"


def columns_wrong(view: View, tree: exp.Select) -> Iterator[str]:
    if not view.measures:
        yield "it has no measures: say how each column that is not a key merges, as in {orders: count}"
    given = [each.alias_or_name for each in tree.expressions]
    merged = [name for name, text in view.measures.items() if text in {*MERGES, *Computed}]
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
    for word in ("distinct", "limit", "offset", "order", "qualify", "windows"):
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
    computed = [id(each) for each in computed_of(view, tree).values()]
    for node in tree.walk():
        if isinstance(node, exp.Window) and not any(id(each) in computed for each in above(node)):
            yield (
                "window functions work on the rows of the view: give the column the measure `computed`, "
                "or compute them in a refined table"
            )
        if is_unsteady(node):
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
        if is_time_window(each):
            bounds = [name for name in view.keys if is_bound_of(each, name, tree)]
            grouped.update(bounds)
            if not bounds:
                yield "the SQL groups by a window of time: make window.start or window.end a key"
            continue
        name = key_of(each, tree)
        if name not in view.keys:
            yield f"the SQL groups by {each.sql(dialect='spark')}, which is not a key"
        grouped.add(name)
    for name in view.keys:
        if name not in grouped and any(each.alias_or_name == name for each in tree.expressions):
            yield f"the SQL does not group by the key {name}"


def is_time_window(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() == "window"


def is_bound_of(window: exp.Expr, key: str, tree: exp.Select) -> bool:
    """Whether a key is the start or the end of a window of time."""
    for each in tree.expressions:
        value = each.unalias()
        if each.alias_or_name != key:
            continue
        if isinstance(value, exp.Column):
            return value.table.lower() == "window" and value.name.lower() in WINDOW_BOUNDS
        return (
            isinstance(value, exp.Dot)
            and value.this == window
            and value.expression.name.lower() in WINDOW_BOUNDS
        )
    return False


def above(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node and everything around it."""
    found: exp.Expr | None = node
    while found is not None:
        yield found
        found = found.parent


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


def names_of(table: TableName) -> tuple[str, str]:
    """The names that SQL may use for a table of the lake."""
    return (table.name, str(table))
