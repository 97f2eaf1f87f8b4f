"""Expressions over aggregates as expressions over columns that can be merged.

In: what a view's SQL selects, its keys and its measures. Out: the same value as an expression over stored
columns, and the hidden columns that it needs: an average becomes a sum and a count, a variance becomes
a count, a sum and a spread. HAVING, averages and window functions are computed with these expressions when
the view is queried. Does not know: Spark, the store, types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import expressions as exp

from barnabas.pipeline.views.layout import Merge, count_beside, sum_beside

PART = "_part_"
VARIANCES = (exp.Variance, exp.VariancePop)
DEVIATIONS = (exp.Stddev, exp.StddevPop, exp.StddevSamp)
OF_ALL_VALUES = (exp.VariancePop, exp.StddevPop)  # not of a sample
# Names that sqlglot has no class for.
SYNONYMS = {"mean": exp.Avg, "std": exp.Stddev}
MERGED_ALONE = {exp.Sum: Merge.SUM, exp.Count: Merge.COUNT, exp.CountIf: Merge.COUNT, exp.Min: Merge.MIN,
                exp.Max: Merge.MAX}  # fmt: skip


class NotDecomposable(ValueError):
    """An expression that has no value over merged columns; the message says which part and why."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A hidden column: the aggregate that computes it from rows, and how parts of it merge."""

    name: str
    sql: str
    merge: Merge


@dataclass(slots=True)
class Decomposer:
    """Rewrites expressions of one view. `columns` maps what the SQL selects to names of stored columns;
    `derived` maps names of computed columns to their expressions."""

    columns: Mapping[exp.Expr, str]
    derived: dict[str, exp.Expr] = field(default_factory=dict)
    hidden: dict[str, Hidden] = field(default_factory=dict)

    def over_columns(self, tree: exp.Expr) -> exp.Expr:
        """The expression over stored columns. NotDecomposable says why there is none."""
        if (name := self.columns.get(tree)) is not None:
            return column(name)
        if isinstance(tree, exp.Window):
            return self._window(tree)
        if isinstance(tree, exp.Filter):
            return self._aggregate(aggregate_of(tree.this), tree.expression)
        inner = aggregate_of(tree)
        if isinstance(inner, exp.AggFunc):
            return self._aggregate(inner, None)
        if isinstance(tree, exp.Column):
            return self._column(tree)
        if isinstance(tree, exp.Query | exp.Anonymous):
            raise NotDecomposable(f"{shown(tree)} cannot stand in an expression over measures")
        return self._children(tree)

    def _children(self, tree: exp.Expr) -> exp.Expr:
        made = tree.copy()
        for name, value in tree.args.items():
            if isinstance(value, exp.Expr):
                made.set(name, self.over_columns(value))
            elif isinstance(value, list):
                each = [self.over_columns(one) if isinstance(one, exp.Expr) else one for one in value]
                made.set(name, each)
        return made

    def _window(self, tree: exp.Window) -> exp.Expr:
        """The function itself works on rows of the view; what it is given are columns of the view."""
        if tree.args.get("alias"):
            raise NotDecomposable(f"{shown(tree)}: write the window itself, not a name for it")
        made = tree.copy()
        inside = made
        function = tree.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
            inside, function = inside.this, function.this
        inside.set("this", self._children(function))
        for name in ("partition_by", "order", "spec"):
            value = tree.args.get(name)
            if isinstance(value, list):
                made.set(name, [self.over_columns(each) for each in value])
            elif isinstance(value, exp.Expr):
                made.set(name, self._children(value))
        return made

    def _column(self, tree: exp.Column) -> exp.Expr:
        if not tree.table:
            if tree.name in self.columns.values():
                return column(tree.name)
            if tree.name in self.derived:
                return exp.Paren(this=self.derived[tree.name].copy())
        raise NotDecomposable(f"{shown(tree)} is neither a key nor a measure")

    def _aggregate(self, tree: exp.Expr, where: exp.Expr | None) -> exp.Expr:
        for kind, merge in MERGED_ALONE.items():
            if type(tree) is kind and not isinstance(tree.this, exp.Distinct):
                return self._part(tree, where, merge)
        if isinstance(tree, exp.Distinct) or tree.find(exp.Distinct):
            raise NotDecomposable(f"{shown(tree)} is merged by a sketch: make it a measure of its own")
        if isinstance(tree, exp.Avg):
            double = exp.cast(tree.this.copy(), "double")
            total = self._part(exp.Sum(this=double), where, Merge.SUM)
            return exp.Div(this=total, expression=self._counted(tree.this, where))
        if isinstance(tree, VARIANCES + DEVIATIONS):
            return self._spread(tree, where)
        raise NotDecomposable(f"{shown(tree)} cannot be merged: make it a measure of its own")

    def _counted(self, value: exp.Expr, where: exp.Expr | None) -> exp.Expr:
        return self._part(exp.Count(this=value.copy()), where, Merge.COUNT)

    def _spread(self, tree: exp.Expr, where: exp.Expr | None) -> exp.Expr:
        value = exp.cast(tree.this.copy(), "double")
        number = exp.Count(this=value.copy())
        around = exp.Mul(
            this=filtered(exp.VariancePop(this=value.copy()), where),
            expression=filtered(number.copy(), where),
        )
        spread = self._named(around, Merge.SPREAD)
        self._add(count_beside(spread), filtered(number, where), Merge.COUNT)
        self._add(sum_beside(spread), filtered(exp.Sum(this=value), where), Merge.SUM)
        count: exp.Expr = column(count_beside(spread))
        if not isinstance(tree, OF_ALL_VALUES):
            count = exp.Paren(this=exp.Sub(this=count, expression=exp.Literal.number(1)))
        variance = exp.Div(this=column(spread), expression=count)
        return exp.Sqrt(this=variance) if isinstance(tree, DEVIATIONS) else exp.Paren(this=variance)

    def _part(self, tree: exp.Expr, where: exp.Expr | None, merge: Merge) -> exp.Expr:
        whole = filtered(tree, where)
        if (name := self.columns.get(whole)) is not None:
            return column(name)
        return column(self._named(whole, merge))

    def _named(self, tree: exp.Expr, merge: Merge) -> str:
        text = tree.sql(dialect="spark")
        for each in self.hidden.values():
            if each.sql == text:
                return each.name
        name = f"{PART}{len(self.hidden)}"
        self._add(name, tree, merge)
        return name

    def _add(self, name: str, tree: exp.Expr, merge: Merge) -> None:
        self.hidden.setdefault(name, Hidden(name, tree.sql(dialect="spark"), merge))


def aggregate_of(tree: exp.Expr) -> exp.Expr:
    """The aggregate that a synonym means."""
    if isinstance(tree, exp.Anonymous) and (kind := SYNONYMS.get(tree.name.lower())) is not None:
        return kind(this=tree.expressions[0].copy())
    return tree


def filtered(tree: exp.Expr, where: exp.Expr | None) -> exp.Expr:
    return tree if where is None else exp.Filter(this=tree, expression=where.copy())


def column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def shown(tree: exp.Expr) -> str:
    return str(tree.sql(dialect="spark"))
