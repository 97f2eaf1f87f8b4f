"""How each refined table is updated: by increments where its SQL allows it, as a whole where it must be.

In: a pipeline and a refined table. Out: an `Update`, with the reason in words for `plan`. Pure. Does not
know: Spark, versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlglot import exp

from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Pipeline, Refined, Refresh
from barnabas.pipeline.spec.refined_sql import SqlProblem
from barnabas.pipeline.spec.star import NotAStar, Star, star_of

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
MERGED_BY: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Count: "sum",
    exp.CountIf: "sum",
    exp.Min: "least",
    exp.Max: "greatest",
}


class UpdateMode(StrEnum):
    BATCHES = "batches"  # each batch of its input is appended with that batch
    ROWS = "rows"  # rows that changed ones give are added and removed
    GROUPS = "groups"  # groups of changed rows are merged, or computed again
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Update:
    """How a table is updated. `keys` are columns that groups differ by; `merged_by` says how each other
    column of a group takes in added rows, and is empty if the group must be computed again. `aliases` are
    names in GROUP BY that mean terms of the SELECT only if no input has a column of that name."""

    mode: UpdateMode
    reason: str = ""
    star: Star | None = None
    keys: tuple[str, ...] = ()
    merged_by: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    is_steady: bool = True  # the same inputs give the same rows

    @property
    def text(self) -> str:
        """The mode as text for people, as in `plan`."""
        match self.mode:
            case UpdateMode.BATCHES:
                return "each batch is appended"
            case UpdateMode.ROWS:
                return "changed rows are replaced"
            case UpdateMode.GROUPS if self.merged_by:
                return "added rows are merged into their groups; groups of other changes are computed again"
            case UpdateMode.GROUPS:
                return "groups with changed rows are computed again"
            case _:
                return f"computed as a whole each time, because {self.reason}"


def known_columns(update: Update, columns: Iterable[str]) -> Update:
    """The update, once the columns of the inputs are known: Spark's GROUP BY prefers them to aliases."""
    there = {name.lower() for name in columns}
    hidden = [name for name in update.aliases if name.lower() in there]
    return whole(means_the_input(hidden[0])) if hidden else update


def means_the_input(name: str) -> str:
    return f"GROUP BY {name} means the column {name} of an input, so several groups may show the same {name}"


def whole(reason: str, *, is_steady: bool = True) -> Update:
    return Update(UpdateMode.WHOLE, reason, is_steady=is_steady)


def update_of(pipeline: Pipeline, refined: Refined) -> Update:
    if refined.python:
        return whole("a Python function computes it", is_steady=False)
    try:
        tree = refined_sql.parse(refined.sql)
    except SqlProblem as problem:
        return whole(f"its SQL cannot be read: {problem}", is_steady=False)
    for node in tree.walk():
        if is_unsteady(node):
            return whole(f"{node.sql(dialect='spark')} gives something else each time", is_steady=False)
    if refined.refresh is Refresh.FULL:
        return whole("the file says refresh: full")
    if refined_sql.appends(pipeline, refined):
        return Update(UpdateMode.BATCHES)
    if not isinstance(tree, exp.Select):
        return whole("it is a UNION or another combination of queries")
    if reason := why_not_by_rows(tree):
        return whole(reason)
    try:
        star = star_of(tree)
    except NotAStar as problem:
        return whole(str(problem))
    known = set(refined_sql.inputs_of(pipeline, refined))
    for name in (star.name, *(each.name for each in star.joined)):
        if name not in known:
            return whole(f"{name} is no table of the lake")
    return by_groups(tree, star) if is_grouped(tree) else Update(UpdateMode.ROWS, star=star)


def is_unsteady(node: exp.Expr) -> bool:
    """Whether a function gives something else each time."""
    return isinstance(node, UNSTEADY) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in UNSTEADY_NAMES
    )


def why_not_by_rows(tree: exp.Select) -> str:
    """Why a row of the result depends on more than its own rows or group; empty if it does not."""
    for word, name in (
        ("order", "ORDER BY"),
        ("limit", "LIMIT"),
        ("offset", "OFFSET"),
        ("qualify", "QUALIFY"),
    ):
        if tree.args.get(word):
            return f"it has {name}"
    if tree.find(exp.Window):
        return "window functions depend on many rows"
    return ""


def is_grouped(tree: exp.Select) -> bool:
    return bool(tree.args.get("group") or tree.args.get("distinct") or tree.find(exp.AggFunc))


def by_groups(tree: exp.Select, star: Star) -> Update:
    names = [each.alias_or_name for each in tree.expressions]
    if tree.is_star or "" in names or "*" in names or len({name.lower() for name in names}) < len(names):
        return whole("each column needs a name of its own, so that groups can be found again")
    group = tree.args.get("group")
    if tree.args.get("distinct"):
        if group is not None or tree.find(exp.AggFunc):
            return whole("it has DISTINCT and groups")
        return Update(UpdateMode.GROUPS, star=star, keys=tuple(names))
    keys: list[str] = []
    aliases: list[str] = []
    if group is not None:
        if any(group.args.get(word) for word in ("grouping_sets", "cube", "rollup", "all")):
            return whole("it has GROUPING SETS, CUBE, ROLLUP or GROUP BY ALL")
        for each in group.expressions:
            key = selected_as(each, tree)
            if not key:
                return whole(f"it groups by {each.sql(dialect='spark')}, which it does not select")
            keys.append(key)
            if (hidden := alias_in(each, tree)) is not None:
                if any(column.name.lower() == key.lower() for column in hidden.find_all(exp.Column)):
                    return whole(means_the_input(key))
                aliases.append(key)
    others = [each for each in tree.expressions if each.alias_or_name not in keys]
    merged = {each.alias_or_name: merged_by(each.unalias()) for each in others}
    if tree.args.get("having") or not all(merged.values()) or not keys:
        merged = {}
    return Update(UpdateMode.GROUPS, star=star, keys=tuple(keys), merged_by=merged, aliases=tuple(aliases))


def selected_as(grouped: exp.Expr, tree: exp.Select) -> str:
    """The column of the result that a term of GROUP BY means; empty if there is none."""
    if isinstance(grouped, exp.Literal) and grouped.is_int:
        place = int(grouped.name) - 1
        return str(tree.expressions[place].alias_or_name) if 0 <= place < len(tree.expressions) else ""
    for each in tree.expressions:
        if each.unalias() == grouped:
            return str(each.alias_or_name)
    if isinstance(grouped, exp.Column) and not grouped.table:
        for each in tree.expressions:
            if each.alias_or_name == grouped.name and not each.find(exp.AggFunc):
                return grouped.name
    return ""


def alias_in(grouped: exp.Expr, tree: exp.Select) -> exp.Expr | None:
    """The computed term of SELECT that a name in GROUP BY may mean; None if the term is a column, or a number
    or the term itself stands in GROUP BY."""
    if not isinstance(grouped, exp.Column) or any(each.unalias() == grouped for each in tree.expressions):
        return None
    for each in tree.expressions:
        term: exp.Expr = each.unalias()
        is_plain = isinstance(term, exp.Column) and term.name.lower() == grouped.name.lower()
        if each.alias_or_name == grouped.name and not grouped.table and not is_plain:
            return term
    return None


def merged_by(value: exp.Expr) -> str:
    """How an aggregate of some rows is merged with that of others; empty if it cannot be."""
    inner = value.this if isinstance(value, exp.Filter) else value
    if isinstance(inner.args.get("this"), exp.Distinct):
        return ""
    return next((how for kind, how in MERGED_BY.items() if type(inner) is kind), "")
