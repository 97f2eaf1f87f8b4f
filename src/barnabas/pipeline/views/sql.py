"""A view's SQL as Spark runs it: the same text for both layers, over different rows.

In: a definition, and the temporary view for each table. Out: SQL with the columns of the layout.
Does not know: Spark sessions, versions.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import expressions as exp

from barnabas.pipeline.spec.star import written
from barnabas.pipeline.views.definition import Definition, tables_of
from barnabas.pipeline.views.layout import Merge, last_at, sketch_of
from barnabas.pipeline.views.measures import rewritten


def render(definition: Definition, places: Mapping[str, str]) -> str:
    """SQL with keys and measures in the view's order, then the columns that merging needs.

    `places` maps each table name in the SQL to the temporary view to read instead."""
    tree = definition.tree.copy()
    for table in tables_of(tree):
        alias = table.alias or table.name
        place = exp.to_table(places[written(table)])
        place.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        place.set("joins", table.args.get("joins"))
        table.replace(place)
    projections: list[exp.Expr] = []
    for each in tree.expressions:
        merge = definition.measures.get(each.alias_or_name)
        if each.alias_or_name in definition.derived:
            continue
        if merge is None:
            projections.append(exp.alias_(each.unalias().copy(), each.alias_or_name, quoted=True))
        else:
            projections += rewritten(each.alias_or_name, merge, each, definition.event_time)
    group = tree.args.get("group")
    if group is not None:
        by_what(group, tree)
    for hidden_one in definition.hidden:
        value = sqlglot.parse_one(hidden_one.sql, dialect="spark")
        projections.append(exp.alias_(value, hidden_one.name, quoted=True))
    tree.set("expressions", projections)
    tree.set("having", None)  # the store keeps all keys, and applies the condition when it is queried
    columns = [shown(name, definition.measures.get(name)) for name in order(definition)]
    columns += [f"`{name}`" for name in hidden(definition)]
    return f"SELECT {', '.join(columns)} FROM ({tree.sql(dialect='spark')}) AS parts"


def by_what(group: exp.Group, tree: exp.Select) -> None:
    """Replace column numbers in GROUP BY by their expressions: the rewritten SQL has other numbers."""
    terms = []
    for term in group.expressions:
        if isinstance(term, exp.Literal) and term.is_int:
            terms.append(tree.expressions[int(term.name) - 1].unalias().copy())
        else:
            terms.append(term)
    group.set("expressions", terms)


def order(definition: Definition) -> list[str]:
    """Stored columns that the SQL selects."""
    names = [each.alias_or_name for each in definition.tree.expressions]
    return [name for name in names if name not in definition.derived]


def hidden(definition: Definition) -> list[str]:
    found = []
    for name, merge in definition.measures.items():
        if merge is Merge.LAST:
            found.append(last_at(name))
        if merge is Merge.DISTINCT:
            found.append(sketch_of(name))
    return [*found, *(each.name for each in definition.hidden)]


def shown(name: str, merge: Merge | None) -> str:
    if merge is Merge.DISTINCT:
        return f"coalesce(hll_sketch_estimate(`{sketch_of(name)}`), 0L) AS `{name}`"
    return f"`{name}`"
