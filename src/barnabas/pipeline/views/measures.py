"""Measures: which aggregates can be merged, and the SQL that their merging needs.

In: a measure's name, merge and SQL. Out: problems in one sentence each; and the rewritten SQL (`rewritten`),
with sketches for distinct counts and times for last values. Does not know: views as a whole, Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from barnabas.pipeline.spec.model import View
from barnabas.pipeline.views import sketches
from barnabas.pipeline.views.layout import MERGES, Computed, Merge, last_at, sketch_of

ADDITIVE = (exp.Sum, exp.Count, exp.CountIf)
LINEAR = (exp.Add, exp.Sub, exp.Neg, exp.Paren, exp.Cast, exp.Coalesce, exp.Filter, exp.Alias)
SKETCH = "hll_sketch_agg"


def measure_wrong(name: str, merge: Merge, projection: exp.Expr, event_time: str) -> Iterator[str]:
    """Problems of one measure."""
    value = projection.unalias()
    text = value.sql(dialect="spark")
    if merge in (Merge.SUM, Merge.COUNT):
        if not adds_up(value):
            yield (
                f"{name} merges by {merge}, and parts of {text} do not add up: give it the measure "
                "`computed`, or `avg`, `variance` or `stddev`"
            )
    elif merge in (Merge.MIN, Merge.MAX):
        kind = exp.Min if merge is Merge.MIN else exp.Max
        if not isinstance(aggregate(value), kind) or isinstance(value, exp.Cast):
            yield f"{name} merges by {merge}, so it is {merge}(…), not {text}"
    elif merge is Merge.DISTINCT:
        if counted(value) is None:
            yield f"{name} merges by distinct, so it is count(DISTINCT …), not {text}"
    elif last_of(value, event_time) is None:
        if isinstance(aggregate(value), exp.Last | exp.LastValue):
            yield f"{name} is {text}, and its table declares no event_time: write max_by(value, time)"
        else:
            yield f"{name} merges by last, so it is max_by(value, time) or last(value), not {text}"


def derived_wrong(view: View, name: str, text: str) -> Iterator[str]:
    """Problems of a measure that is computed from other measures when it is queried."""
    words = ", ".join((*MERGES, *Computed))
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        yield f"{name}: {text!r} is neither one of {words} nor an expression over measures"
        return
    of_sql = {*MERGES, *Computed}
    known = {*view.keys, *(each for each, merge in view.measures.items() if merge in of_sql)}
    used = {column.name for column in tree.find_all(exp.Column)}
    if unknown := sorted(used - known):
        unknown_text = ", ".join(unknown)
        yield f"{name}: {unknown_text} is not a measure: write one of {words}, or an expression over measures"
    for wrong in tree.find_all(exp.AggFunc, exp.Anonymous, exp.Query):
        if not (isinstance(wrong, exp.AggFunc) and is_window_function(wrong)):
            yield f"{name}: {wrong.sql(dialect='spark')} cannot stand in an expression over measures"
            return


def is_window_function(function: exp.Expr) -> bool:
    """Whether a function works on rows of the view: it stands directly before OVER."""
    above = function.parent
    while isinstance(above, exp.IgnoreNulls | exp.RespectNulls):
        above = above.parent
    return isinstance(above, exp.Window) and aggregate(above.this) is function


def adds_up(value: exp.Expr) -> bool:
    """Whether the value of all rows is the sum of the values of their parts."""
    if isinstance(value, exp.Filter):
        return adds_up(value.this)
    if isinstance(value, ADDITIVE):
        return not isinstance(value.this, exp.Distinct)
    if isinstance(value, exp.Mul | exp.Div):
        sides = (value.this, value.expression)
        with_rows = [side for side in sides if side.find(exp.AggFunc)]
        return (
            len(with_rows) == 1
            and adds_up(with_rows[0])
            and not (isinstance(value, exp.Div) and with_rows[0] is value.expression)
        )
    if isinstance(value, exp.Coalesce):
        zeros = all(
            isinstance(each, exp.Literal) and float(each.name or 1) == 0 for each in value.expressions
        )
        return adds_up(value.this) and zeros
    if isinstance(value, exp.Add | exp.Sub):
        return adds_up(value.this) and adds_up(value.expression)
    return isinstance(value, LINEAR) and adds_up(value.this)


def aggregate(value: exp.Expr) -> exp.Expr:
    """The aggregate function itself, without FILTER, casts and parentheses."""
    while isinstance(value, exp.Filter | exp.Paren | exp.Cast | exp.IgnoreNulls):
        value = value.this
    return value


def counted(value: exp.Expr) -> list[exp.Expr] | None:
    """The expressions that a distinct count counts; None if it is no distinct count."""
    inner = aggregate(value)
    if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Distinct):
        return list(inner.this.expressions)
    if isinstance(inner, exp.ApproxDistinct):
        return [inner.this]
    if isinstance(inner, exp.Func) and inner.sql_name().lower() == SKETCH:
        return [inner.this]
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == SKETCH:
        return [inner.expressions[0]]
    return None


def last_of(value: exp.Expr, event_time: str) -> tuple[exp.Expr, exp.Expr] | None:
    """Value and time of a last value; None if it is no last value."""
    inner = aggregate(value)
    if isinstance(inner, exp.ArgMax):
        return inner.this, inner.expression
    if isinstance(inner, exp.Last | exp.LastValue) and event_time:
        return inner.this, exp.column(event_time, quoted=True)
    return None


def rewritten(name: str, merge: Merge, projection: exp.Expr, event_time: str) -> list[exp.Expr]:
    """The projections that compute a measure and what its merging needs."""
    value = projection.unalias()
    if merge is Merge.DISTINCT:
        sketch = filtered(value, sketched(counted(value) or []))
        return [exp.alias_(sketch, sketch_of(name), quoted=True)]
    if merge is Merge.LAST:
        found = last_of(value, event_time)
        assert found is not None
        last, time = found
        # For equal times the greater value wins, so that the result does not depend on the order of rows.
        order = exp.Anonymous(this="struct", expressions=[time.copy(), last.copy()])
        chosen = exp.Anonymous(this="max_by", expressions=[last.copy(), order])
        latest = exp.Max(this=time.copy())
        return [
            exp.alias_(filtered(value, chosen), name, quoted=True),
            exp.alias_(filtered(value, latest), last_at(name), quoted=True),
        ]
    return [exp.alias_(value.copy(), name, quoted=True)]


def sketched(values: list[exp.Expr]) -> exp.Expr:
    """A sketch of the values as texts. Of several columns only rows without null count, as in
    count(DISTINCT a, b)."""
    if len(values) == 1:
        text: exp.Expr = exp.cast(values[0].copy(), "string")
    else:
        struct = exp.Anonymous(this="struct", expressions=[value.copy() for value in values])
        whole = exp.Anonymous(this="to_json", expressions=[struct])
        present = exp.and_(*(exp.not_(exp.Is(this=value.copy(), expression=exp.null())) for value in values))
        text = exp.Case(ifs=[exp.If(this=present, true=whole)])
    value = exp.Anonymous(this="concat", expressions=[exp.Literal.string(sketches.PREFIX), text])
    return exp.Anonymous(this=SKETCH, expressions=[value, exp.Literal.number(sketches.LG_K)])


def filtered(value: exp.Expr, function: exp.Expr) -> exp.Expr:
    """The function under the FILTER that the value has, if it has one."""
    while isinstance(value, exp.Paren | exp.Cast | exp.IgnoreNulls):
        value = value.this
    if isinstance(value, exp.Filter):
        return exp.Filter(this=function, expression=value.expression.copy())
    return function
