"""Merges rows of the same key in SQL, measure by measure: what Spark would compute from all rows at once.

In: a layout, and a SELECT of rows. Out: a SELECT with one row for each key. Nulls are ignored, NaN is greater
than every number, and `last` takes the later event time or, for equal times, the greater value. Sketches are
not merged here: the SELECT counts those of each key, and `sketch_unions` unites them.
Does not know: versions, horizons, transactions.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.pipeline.serving.store.transaction import KEY, Dialect, quoted
from barnabas.pipeline.views.layout import (
    Column,
    Layout,
    Merge,
    count_beside,
    last_at,
    sketch_of,
    sum_beside,
)

Aggregate = Callable[[Dialect, Column], str]


def added(dialect: Dialect, column: Column) -> str:
    return f"CAST(sum({quoted(column.name)}) AS {dialect.type_of(column.type)})"


def least(dialect: Dialect, column: Column) -> str:
    return dialect.extreme(column, is_greatest=False)


def greatest(dialect: Dialect, column: Column) -> str:
    return dialect.extreme(column, is_greatest=True)


def last(dialect: Dialect, column: Column) -> str:
    return dialect.first(column.name, [last_at(column.name), column.name])


def spread(dialect: Dialect, column: Column) -> str:
    """The spread within the rows, and that of their means around the common mean."""
    count, total = quoted(count_beside(column.name)), quoted(sum_beside(column.name))
    mean = quoted(mean_of(column.name))
    around = f"coalesce({count} * power({total} / nullif({count}, 0) - {mean}, 2), 0)"
    return f"sum({quoted(column.name)} + {around})"


AGGREGATES: dict[Merge, Aggregate] = {
    Merge.SUM: added,
    Merge.COUNT: added,
    Merge.MIN: least,
    Merge.MAX: greatest,
    Merge.LAST: last,
    Merge.DISTINCT: greatest,  # right where there is one sketch; the others are united afterwards
    Merge.SPREAD: spread,
}


def mean_of(spread_column: str) -> str:
    return f"{spread_column}_mean"


def merged(dialect: Dialect, layout: Layout, rows: str) -> str:
    """A SELECT of one row for each key of `rows`, which is a SELECT of stored columns and `_key`."""
    columns = [f"{aggregate(dialect, layout, column)} AS {quoted(column.name)}" for column in layout.stored]
    groups = ", ".join([KEY, *(quoted(column.name) for column in layout.keys)])
    return (
        f"SELECT {', '.join([*columns, KEY])} FROM (SELECT rows_of_key.*{means(layout)} "
        f"FROM ({rows}) AS rows_of_key) AS with_means GROUP BY {groups}"
    )


def aggregate(dialect: Dialect, layout: Layout, column: Column) -> str:
    if column in layout.keys:
        return quoted(column.name)
    if column.merge is not None:
        return AGGREGATES[column.merge](dialect, column)
    for measure in layout.measures:
        if column.name == last_at(measure.name):
            return dialect.extreme(column, is_greatest=True)
        if column.name == sketch_of(measure.name):
            return dialect.any_value(column.name)
    raise ValueError(f"the column {column.name} of the view {layout.view} has no way to be merged")


def means(layout: Layout) -> str:
    """Common means of keys, for spreads."""
    found = ""
    for column in layout.merged:
        if column.merge is Merge.SPREAD:
            count, total = quoted(count_beside(column.name)), quoted(sum_beside(column.name))
            over = f"OVER (PARTITION BY {KEY})"
            mean = f"sum({total}) {over} / nullif(sum({count}) {over}, 0)"
            found += f", {mean} AS {quoted(mean_of(column.name))}"
    return found


def distinct_columns(layout: Layout) -> list[Column]:
    return [column for column in layout.merged if column.merge is Merge.DISTINCT]
